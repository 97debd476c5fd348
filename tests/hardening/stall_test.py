"""What hangs a thread keeps no partition: a file system whose server is gone, a client library with a mistake in it.
usage: stall_test.py BUILD_FOLDER STALL"""

import hashlib
import os
import pathlib
import subprocess
import sys
import time
import unittest

import msgpack
import numpy

from worker_environment import for_faults
from worker_flow import BINARY, PATIENCE_S, FlowTest, KafkaFlowTest, is_saxpy, read_all, saxpy

import gpu_worker as gw


STALL = pathlib.Path(sys.argv.pop(1))
COUNT = 40
STALL_MS = int(os.environ.get("GPU_WORKER_TEST_STALL_MS", "2000"))
RUNS = 5  # as many take longer than any step of a start, also on a machine with much to do


class Stalls:
    """For a test with a folder: workers whose calls hang while the flag is there."""

    def setUp(self):
        super().setUp()
        began_s = time.monotonic()
        (self.folder / "none").touch()
        subprocess.run([BINARY, "run", "--driver", "cpu", "--jobs", self.folder / "none", "--results", "/dev/null"],
                       check=True, capture_output=True, timeout=PATIENCE_S)
        run_ms = int((time.monotonic() - began_s) * 1000)
        self.quick = {"executors": {"stall_ms": max(STALL_MS, RUNS * run_ms)}, "blobs": {"timeout_ms": 500}}

    def stall(self, path, flag):
        self.flag = flag
        self.use_environment(for_faults(STALL, STALL_PATH=str(path), STALL_WHILE=str(flag)))

    def wait_for_hang(self, thread):
        log = self.folder / "worker.log"
        self.wait_until(lambda: f"thread {thread} has not moved" in log.read_text(), "the hang is seen")
        self.flag.unlink()


class KafkaStallTest(Stalls, KafkaFlowTest):
    def setUp(self):
        super().setUp()
        self.blobs = self.folder / "blobs"
        self.blobs.mkdir()

    def from_blob(self, number):
        data = numpy.full(4, number, "<f4")
        digest = hashlib.sha256(data.tobytes()).hexdigest()
        job = saxpy(number)
        job["buffers"]["x"] = gw.blob(data)
        (self.blobs / digest[:2]).mkdir(exist_ok=True)
        (self.blobs / digest[:2] / digest).write_bytes(data.tobytes())
        return job

    def run_stall(self, delivery):
        self.stall(self.blobs, self.folder / "server-is-gone")
        self.flag.touch()
        worker = self.start_worker(self.config(
            delivery=delivery, **self.quick | {"blobs": {"dir": str(self.blobs), "timeout_ms": 500}}))
        self.produce(msgpack.packb(self.from_blob(COUNT)), *(msgpack.packb(saxpy(number)) for number in range(COUNT)))
        self.wait_for_hang("fetch")
        self.wait_until(lambda: len({result["id"] for result in self.results()}) == COUNT + 1, "all are answered")
        self.wait_for_no_lag()
        self.stop_well(worker)
        answered = {result["id"]: result for result in self.results()}
        for number in range(COUNT + 1):
            self.assertTrue(is_saxpy(answered[f"job-{number}"], number), answered[f"job-{number}"])
        self.assertEqual(read_all(self.servers, self.topics.dead_letters), [], "nobody is convicted of a file system")

    def test_a_hang_of_a_file_system_keeps_no_partition_at_least_once(self):
        self.run_stall("at_least_once")

    def test_a_hang_of_a_file_system_keeps_no_partition_exactly_once(self):
        self.run_stall("exactly_once")

    def test_a_thread_that_hangs_where_cancels_are_read_ends_its_executor(self):
        self.stall("control", self.folder / "client-hangs")
        config = self.config(**self.quick)
        config["topics"]["control"] = self.topics.control
        worker = self.start_worker(config)
        self.wait_until(lambda: "ready: " in (self.folder / "worker.log").read_text(), "the worker has started")
        self.flag.touch()
        self.wait_for_hang("control")
        self.produce(*(msgpack.packb(saxpy(number)) for number in range(COUNT)))
        self.wait_until(lambda: len({result["id"] for result in self.results()}) == COUNT, "all are answered")
        self.wait_for_no_lag()
        self.stop_well(worker)


class FileStallTest(Stalls, FlowTest):
    def run_stall(self, file, thread):
        """A run of files, one of which hangs; each job is answered once."""
        self.stall(self.folder / file, self.folder / "server-is-gone")
        self.flag.touch()
        gw.write_jobs(self.folder / "jobs", [saxpy(number) for number in range(COUNT)])
        options = [option for name in ("jobs", "results", "telemetry") for option in (f"--{name}", self.folder / name)]
        worker = self.start_worker(
            {"driver": "cpu", "lanes": 2, "telemetry": {"interval_ms": 200}} | self.quick, "worker", *options)
        self.wait_for_hang(thread)
        self.assertEqual(worker.wait(PATIENCE_S), 0)
        results = list(gw.read_results(self.folder / "results"))
        self.assertEqual(sorted(result["id"] for result in results), sorted(f"job-{number}" for number in range(COUNT)))
        for result in results:
            self.assertTrue(is_saxpy(result, int(result["id"][4:])), result)

    def test_a_hang_where_results_are_written_ends_the_executor_and_repeats_nothing(self):
        self.run_stall("results", "publisher")

    def test_a_hang_where_telemetry_is_written_ends_the_executor_and_repeats_nothing(self):
        self.run_stall("telemetry", "reporter")


if __name__ == "__main__":
    unittest.main(verbosity=2)
