#!/usr/bin/env python3
"""Jobs of one kernel that take as long as their data says: quick ones tell the worker that many of them may share a
batch, and then come as many slow ones, each well within its time-out. A batch of them is killed once at most.
usage: uneven_test.py BUILD_FOLDER [--driver cpu|cuda] [--rounds N]"""

import argparse
import os
import pathlib
import sys
import tempfile

import numpy

import containment_test
import gpu_worker as gw

TIMEOUT_MS, SLOW_MS = 2000, 300  # of a job, and what a slow one takes
QUICK, SLOW = 200, 24
PROBE = 2_000_000  # turns of the loop by which the others are measured


def job(id, entry, number, grid, **more):
    return gw.job(id, buffers={"y": gw.upload(numpy.full(1, number, "<u4"))}, outputs=["y"], **more,
                  steps=[gw.step("poison", ["y"], entry=entry, grid=[grid])])


def slow_turns(arguments, grid):
    """For how many turns a job spins that takes SLOW_MS."""
    measured, _ = run(arguments, [job("probe", "spin", PROBE, grid, timing=True)])
    return int(PROBE * SLOW_MS * 1e6 / measured["probe"]["telemetry"]["device_ns"])


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path, help="the build folder")
    parser.add_argument("--driver", default=os.environ.get("GPU_WORKER_TEST_DRIVER", "cpu"))
    parser.add_argument("--rounds", type=int, default=4)
    return parser.parse_args()


def run(arguments, jobs):
    """Results by id, and the log."""
    with tempfile.TemporaryDirectory(prefix="gpu-worker-uneven-") as name:
        folder = pathlib.Path(name)
        settings = {"lanes": 1, "lane_depth": 1, "suspend": {"convictions": 10}}
        _, log, _ = containment_test.run_worker(folder, arguments, jobs, **settings)
        return {result["id"]: result for result in gw.read_results(folder / "results")}, [line for _, line in log]


def main():
    arguments = parse_arguments()
    # On a GPU so many blocks that jobs do not run side by side. On a CPU jobs sleep: other tests would slow them down.
    entry, grid = ("nap", 1) if arguments.driver == "cpu" else ("spin", 1 << 14)
    quick, slow = (0, SLOW_MS) if arguments.driver == "cpu" else (1, slow_turns(arguments, grid))
    jobs = []
    for number in range(arguments.rounds):
        jobs += [job(f"quick-{number}-{n}", entry, quick, grid, timeout_ms=TIMEOUT_MS) for n in range(QUICK)]
        jobs += [job(f"slow-{number}-{n}", entry, slow, grid, timeout_ms=TIMEOUT_MS) for n in range(SLOW)]
    results, log = run(arguments, jobs)
    kills = sum("killing" in line for line in log)
    failed = {id: result["error"]["code"] for id, result in results.items() if result["status"] != "ok"}
    print(f"{arguments.driver}: {arguments.rounds} rounds of {QUICK} quick and {SLOW} slow jobs: {kills} batches killed; "
          f"failed: {failed}")
    is_good = kills <= 1 and not failed and len(results) == len(jobs)
    if not is_good:
        print("the end of the log:", *log[-60:], sep="\n  ")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
