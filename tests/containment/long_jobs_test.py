"""What a long job costs the others, and they it, when an executor dies: usage: long_jobs_test.py BUILD_FOLDER"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts/python"))
import gpu_worker as gw

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
PROGRAMS = ("tests/containment/poison", "tests/differential/mix")
TIMEOUT_MS, LONG_MS, OTHERS = 300, 6000, 30
LCG = 1664525, 1013904223


def draws(name, **more):
    """Rounds without an end of their own."""
    return gw.job(
        name, buffers={"state": {"bytes": 8}, "done": {"bytes": 4}}, outputs=["state"], repeat=2**32 - 1,
        steps=[gw.step("mix", ["state", "done", {"u32": 0}], entry="draw", grid=[1])], **more)  # fmt: skip


def hanging(name, **more):
    return gw.job(
        name, buffers={"y": {"bytes": 4}}, outputs=[], timeout_ms=TIMEOUT_MS, **more,
        steps=[gw.step("poison", ["y"], entry="endless", grid=[1])])  # fmt: skip


def drawn(rounds):
    number = 0
    for _ in range(rounds):
        number = (number * LCG[0] + LCG[1]) % 2**32
    return number


class LongJobs(unittest.TestCase):
    def run_jobs(self, jobs):
        """The results in the order in which they were written, and what the worker has logged."""
        with tempfile.TemporaryDirectory(prefix="gpu-worker-long-") as name:
            folder = pathlib.Path(name)
            (folder / "programs").mkdir()
            for program in PROGRAMS:
                (folder / "programs" / pathlib.Path(program).name).symlink_to(BUILD / program)
            config = {"driver": os.environ.get("GPU_WORKER_TEST_DRIVER", "cpu"),
                      "programs": {"dir": str(folder / "programs")}, "state": {"dir": str(folder / "state")}}
            (folder / "config").write_text(json.dumps(config))
            gw.write_jobs(folder / "jobs", jobs)
            done = subprocess.run(
                [BUILD / "bin/gpu-worker", "run", "--config", folder / "config", "--jobs", folder / "jobs",
                 "--results", folder / "results"], capture_output=True, text=True, timeout=200, check=False)
            return list(gw.read_results(folder / "results")), done.stderr

    def test_one_that_was_on_the_device_when_another_hung_runs_beside_others_once_it_has_passed_that_round(self):
        jobs = [draws("long", time_ms=LONG_MS), hanging("poison")]
        jobs += [draws(f"other-{n}", time_ms=20) for n in range(OTHERS)]
        results, log = self.run_jobs(jobs)
        by_id = {result["id"]: result for result in results}
        self.assertEqual(by_id["poison"]["error"]["code"], "gpu_hang", log)
        self.assertEqual({by_id[job["id"]]["status"] for job in jobs if job["id"] != "poison"}, {"ok"}, log)
        self.assertEqual([result["id"] for result in results][-1], "long", "nobody waits for its end")
        self.assertEqual(by_id["long"]["ended"], "time")

    def test_one_whose_round_takes_longer_than_it_may_is_convicted_and_costs_nobody_else_an_answer(self):
        jobs = [hanging("poison", repeat=100, time_ms=60000), *(draws(f"other-{n}", time_ms=20) for n in range(OTHERS))]
        results, log = self.run_jobs(jobs)
        by_id = {result["id"]: result for result in results}
        self.assertEqual(by_id["poison"]["error"]["code"], "gpu_hang", log)
        self.assertEqual(sum(result["status"] == "ok" for result in results), OTHERS)
        for result in results:
            if result["status"] == "ok":
                output = bytes(result["outputs"][0]["data"])
                self.assertEqual(int.from_bytes(output[:4], "little"), result["rounds"])
                self.assertEqual(int.from_bytes(output[4:], "little"), drawn(result["rounds"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
