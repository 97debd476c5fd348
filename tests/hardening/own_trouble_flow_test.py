"""A worker whose folder of blobs cannot be read for a while answers what needs none of it, says why it is not ready,
and makes no dead letter: the others wait. Both deliveries, on a real Kafka.
usage: own_trouble_flow_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA"""

import re
import unittest
import urllib.request

import numpy
from job_client import JobClient
from worker_environment import for_faults
from worker_flow import BUILD, KafkaFlowTest, is_saxpy, read_all, reserve_address, saxpy, unpack

import gpu_worker as gw

BLOB_JOBS = 20


def with_blob(number):
    job = saxpy(number)
    job["id"] = f"blob-{number}"
    job["buffers"]["x"] = gw.blob(numpy.full(4, number, "<f4"))
    return job


class OwnTroubleTest(KafkaFlowTest):
    def ready_reason(self):
        """Why the executor is not ready, as the metrics say it; "" where it is."""
        with urllib.request.urlopen(f"http://{self.http}/metrics", timeout=240) as page:
            text = page.read().decode()
        reason, value = re.search(r'^gpu_worker_executor_ready{.*reason="([^"]*)"} (\d)$', text, re.MULTILINE).groups()
        self.assertEqual(value == "1", reason == "")
        return reason

    def answered(self):
        return {result["id"]: result for result in map(unpack, read_all(self.servers, self.topics.results))}

    def start_worker_with_faults(self, delivery):
        self.http = reserve_address(self)
        blobs, self.trouble = self.folder / "blobs", self.folder / "trouble"
        store = gw.BlobStore(blobs)
        for number in range(BLOB_JOBS):
            store.put(numpy.full(4, number, "<f4"))
        self.use_environment(for_faults(
            BUILD / "tests/io_faults.so", IO_FAULTS_FOLDER=str(blobs.resolve()), IO_FAULTS_ERROR="EIO",
            IO_FAULTS_CALLS="READ", IO_FAULTS_WHILE=str(self.trouble)))
        return self.start_worker(self.config(
            blobs={"dir": str(blobs)}, delivery=delivery, commit_interval_ms="100ms", http={"listen": self.http},
            retry={"max_attempts": 1, "base_ms": "20ms", "max_ms": "100ms"}))

    def assert_waits(self, delivery):
        worker = self.start_worker_with_faults(delivery)
        client = JobClient(self.servers, self.topics.jobs, self.topics.results)
        self.addCleanup(client.close)
        self.trouble.touch()
        client.submit([with_blob(number) for number in range(BLOB_JOBS)])
        client.submit([saxpy(number) for number in range(BLOB_JOBS)])
        self.wait_until(lambda: len(self.answered()) == BLOB_JOBS, "jobs that need no blob are answered")
        self.wait_until(lambda: self.ready_reason() == "blob_store", "the reason is shown")
        self.assertEqual(set(self.answered()), {f"job-{number}" for number in range(BLOB_JOBS)})
        self.trouble.unlink()
        self.wait_for_no_lag()
        self.wait_until(lambda: self.ready_reason() == "", "the worker is ready again")
        self.stop_well(worker)
        results = self.answered()
        self.assertEqual(len(results), 2 * BLOB_JOBS)
        for number in range(BLOB_JOBS):
            self.assertTrue(is_saxpy(results[f"blob-{number}"], number))
        self.assertEqual(read_all(self.servers, self.topics.dead_letters), [])
        log = (self.folder / "worker.log").read_text()
        self.assertEqual(log.count("jobs are waiting on a problem in this worker"), 1)

    def test_with_at_least_once(self):
        self.assert_waits("at_least_once")

    def test_with_exactly_once(self):
        self.assert_waits("exactly_once")


if __name__ == "__main__":
    unittest.main(verbosity=2)
