"""An array that is far larger than the memory of its worker, from the blob store and to it.
usage: large_arrays_test.py BUILD_FOLDER, with the bytes of the array in GPU_WORKER_TEST_ARRAY_BYTES."""

import hashlib
import os
import resource
import subprocess
import time
import unittest

from worker_flow import BINARY, FlowTest

import gpu_worker as gw
import numpy
from worker_process import write_config

MIB = 1 << 20
ARRAY_BYTES = int(os.environ.get("GPU_WORKER_TEST_ARRAY_BYTES", 640 * MIB))
CONFIGURED_BYTES = 32 * MIB  # pinned, on the device, and in flight, together
INSTANCE_BYTES = 64 << 10
PIECE = 256  # instances that the test makes and checks at a time


def piece(first, count):
    """The input of these instances."""
    floats = INSTANCE_BYTES // 4
    return (numpy.arange(first, first + count, dtype="<f4")[:, None] % 1000 + numpy.arange(floats, dtype="<f4") % 7).ravel()


class LargeArraysTest(FlowTest):
    def store_input(self, count):
        """Written and hashed piece by piece, as a sender without much memory does it."""
        digest = hashlib.sha256()
        path = self.folder / "input"
        with path.open("wb") as file:
            for first in range(0, count, PIECE):
                data = piece(first, min(PIECE, count - first)).tobytes()
                digest.update(data)
                file.write(data)
        name = digest.hexdigest()
        shelf = self.folder / "blobs" / name[:2]
        shelf.mkdir(parents=True)
        path.rename(shelf / name)
        return f"sha256:{name}"

    def assert_output(self, name, count):
        digest = hashlib.sha256()
        hexadecimal = name.removeprefix("sha256:")
        with (self.folder / "blobs" / hexadecimal[:2] / hexadecimal).open("rb") as file:
            for first in range(0, count, PIECE):
                some = min(PIECE, count - first)
                data = file.read(some * INSTANCE_BYTES)
                digest.update(data)
                numpy.testing.assert_array_equal(numpy.frombuffer(data, "<f4"), 2 * piece(first, some))
            self.assertEqual(file.read(1), b"")
        self.assertEqual(digest.hexdigest(), hexadecimal)

    def test_an_array_of_twenty_times_the_configured_memory_passes_through_it(self):
        count = ARRAY_BYTES // INSTANCE_BYTES
        blob = self.store_input(count)
        job = gw.job(
            "large", count=count, timeout_ms=3_600_000, outputs=["y"],
            buffers={"x": {"bytes": INSTANCE_BYTES, "each": True, "blob": blob},
                     "y": {"bytes": INSTANCE_BYTES, "each": True, "fill": 0}},
            steps=[gw.step("saxpy", [gw.f32(2), "x", "y", gw.u32(INSTANCE_BYTES // 4)], elements=INSTANCE_BYTES // 4)])
        gw.write_jobs(self.folder / "jobs", [job])
        config = {
            "driver": "cpu", "lanes": 2, "lane_depth": 2, "lane_slab_bytes": "1MiB",
            "blobs": {"dir": str(self.folder / "blobs"), "bytes_max": "1MiB"},
            "results": {"inline_max_bytes": "64KiB"},
            "limits": {"job_bytes": "1MiB", "array_bytes": 2 * ARRAY_BYTES, "bytes_in_flight": "8MiB",
                       "timeout_max_ms": "1h"},
            "pools": {"pinned_bytes": "12MiB", "device_bytes": "12MiB"},
            "prepare": {"threads": 1}, "statics": {"budget_bytes": "1MiB"}, "cpu_driver": {"memory_bytes": "16MiB"},
            "state": {"dir": str(self.folder / "state")},
        }
        write_config(self.folder / "config.yaml", config)
        command = [BINARY, "run", "--config", self.folder / "config.yaml"]
        for name in ("jobs", "results", "dead-letters"):
            command += [f"--{name}", self.folder / name]
        started = time.monotonic()
        done = subprocess.run(command, timeout=3600, capture_output=True, text=True)
        seconds = time.monotonic() - started
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024  # of any of its processes
        self.assertEqual(done.returncode, 0, done.stderr)
        (result,) = gw.read_results(self.folder / "results")
        self.assertEqual(result["status"], "ok", result)
        print(f"{count} instances of {INSTANCE_BYTES >> 10} KiB, {ARRAY_BYTES / MIB:.0f} MiB each way, in {seconds:.1f} s: "
              f"{result['telemetry']['slices']} slices, {peak / MIB:.0f} MiB resident at most", flush=True)
        self.assertLess(peak, 4 * CONFIGURED_BYTES)
        self.assert_output(result["outputs"][0]["blob"], count)


if __name__ == "__main__":
    unittest.main(verbosity=2)
