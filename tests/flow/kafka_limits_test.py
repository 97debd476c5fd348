"""Bounds of the worker against a real Apache Kafka: of its memory, of its brokers, of their patience.
usage: kafka_limits_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA."""

import os
import re
import time
import unittest

from kafka_topics import admin_of
from worker_flow import PATIENCE_S, KafkaFlowTest, headers_of, is_saxpy, read_all, saxpy

import confluent_kafka.admin as admin
import msgpack

# 4000 is what the worker is made for; fewer show the same in less time.
LARGE_JOBS = int(os.environ.get("GPU_WORKER_TEST_LARGE_JOBS", "800"))
ELEMENTS_OF_900_KIB = 900 * 1024 // 8 - 100
MIB = 1 << 20


class LimitsTest(KafkaFlowTest):
    def test_a_queue_of_large_jobs_finishes_in_256_mib(self):
        for first in range(0, LARGE_JOBS, 100):
            self.produce(*[msgpack.packb(saxpy(first + n, ELEMENTS_OF_900_KIB)) for n in range(100)])
        started = time.monotonic()
        worker = self.start_worker(self.config(lanes=2, limits={"bytes_in_flight": "96MiB"}))
        self.wait_for_no_lag()
        seconds, peak = time.monotonic() - started, worker.peak_bytes()
        self.stop_well(worker)
        print(f"{LARGE_JOBS} jobs of 900 KiB in {seconds:.1f} s, {peak / MIB:.0f} MiB resident at most", flush=True)
        self.assertGreater(peak, 96 * MIB, "this is not the process that runs the jobs")
        self.assertLess(peak, 256 * MIB)
        self.assertIn(f"done: {LARGE_JOBS} jobs ok, 0 failed", self.log_of("worker"))

    def test_a_gpu_that_is_busy_for_longer_than_the_poll_interval_keeps_its_partitions(self):
        patience = {"session.timeout.ms": "6000", "max.poll.interval.ms": "11000"}
        config = self.config(
            lanes=1, limits={"jobs_in_flight": 2}, drain_timeout_ms="1s", cpu_driver={"faults": "cuLaunchKernel:slow=14s@1"})
        config["kafka"]["consumer"] = patience
        self.produce(*[msgpack.packb(saxpy(number)) for number in range(20)])
        worker = self.start_worker(config)
        self.wait_for_no_lag()
        log = self.log_of("worker")
        self.stop_well(worker)
        self.assertEqual(log.count("was assigned"), 1, log)
        self.assertNotRegex(log, "give back|gave|warn|error")
        results = self.results()
        self.assertEqual(len(results), 20)
        self.assertGreater(max(result["telemetry"]["wait_ns"] for result in results), 11e9)

    def test_a_result_that_its_topic_does_not_take_becomes_a_small_error_and_the_worker_goes_on(self):
        narrow = admin.ConfigResource("topic", self.topics.results, incremental_configs=[admin.ConfigEntry(
            "max.message.bytes", "20000", incremental_operation=admin.AlterConfigOpType.SET)])
        for future in admin_of(self.servers).incremental_alter_configs([narrow]).values():
            future.result(PATIENCE_S)
        self.produce(*[msgpack.packb(saxpy(number, 10_000 if number == 3 else 4)) for number in range(6)])
        config = self.config()
        config["kafka"]["producer"] = {"batch.size": "20000"}  # else the others share its batch, and its fate
        worker = self.start_worker(config)
        self.wait_for_no_lag()
        self.stop_well(worker)
        results = {result["id"]: result for result in self.results()}
        self.assertEqual(len(results), 6)
        large = results.pop("job-3")
        self.assertEqual(large["error"]["code"], "publish_refused")
        self.assertTrue(all(is_saxpy(results[f"job-{n}"], n) for n in (0, 1, 2, 4, 5)))
        (letter,) = read_all(self.servers, self.topics.dead_letters)
        self.assertEqual(headers_of(letter)["dlq.error.code"], "publish_refused")
        self.assertRegex(headers_of(letter)["dlq.error.message"], re.escape(self.topics.results) + " refused .*size")


if __name__ == "__main__":
    unittest.main(verbosity=2)
