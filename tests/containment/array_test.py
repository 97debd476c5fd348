#!/usr/bin/env python3
"""A poisonous instance costs an array itself and no other instance: its result names exactly the culprits, and has the
outputs of all others.
usage: array_test.py BUILD_FOLDER [--driver cpu|cuda] [--count N] [unittest options]"""

import argparse
import os
import pathlib
import sys
import tempfile
import unittest

import numpy

import containment_test
import gpu_worker as gw
from worker_process import JOBS_FAILED

parser = argparse.ArgumentParser()
parser.add_argument("build", type=pathlib.Path)
parser.add_argument("--driver", default=os.environ.get("GPU_WORKER_TEST_DRIVER", "cpu"))
parser.add_argument("--count", type=int, default=100_000, help="instances of the largest array")
ARGUMENTS, REST = parser.parse_known_args()
CODES = {
    "failed_assert": {"cpu": "worker_crash", "cuda": "gpu_assert"},
    "trap": {"cpu": "worker_crash", "cuda": "gpu_fault"},
    "endless": {"cpu": "gpu_hang", "cuda": "gpu_hang"},
}


def population(id, count, culprits, entry="failed_assert", **more):
    """Instance i has 2 i + 1 for a result, after a kernel that a 0 kills."""
    health = numpy.ones(count, "<u4")
    health[culprits] = 0
    number = numpy.arange(count, dtype="<f4")
    return gw.job(
        id, **more, count=count, outputs=["y"],
        buffers={"health": {"bytes": 4, "each": True, "data": health.tobytes()},
                 "x": {"bytes": 4, "each": True, "data": number.tobytes()},
                 "y": {"bytes": 4, "each": True, "fill": 0, "datatype": "FP32", "shape": [1]}},
        steps=[gw.step("poison", ["health"], entry=entry, grid=[1]),
               gw.step("saxpy", [gw.f32(2), "x", "y", gw.u32(1)], elements=1)])


def expected(count, culprits):
    values = 2 * numpy.arange(count, dtype="<f4")
    values[culprits] = 0
    return values


class ArrayTest(unittest.TestCase):
    def run_jobs(self, jobs, **settings):
        with tempfile.TemporaryDirectory(prefix="gpu-worker-arrays-") as name:
            folder = pathlib.Path(name)
            # for arrays of a million instances
            limits = {"launches_per_job": 10_000_000, "message_bytes": "32MiB", "result_bytes": "32MiB"}
            kafka = {"producer": {"message.max.bytes": 40_000_000}}
            status, log, _ = containment_test.run_worker(
                folder, ARGUMENTS, jobs, limits=limits | settings.pop("limits", {}), kafka=kafka, **settings)
            self.log = [line for _, line in log]
            self.deaths = sum("the executor died" in line for line in self.log)
            self.letters = containment_test.letters_of(folder, "gpu-worker-job-id", "dlq.error.code")
            self.assertEqual(status, JOBS_FAILED if self.letters else 0, "\n".join(self.log[-40:]))
            results = list(gw.read_results(folder / "results"))
            self.assertCountEqual([result["id"] for result in results], [job["id"] for job in jobs])
            return {result["id"]: result for result in results}

    def assert_partial(self, result, count, culprits, code):
        self.assertEqual(result["status"], "partial", result.get("error"))
        self.assertEqual([(one["instance"], one["code"]) for one in result["failed"]],
                         [(culprit, code) for culprit in sorted(culprits)])
        self.assertTrue(all(one["message"] for one in result["failed"]))
        self.assertEqual(result["error"]["code"], "instances_failed")
        with self.assertRaises(gw.JobFailed) as caught:
            gw.arrays(result)
        self.assertEqual(caught.exception.instances, sorted(culprits))
        numpy.testing.assert_array_equal(caught.exception.arrays()["y"].ravel(), expected(count, culprits))

    def test_exactly_five_of_many_instances_are_named(self):
        count = ARGUMENTS.count
        culprits = [0, 17, count // 20, 2 * count // 3, count - 1]
        code = CODES["failed_assert"][ARGUMENTS.driver]
        singles = [population(f"one-{i}", 1, []) for i in range(20)]
        results = self.run_jobs(singles[:10] + [population("many", count, culprits)] + singles[10:])
        self.assert_partial(results["many"], count, culprits, code)
        self.assertEqual(results["many"]["telemetry"]["instances"], count)
        self.assertEqual({result["status"] for id, result in results.items() if id != "many"}, {"ok"})
        self.assertEqual(self.letters, [("many", "instances_failed")])
        self.assertLessEqual(self.deaths, 1 + 4 * len(culprits))

    def test_every_kind_of_death_is_put_down_to_its_instance(self):
        culprits = {entry: [3, 300] for entry in CODES} | {"endless": [300]}  # each search waits for hangs
        jobs = [population(f"{entry}", 500, culprits[entry], entry, timeout_ms=2000 if entry == "endless" else 60_000)
                for entry in CODES]
        results = self.run_jobs(jobs)
        for entry, codes in CODES.items():
            self.assert_partial(results[entry], 500, culprits[entry], codes[ARGUMENTS.driver])
        self.assertCountEqual(self.letters, [(entry, "instances_failed") for entry in CODES])

    def test_an_array_with_too_many_culprits_is_given_up(self):
        code = CODES["failed_assert"][ARGUMENTS.driver]
        results = self.run_jobs([population("few", 100, [1, 50]), population("many", 100, [1, 50, 99])],
                                limits={"convictions_per_job": 2})
        self.assert_partial(results["few"], 100, [1, 50], code)
        self.assertEqual(results["many"]["status"], "error")
        self.assertEqual(results["many"]["outputs"], [])
        self.assertCountEqual(self.letters, [("few", "instances_failed"), ("many", code)])

    def test_an_array_of_culprits_alone_is_convicted_whole(self):
        code = CODES["failed_assert"][ARGUMENTS.driver]
        results = self.run_jobs([population("a", 1, [0]), population("b", 3, [0, 1, 2])])
        self.assertEqual({result["error"]["code"] for result in results.values()}, {code})

    def test_large_outputs_of_a_partial_result_go_to_the_blob_store(self):
        results = self.run_jobs([population("a", 1000, [5])], results={"inline_max_bytes": 100})
        self.assertEqual(results["a"]["status"], "partial")
        self.assertIn("blob", results["a"]["outputs"][0])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *REST])
