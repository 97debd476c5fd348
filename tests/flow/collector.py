"""A collector of OpenTelemetry for tests: takes spans by OTLP/HTTP in JSON, and checks what the protocol says of them."""

import http.server
import json
import re
import threading
import time

DIGITS = {"traceId": 32, "spanId": 16, "parentSpanId": 16}
SPAN = {"traceId", "spanId", "parentSpanId", "flags", "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "traceState",
        "attributes", "links", "droppedLinksCount", "status"}


def read_attributes(attributes):
    found = {}
    for attribute in attributes:
        assert attribute.keys() == {"key", "value"}, attribute
        (kind, value), = attribute["value"].items()
        assert kind in ("stringValue", "intValue") and isinstance(value, str), f"64-bit numbers are strings: {attribute}"
        assert attribute["key"] not in found, attribute
        found[attribute["key"]] = int(value) if kind == "intValue" else value
    return found


def check_id(name, text):
    assert re.fullmatch(f"[0-9a-f]{{{DIGITS[name]}}}", text) and set(text) != {"0"}, (name, text)


def read_span(span):
    assert span.keys() <= SPAN, span
    for name in DIGITS.keys() & span.keys():
        check_id(name, span[name])
    for link in span.get("links", []):
        assert link.keys() == {"traceId", "spanId"}, link
        for name, text in link.items():
            check_id(name, text)
    for name in "startTimeUnixNano", "endTimeUnixNano":
        assert isinstance(span[name], str), "64-bit numbers are strings"
    begun, ended = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
    assert begun <= ended and abs(time.time() - begun / 1e9) < 3600, span
    assert isinstance(span["kind"], int) and 1 <= span["kind"] <= 5, span
    assert span.get("status", {}).get("code", 0) in (0, 1, 2), span
    return span | {"attributes": read_attributes(span["attributes"]), "begun": begun, "ended": ended}


def read_request(body):
    """[span], each with its resource's attributes."""
    document = json.loads(body)
    assert document.keys() == {"resourceSpans"}, document.keys()
    spans = []
    for resource in document["resourceSpans"]:
        assert resource.keys() == {"resource", "scopeSpans"}, resource.keys()
        about = read_attributes(resource["resource"]["attributes"])
        for scope in resource["scopeSpans"]:
            assert scope.keys() == {"scope", "spans"} and scope["scope"]["name"], scope
            spans += [read_span(span) | {"resource": about} for span in scope["spans"]]
    return spans


class Collector:
    """Takes what comes; `answer`, a function of the handler, is what it does instead of saying that all is well."""

    def __init__(self, test, path="/v1/traces"):
        self.spans, self.requests, self.wrong, self.answer = [], 0, [], None
        self._gate = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                try:
                    assert self.path == path, self.path
                    assert self.headers["Content-Type"] == "application/json", self.headers["Content-Type"]
                    spans = read_request(self.rfile.read(int(self.headers["Content-Length"])))
                except (AssertionError, ValueError, KeyError) as error:
                    outer.wrong.append(repr(error))
                    spans = []
                outer.requests += 1
                if outer.answer is not None:
                    outer.answer(self)
                    return
                outer.spans += spans
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, *_):
                pass  # clients that leave are what some tests are about

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        test.addCleanup(self._server.server_close)
        test.addCleanup(self._server.shutdown)
        test.addCleanup(self._gate.set)

    def hang(self, _):
        """Holds each request until the test is over."""
        self._gate.wait()

    @staticmethod
    def refuse(status):
        def answer(handler):
            handler.send_response(status)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
        return answer

    def reject(self, count, why):
        """Takes all of a request but so many of its spans."""
        def answer(handler):
            body = json.dumps({"partialSuccess": {"rejectedSpans": str(count), "errorMessage": why}}).encode()
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)
        return answer

    @staticmethod
    def garble(handler):
        handler.wfile.write(b"\x00\xff no HTTP at all\r\n\r\n" * 1000)
        handler.close_connection = True

    def of(self, **fields):
        return [span for span in self.spans if fields.items() <= span.items()]
