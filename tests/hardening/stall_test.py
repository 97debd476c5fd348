"""A file system whose server is gone hangs a thread that reads a blob.
usage: stall_test.py BUILD_FOLDER STALL"""

import hashlib
import os
import pathlib
import sys
import unittest

import msgpack
import numpy

from worker_flow import KafkaFlowTest, is_saxpy, read_all, saxpy

import gpu_worker as gw


STALL = pathlib.Path(sys.argv.pop(1)).resolve()
COUNT = 40


class StallTest(KafkaFlowTest):
    def setUp(self):
        super().setUp()
        self.blobs, self.flag = self.folder / "blobs", self.folder / "server-is-gone"
        self.blobs.mkdir()
        self.flag.touch()
        preload = {"LD_PRELOAD": str(STALL), "STALL_PATH": str(self.blobs), "STALL_WHILE": str(self.flag)}
        self.addCleanup(os.environ.update, {"LD_PRELOAD": os.environ.get("LD_PRELOAD", "")})
        os.environ |= preload

    def from_blob(self, number):
        data = numpy.full(4, number, "<f4")
        digest = hashlib.sha256(data.tobytes()).hexdigest()
        job = saxpy(number)
        job["buffers"]["x"] = gw.blob(data)
        (self.blobs / digest[:2]).mkdir(exist_ok=True)
        (self.blobs / digest[:2] / digest).write_bytes(data.tobytes())
        return job

    def run_stall(self, delivery):
        worker = self.start_worker(self.config(
            delivery=delivery, executors={"stall_ms": 1000}, blobs={"dir": str(self.blobs), "timeout_ms": 500}))
        self.produce(msgpack.packb(self.from_blob(COUNT)), *(msgpack.packb(saxpy(number)) for number in range(COUNT)))
        log = self.folder / "worker.log"
        self.wait_until(lambda: "thread fetch has not moved" in log.read_text(), "the hang is seen")
        self.flag.unlink()
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
