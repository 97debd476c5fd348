#!/usr/bin/env python3
"""What a worker answers to the golden runs: at least what stands beside each. usage: runs_test.py BINARY"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import msgpack

RUNS = pathlib.Path(__file__).parents[2] / "schemas/golden/runs"
CONFIG = {"driver": "cpu", "ordering": "key", "lanes": 1, "retry": {"max_attempts": 1}}


def run(binary, jobs):
    """The results, in the order of the jobs."""
    with tempfile.TemporaryDirectory(prefix="gpu-worker-runs-") as name:
        folder = pathlib.Path(name)
        (folder / "worker.yaml").write_text(json.dumps(CONFIG | {"state": {"dir": name}}))
        done = subprocess.run([binary, "run", "--config", folder / "worker.yaml", "--jobs", jobs, "--results", folder / "results"],
                              capture_output=True, text=True, timeout=240)
        if done.returncode not in (0, 7):
            raise AssertionError(done.stderr)
        with open(folder / "results", "rb") as results:
            return sorted(msgpack.Unpacker(results), key=lambda result: result["source"]["offset"])


def plain(value):
    """As in the sidecars: bytes are hex."""
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def contains(found, wanted):
    """Whether the maps of `found` have all that those of `wanted` have. What is no map is the same."""
    if isinstance(wanted, dict) and set(wanted) != {"hex"}:
        return isinstance(found, dict) and all(key in found and contains(found[key], wanted[key]) for key in wanted)
    return found == wanted


class Runs(unittest.TestCase):
    binary = ""

    def test_a_worker_answers_what_stands_beside_each(self):
        names = sorted(path.stem for path in RUNS.glob("*.msgpack"))
        self.assertGreater(len(names), 20)
        for name in names:
            with self.subTest(name):
                wanted = json.loads((RUNS / f"{name}.json").read_text(encoding="utf-8"))["results"]
                found = plain(run(self.binary, RUNS / f"{name}.msgpack"))
                self.assertEqual(len(found), len(wanted))
                for result, part in zip(found, wanted):
                    telemetry = result["telemetry"]  # an array sums its slices, each of which is a batch of one job
                    self.assertEqual(telemetry["batch"]["jobs"], telemetry.get("slices", telemetry["batch"]["jobs"]))
                    shown = {key: result.get(key) for key in part} | {"error": result.get("error")}
                    self.assertTrue(contains(result, part), f"{shown} instead of {part}")


if __name__ == "__main__":
    Runs.binary = sys.argv.pop(1)
    unittest.main()
