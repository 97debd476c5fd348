"""A blob store that shows a certificate nobody vouches for gets no request and no password: jobs wait, and the log says
why.
usage: blob_tls_test.py BUILD_FOLDER"""

import http.server
import ssl
import subprocess
import threading
import unittest

import numpy
from worker_flow import FlowTest, saxpy

import gpu_worker as gw

NUMBER = 7


class TlsTest(FlowTest):
    def start_store(self):
        self.requests = []
        payload = numpy.full(4, NUMBER, "<f4").tobytes()
        requests = self.requests

        class Store(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                requests.append(self.headers.get("Authorization"))
                self.send_response(200)
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            def log_message(self, *_):
                pass

        certificate, key = self.folder / "store.pem", self.folder / "store.key"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
             "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
            check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
        server.handle_error = lambda *_: None  # the worker hangs up: that is what is tested
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server.server_address[1]

    def start(self, port):
        job = saxpy(NUMBER)
        job["buffers"]["x"] = gw.blob(numpy.full(4, NUMBER, "<f4"))
        gw.write_jobs(self.folder / "jobs", [job])
        config = {"driver": "cpu", "lanes": 1, "retry": {"max_attempts": 1},
                  "blobs": {"url": f"https://reader:hunter2@localhost:{port}/", "cache_dir": str(self.folder / "cache")}}
        return self.start_worker(
            config, "worker", "--jobs", self.folder / "jobs", "--results", self.folder / "results")

    def test_a_certificate_that_nobody_vouches_for_gets_no_request(self):
        worker = self.start(self.start_store())
        log = self.folder / "worker.log"
        self.wait_until(lambda: "jobs are waiting on a problem in this worker" in log.read_text(), "the job waits")
        worker.stop()
        self.assertRegex(log.read_text(), "(?i)certificate")
        self.assertNotIn("hunter2", log.read_text())
        self.assertEqual(self.requests, [])
        self.assertEqual(list(gw.read_results(self.folder / "results")), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
