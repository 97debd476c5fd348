"""Traces of a real worker, as a collector gets them: their spans, what links them, and collectors that are slow, away or
hostile, which no job notices.
usage: tracing_test.py BUILD_FOLDER"""

import json
import re
import unittest

import confluent_kafka
import msgpack
from collector import Collector
from kafka_topics import headers_of, read_all
from worker_flow import PATIENCE_S, QUIET, FlowTest, ask, reserve_address, saxpy

PARENT = "b7ad6b7169203331"


def trace_of(number):
    return f"{number + 1:032x}"


def traceparent(number, flags="01"):
    return f"00-{trace_of(number)}-{PARENT}-{flags}"


class TracingTest(FlowTest):
    def start(self, url, **more):
        self.broker, self.address = self.folder / "address", reserve_address(self)
        worker = self.start_worker({
            "driver": "cpu", "lanes": 1, "broker": "embedded", "embedded": {"address_file": str(self.broker)},
            "log": {"format": "json"}, "retry": {"max_attempts": 2, "base_ms": "1ms"},
            "http": {"listen": self.address}, "tracing": {"otlp_url": url}} | more)
        self.wait_until(self.broker.exists, "the embedded broker is there")
        return worker

    def servers(self):
        return self.broker.read_text().strip()

    def send(self, *jobs, headers=None):
        """Each with its own headers, if `headers` is a function of its number."""
        producer = confluent_kafka.Producer(QUIET | {"bootstrap.servers": self.servers()})
        for number, job in enumerate(jobs):
            producer.produce("gpu-jobs", job if isinstance(job, bytes) else msgpack.packb(job),
                             headers=headers(number) if callable(headers) else headers)
        self.assertEqual(producer.flush(PATIENCE_S), 0)

    def results(self, count, topic="gpu-results"):
        found = self.wait_until(lambda: read_all(self.servers(), topic), f"{count} results",
                                is_met=lambda found: len(found) >= count)
        return {headers_of(message).get("gpu-worker-job-id"): message for message in found}

    def spans_total(self, result):
        line, = re.findall(rf'^gpu_worker_trace_spans_total{{.*result="{result}"}} (\d+)$', ask(self.address, "/metrics")[1], re.M)
        return int(line)

    def trace(self, collector, number):
        return {span["name"]: span for span in collector.of(traceId=trace_of(number))}

    def test_a_job_has_its_spans_below_the_senders_and_its_result_goes_on(self):
        collector = Collector(self)
        worker = self.start(collector.url)
        self.send(saxpy(0), headers=[("traceparent", traceparent(0)), ("tracestate", "vendor=a:b")])
        self.wait_until(lambda: len(self.trace(collector, 0)) == 6, "six spans")
        spans = self.trace(collector, 0)
        self.assertEqual(spans.keys(), {"receive", "process", "decode", "prepare", "device", "send"})
        process = spans["process"]
        for name, parent, kind in (("receive", PARENT, 3), ("process", PARENT, 5), ("decode", process["spanId"], 1),
                                   ("prepare", process["spanId"], 1), ("device", process["spanId"], 1),
                                   ("send", process["spanId"], 4)):
            self.assertEqual((spans[name]["parentSpanId"], spans[name]["kind"]), (parent, kind), name)
            self.assertEqual(spans[name]["traceState"], "vendor=a:b")
        for name in "decode", "prepare", "device":
            self.assertLessEqual(process["begun"], spans[name]["begun"], name)
            self.assertLessEqual(spans[name]["ended"], process["ended"], name)
        self.assertEqual(spans["receive"]["ended"], process["begun"])
        self.assertEqual(spans["send"]["begun"], process["ended"])
        self.assertEqual(process["resource"]["service.name"], "gpu-worker")
        self.assertEqual({key: process["attributes"][key] for key in (
            "messaging.system", "messaging.operation.type", "messaging.destination.name", "messaging.kafka.offset",
            "gpu_worker.job.id", "gpu_worker.program")}, {
                "messaging.system": "kafka", "messaging.operation.type": "process",
                "messaging.destination.name": "gpu-jobs", "messaging.kafka.offset": 0, "gpu_worker.job.id": "job-0",
                "gpu_worker.program": "saxpy"})
        self.assertEqual(spans["send"]["attributes"]["messaging.destination.name"], "gpu-results")
        headers = headers_of(self.results(1)["job-0"])
        self.assertEqual(headers["traceparent"], f"00-{trace_of(0)}-{spans['send']['spanId']}-01")
        self.assertEqual(headers["tracestate"], "vendor=a:b")
        self.wait_until(lambda: self.spans_total("exported") == 7, "with that of its batch")
        self.assertEqual(self.spans_total("dropped"), 0)
        self.stop_well(worker)
        self.assertEqual(collector.wrong, [])

    def test_batches_are_linked_to_their_traced_jobs(self):
        collector = Collector(self)
        # While the first batch runs others come, and share the next, however long the first one took.
        worker = self.start(collector.url, lane_depth=1, batch={"span_ms": "10m"},
                            cpu_driver={"faults": "cuLaunchKernel:slow=3s@1"})
        self.send(*map(saxpy, range(60)), headers=lambda number: [("traceparent", traceparent(number))] if number % 2 else None)
        self.results(60)
        self.stop_well(worker)  # with what is left to export
        traced = [number for number in range(60) if number % 2]
        devices = {self.trace(collector, number)["device"]["spanId"]: number for number in traced}
        batches = {(span["traceId"], span["spanId"]): span for span in collector.of(name="batch")}
        self.assertEqual(sum(len(batch["links"]) for batch in batches.values()), len(traced))
        for batch in batches.values():
            self.assertNotIn("parentSpanId", batch)
            for link in batch["links"]:
                device = self.trace(collector, devices[link["spanId"]])["device"]
                self.assertEqual(link["traceId"], device["traceId"])
                self.assertEqual(device["links"], [{name: batch[name] for name in ("traceId", "spanId")}])
                self.assertEqual(device["attributes"]["gpu_worker.batch.id"], batch["attributes"]["gpu_worker.batch.id"])
        self.assertTrue(any(len(batch["links"]) > 1 for batch in batches.values()))
        self.assertEqual(len({span["spanId"] for span in collector.spans}), len(collector.spans))
        self.assertEqual(collector.wrong, [])

    def test_failures_say_what_went_wrong_at_a_url_with_a_path_of_its_own(self):
        collector = Collector(self, "/tenant/traces")
        worker = self.start(collector.url + "/tenant/traces")
        wrong = saxpy(0)
        wrong["steps"][0]["program"] = "missing"
        self.send(wrong, b"noise", headers=lambda number: [
            ("traceparent", traceparent(number)), ("tracestate", b"\xff\"\n" if number else b"a=b")])
        self.wait_until(lambda: self.trace(collector, 1) and self.trace(collector, 0), "both")
        for number, code in ((0, "unknown_program"), (1, "bad_message")):
            spans = self.trace(collector, number)
            self.assertNotIn("device", spans)
            self.assertEqual(spans["process"]["status"]["code"], 2)
            self.assertEqual(spans["process"]["attributes"]["error.type"], code)
            self.assertEqual(spans["process"].get("traceState"), None if number else "a=b", "what is no text stays out")
        self.assertEqual(self.trace(collector, 0)["process"]["attributes"]["gpu_worker.retries"], 1)
        self.assertIn("missing", self.trace(collector, 0)["process"]["status"]["message"])
        self.assertEqual(self.trace(collector, 1)["send"]["attributes"]["messaging.destination.name"], "gpu-dead-letters")
        self.stop_well(worker)
        self.assertEqual(collector.wrong, [])

    def test_only_what_its_sender_samples_is_traced(self):
        collector = Collector(self)
        worker = self.start(collector.url)
        untraced = ["00-" + 32 * "0" + f"-{PARENT}-01", f"00-{trace_of(9)}-{16 * '0'}-01", f"ff-{trace_of(9)}-{PARENT}-01",
                    f"00-{trace_of(9)}-{PARENT}-01-more", f"00-{trace_of(9).upper()[:-1]}G-{PARENT}-01", traceparent(9)[:-1],
                    traceparent(9, flags="02"), traceparent(9, flags="00"), ""]
        jobs = [saxpy(number) for number in range(len(untraced) + 1)]
        self.send(*jobs[:-1], headers=lambda number: [("traceparent", untraced[number])])
        self.results(len(untraced))
        self.send(jobs[-1], headers=[("traceparent", "first"), ("traceparent", f"cc-{trace_of(1)}-{PARENT}-03-later")])
        results = self.results(len(jobs))
        self.wait_until(lambda: self.trace(collector, 1), "a later version of the header is one, too")
        self.assertEqual({span["traceId"] for span in collector.spans if span["name"] != "batch"}, {trace_of(1)})
        for number, header in enumerate(untraced):
            self.assertEqual(headers_of(results[f"job-{number}"])["traceparent"], header, "as it came")
        self.assertRegex(headers_of(results[f"job-{len(untraced)}"])["traceparent"], f"^00-{trace_of(1)}-[0-9a-f]{{16}}-03$")
        self.stop_well(worker)

    def assert_jobs_go_on(self, url, count=300):
        """Jobs end while no span is taken, and so does the worker."""
        worker = self.start(url)
        self.send(*map(saxpy, range(count)), headers=lambda number: [("traceparent", traceparent(number))])
        self.assertEqual(len(self.results(count)), count)
        self.wait_until(lambda: any(line.get("event") == "spans_unexported" for line in self.log()), "the log says so")
        return worker

    def log(self):
        lines = (self.folder / "worker.log").read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def test_a_collector_that_does_not_answer(self):
        collector = Collector(self)
        collector.answer = collector.hang
        worker = self.assert_jobs_go_on(collector.url)
        self.stop_well(worker)

    def test_a_collector_that_is_away(self):
        worker = self.assert_jobs_go_on(f"http://{reserve_address(self)}")
        self.stop_well(worker)
        self.assertEqual(len([line for line in self.log() if line.get("event") == "spans_unexported"]), 1)

    def test_a_collector_that_answers_garbage(self):
        collector = Collector(self)
        collector.answer = collector.garble
        self.stop_well(self.assert_jobs_go_on(collector.url))

    def test_a_collector_that_is_busy_gets_them_later_and_one_that_refuses_does_not(self):
        collector = Collector(self)

        def be_busy_once(handler):
            collector.answer = None
            collector.refuse(503)(handler)
        collector.answer = be_busy_once
        worker = self.assert_jobs_go_on(collector.url, count=10)
        self.wait_until(lambda: all(self.trace(collector, number) for number in range(10)), "all ten")
        self.assertEqual(self.spans_total("dropped"), 0)
        collector.answer = collector.refuse(400)
        self.send(saxpy(10), headers=[("traceparent", traceparent(10))])
        self.wait_until(lambda: self.spans_total("dropped") == 7, "they are dropped")
        collector.answer = None
        self.send(saxpy(11), headers=[("traceparent", traceparent(11))])
        self.wait_until(lambda: self.trace(collector, 11), "the next ones come")
        self.assertEqual(self.trace(collector, 10), {})
        self.stop_well(worker)
        self.assertEqual(collector.wrong, [])

    def test_spans_that_a_collector_rejects_are_dropped_and_its_message_is_logged(self):
        collector = Collector(self)
        worker = self.start(collector.url)
        collector.answer = collector.reject(1, "spans of \"yesterday\"\nare refused")
        self.send(saxpy(0), headers=[("traceparent", traceparent(0))])
        self.wait_until(lambda: self.spans_total("dropped") + self.spans_total("exported") == 7, "all are counted")
        rejected = collector.requests  # one of each: the span of the batch may come before those of the job
        self.assertEqual(self.spans_total("dropped"), rejected)
        collector.answer = collector.reject(1000, "and again")
        self.send(saxpy(1), headers=[("traceparent", traceparent(1))])
        self.wait_until(lambda: self.spans_total("dropped") == rejected + 7, "no more than was sent")
        self.assertEqual(self.spans_total("exported"), 7 - rejected)
        self.stop_well(worker)
        said, = [line for line in self.log() if line.get("event") == "spans_unexported"]  # once a minute
        self.assertRegex(said["message"], r'the collector rejected 1 of \d spans: spans of "yesterday"')
        self.assertEqual(collector.wrong, [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
