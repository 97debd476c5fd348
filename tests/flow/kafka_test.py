"""The worker against a real Apache Kafka, through clients that this project did not write.
usage: kafka_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA."""

import subprocess
import unittest

from job_client import JobClient
from kafka_topics import admin_of
from worker_flow import BINARY, PATIENCE_S, SLOWER, KafkaFlowTest, headers_of, is_saxpy, read_all, saxpy, unpack

import check_job
import msgpack


class KafkaTest(KafkaFlowTest):
    def client(self):
        client = JobClient(self.servers, self.topics.jobs, self.topics.results)
        self.addCleanup(client.close)
        return client

    def test_a_stop_in_the_middle_of_ten_thousand_jobs_loses_none(self):
        count = 10_000
        self.client().submit([saxpy(n) for n in range(count)])
        first = self.start_worker(self.config(**SLOWER), "first")
        self.wait_for_results(10)
        self.stop_well(first)
        before = len(self.results())
        self.assertLess(before, count, "the stop came too late to show anything")

        second = self.start_worker(self.config(), "second")
        self.wait_for_no_lag()
        self.stop_well(second)
        results = self.results()
        self.assertEqual(len(results), count, "a clean stop repeats no job")
        by_id = {result["id"]: result for result in results}
        self.assertTrue(all(is_saxpy(by_id[f"job-{n}"], n) for n in range(count)))

    def test_a_result_carries_the_key_and_the_trace_of_its_job(self):
        trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        self.produce(msgpack.packb(saxpy(7)), key=b"tenant-1", headers=[("traceparent", trace), ("mine", b"x")])
        worker = self.start_worker(self.config())
        self.wait_for_results()
        self.stop_well(worker)
        (message,) = read_all(self.servers, self.topics.results)
        headers = headers_of(message)
        self.assertEqual(message.key(), b"tenant-1")
        self.assertEqual(headers["traceparent"], trace)
        self.assertEqual(headers["content-type"], "application/msgpack")
        self.assertEqual(headers["gpu-worker-job-id"], "job-7")
        self.assertEqual(headers["gpu-worker-status"], "ok")
        self.assertRegex(headers["gpu-worker-source"], rf"^{self.topics.jobs}/\d/0$")
        self.assertTrue(is_saxpy(unpack(message), 7))

    def test_hostile_bytes_become_dead_letters_and_the_worker_goes_on(self):
        hostile = [b"\xdf\xff\xff\xff\xff", b"\x91" * 5000, b"", b"{}", msgpack.packb({"id": "x" * 1000}), b"\xc1"]
        self.produce(*hostile, key=b"k", headers=[("mine", b"x")])
        self.produce(msgpack.packb({"v": 1, "id": "half"}), msgpack.packb(saxpy(1)))
        worker = self.start_worker(self.config())
        self.wait_for_no_lag()
        self.stop_well(worker)
        letters = read_all(self.servers, self.topics.dead_letters)
        undecodable = [letter for letter in letters if letter.key() == b"k"]
        self.assertCountEqual([letter.value() or b"" for letter in undecodable], hostile)
        for letter in undecodable:
            headers = headers_of(letter)
            self.assertEqual(headers["dlq.error.code"], "bad_message")
            self.assertEqual(headers["dlq.source.topic"], self.topics.jobs)
            self.assertEqual(headers["mine"], "x")
        results = {result["id"]: result for result in self.results()}
        self.assertEqual(set(results), {"half", "job-1"})
        self.assertEqual(results["half"]["error"]["code"], "bad_job")
        self.assertTrue(is_saxpy(results["job-1"], 1))

    def test_kcat_sends_a_job_and_reads_its_result(self):
        job = self.folder / "job.msgpack"
        job.write_bytes(msgpack.packb(saxpy(3)))
        worker = self.start_worker(self.config())
        subprocess.run(["kcat", "-b", self.servers, "-P", "-t", self.topics.jobs, "-k", "a", job], check=True, timeout=PATIENCE_S)
        self.wait_for_results()
        read = subprocess.run(
            ["kcat", "-b", self.servers, "-C", "-t", self.topics.results, "-e", "-q", "-f", "%k|%h|%S"],
            check=True, timeout=PATIENCE_S, capture_output=True, text=True)
        self.stop_well(worker)
        key, headers, size = read.stdout.split("|")
        self.assertEqual(key, "a")
        self.assertIn("gpu-worker-job-id=job-3", headers)
        self.assertGreater(int(size), 100)

    def test_two_workers_share_a_group(self):
        count = 2_000
        workers = [self.start_worker(self.config(), f"worker-{n}") for n in range(2)]
        client = self.client()
        client.submit([saxpy(n) for n in range(count)])
        results = {result["id"]: result for result in client.results([f"job-{n}" for n in range(count)], PATIENCE_S)}
        self.assertTrue(all(is_saxpy(results[f"job-{n}"], n) for n in range(count)))
        self.wait_for_no_lag()
        for worker in workers:
            self.stop_well(worker)

    def test_submit_prints_a_result_and_tail_decodes_the_topic(self):
        worker = self.start_worker(self.config())
        job = self.folder / "job.yaml"
        job.write_text(
            "id: by-hand\nbuffers: {x: {data: {f32: [1, 2]}, datatype: FP32}, y: {data: {f32: [3, 4]}, datatype: FP32}}\n"
            "steps: [{program: saxpy, args: [{f32: 10}, x, y, {u32: 2}], elements: 2}]\noutputs: [{buffer: y}]\n")
        config = self.folder / "worker.yaml"
        submitted = subprocess.run(
            [BINARY, "submit", "--config", config, job], timeout=PATIENCE_S, capture_output=True, text=True)
        self.assertEqual(submitted.returncode, 0, submitted.stderr)
        self.assertIn("by-hand", submitted.stdout)
        self.assertIn("13, 24", submitted.stdout)
        tailed = subprocess.run(
            [BINARY, "tail", "--config", config, "--from-beginning", "--count", "1"],
            timeout=PATIENCE_S, capture_output=True, text=True)
        self.assertEqual(tailed.returncode, 0, tailed.stderr)
        self.assertIn("by-hand", tailed.stdout)
        self.assertIn("gpu-worker-status: ok", tailed.stdout)
        self.stop_well(worker)

    def test_the_worker_tells_of_itself_in_the_telemetry_topic(self):
        self.produce(*[msgpack.packb(saxpy(number)) for number in range(30)], b"no job")
        worker = self.start_worker(self.config(telemetry={"interval_ms": 100}))
        self.wait_for_no_lag()
        self.stop_well(worker)
        reports = list(map(unpack, read_all(self.servers, self.topics.telemetry)))
        validator = check_job.load_validator("telemetry")
        for report in reports:
            validator.validate(report)
        self.assertEqual(len({report["sequence"] for report in reports}), len(reports))
        outcomes = [report["outcomes"] for report in reports]
        self.assertEqual(sum(outcome.get("ok", 0) for outcome in outcomes), 30)
        self.assertEqual(sum(outcome.get("bad_message", 0) for outcome in outcomes), 1)
        self.assertEqual(sum(report["intake"]["messages_expired"] for report in reports), 0)

    def test_bench_measures_both_ways_of_delivery_and_leaves_no_topic(self):
        config = self.folder / "bench.yaml"
        config.write_text(f"driver: cpu\nkafka: {{bootstrap_servers: '{self.servers}'}}\n")
        done = subprocess.run([BINARY, "bench", "kafka", "--config", config, "--rounds", "1", "--messages", "2000"],
                              capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\| from topic to topic, at least once \| \d+ \| \d+ \| \d+ % \|")
        self.assertRegex(done.stdout, r"\| the same, exactly once \| \d+ \| \d+ \| \d+ % \|")
        cpu = r" \| [\d.]+ \| [\d.]+ \.\. [\d.]+" * 2
        self.assertRegex(done.stdout, r"\| from topic to topic, at least once" + cpu + r" \|\n\| the same, exactly once" + cpu)
        left = admin_of(self.servers).list_topics(timeout=PATIENCE_S).topics
        self.assertEqual([name for name in left if name.startswith("gpu-worker-bench-")], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
