#!/usr/bin/env python3
"""What a poisoned GPU costs the one beside it: two workers, each with a device and a file of the same jobs; every other
round one of the files has poisonous jobs among its own. Reports how fast the other one is; no time is asserted, only
that every job is answered as it should be.
usage: two_devices_test.py BUILD_FOLDER [--driver cpu|cuda] [--count N] [--rounds N]"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import sys
import tempfile

from containment_test import letters_of, run_worker
from neighbours import KINDS, WORKERS, print_rates
from poison import Mixture

import gpu_worker as gw
from worker_process import JOBS_FAILED

POISON = 5  # each kind once
LAUNCHES = 200  # of each job, so that the devices and not the machine's cores decide how fast jobs are


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path, help="the build folder")
    parser.add_argument("--driver", default=os.environ.get("GPU_WORKER_TEST_DRIVER", "cpu"))
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=1, help="with and without poison, each")
    return parser.parse_args()


def run_device(folder, arguments, device, mixture):
    """Jobs a second, and what went wrong."""
    folder.mkdir()
    status, log, grown = run_worker(folder, arguments, mixture.long_jobs(LAUNCHES), devices=[device], cpu_driver={"devices": 2})
    wrong = mixture.check(
        list(gw.read_results(folder / "results")), letters_of(folder, "gpu-worker-job-id", "dlq.error.code"))
    wrong = {name: places[:10] for name, places in wrong.items() if places}
    if status != (JOBS_FAILED if mixture.poison else 0):
        wrong["status"] = (status, [line for _, line in log[-20:]])
    return mixture.count / max(grown[-1] - grown[0], 0.001), wrong  # all may have been seen at once


def run_round(arguments, kind, seed):
    """Of both workers, which run side by side: jobs a second, and what went wrong."""
    poison = (POISON if kind == "with poison" else 0, 0)
    mixtures = [Mixture(arguments.count, count, arguments.driver, seed) for count in poison]
    with tempfile.TemporaryDirectory(prefix="gpu-worker-containment-") as name, \
            concurrent.futures.ThreadPoolExecutor() as both:
        folders = [pathlib.Path(name) / who.replace(" ", "-") for who in WORKERS]
        return list(both.map(run_device, folders, (arguments, arguments), (0, 1), mixtures))


def main():
    arguments = parse_arguments()
    rates, is_good = collections.defaultdict(list), True
    for seed in range(arguments.rounds):
        for kind in KINDS:
            for who, (rate, wrong) in zip(WORKERS, run_round(arguments, kind, seed)):
                rates[who, kind].append(rate)
                if wrong:
                    is_good = False
                    print(f"round {seed}, {kind}, {who}: {wrong}")
    print_rates(
        f"{arguments.driver} driver, two workers with a device each and {arguments.count} jobs of {LAUNCHES + 1} launches a "
        f"round, in every other round {POISON} of the first one's poisonous; {arguments.rounds} interleaved rounds of "
        "both kinds", rates)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
