#!/usr/bin/env python3
"""One poisonous job costs itself: thousands of jobs, some of which kill the executor that runs them, through a
whole worker and the file source. Prints who was lost, convicted and named, and how long a death held the others up.
usage: containment_test.py BUILD_FOLDER [--driver cpu|cuda] [--count N] [--poison N] [--spare] [--seed N]"""

import argparse
import bisect
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from poison import HANG_TIMEOUT_MS, Mixture

import gpu_worker as gw
from worker_environment import for_faults
from worker_process import JOBS_FAILED

WORKER_TIMEOUT_S = 600
LANES = 8
SLAB = "512KiB"  # of each lane: most of what the start after a death costs


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path, help="the build folder")
    parser.add_argument("--driver", default=os.environ.get("GPU_WORKER_TEST_DRIVER", "cpu"))
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--poison", type=int, default=20)
    parser.add_argument("--spare", action="store_true", help="a spare takes over at each death")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    return parser.parse_args()


def link_programs(build, folder):
    folder.mkdir()
    for program in (build / "tests/containment/poison", build / "share/gpu-worker/programs/saxpy"):
        (folder / program.name).symlink_to(program.resolve())
    return folder


def write_config(folder, arguments, settings):
    settings = {
        "driver": arguments.driver,
        "lanes": LANES,
        "lane_slab_bytes": SLAB,
        "programs": {"dir": str(link_programs(arguments.build, folder / "programs"))},
        "state": {"dir": str(folder / "state")},
        "blobs": {"dir": str(folder / "blobs")},
        "suspend": {"convictions": 0},  # each poisonous job is to be convicted by itself
        "limits": {"convictions_per_job": 2},  # all instances of a poisonous array are culprits
    } | settings
    (folder / "blobs").mkdir()
    path = folder / "config.yaml"
    path.write_text(json.dumps(settings))  # JSON is YAML
    return path


class Growth(threading.Thread):
    """Notes when the file of results grew."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path = path
        self.at = []
        self.is_over = threading.Event()

    def run(self):
        size, is_last = 0, False
        while not is_last:
            is_last = self.is_over.wait(0.002)
            now = self.path.stat().st_size if self.path.exists() else 0
            if now > size:
                self.at.append(time.time())
            size = now

    def stop(self):
        self.is_over.set()
        self.join()
        return self.at


def run_worker(folder, arguments, jobs, environment=None, **settings):
    """The worker's status, its log as lines with times, and when results came."""
    gw.write_jobs(folder / "jobs", jobs)
    command = [arguments.build / "bin/gpu-worker", "run", "--config", write_config(folder, arguments, settings)]
    for name in ("jobs", "results", "dead-letters"):
        command += [f"--{name}", folder / name]
    growth = Growth(folder / "results")
    growth.start()
    with subprocess.Popen(
            command, env=environment or for_faults(), stderr=subprocess.PIPE, text=True, errors="replace") as worker:
        timer = threading.Timer(WORKER_TIMEOUT_S, worker.kill)
        timer.start()
        log = [(time.time(), line.rstrip()) for line in worker.stderr]
        status = worker.wait()
        timer.cancel()
    return status, log, growth.stop()


def hold_ups(log, grown):
    """Seconds from each death to the next result; none came after the last ones."""
    deaths = [at for at, line in log if "the executor died" in line]
    waits = ([at for at in grown if at > death] for death in deaths)
    return [later[0] - death for death, later in zip(deaths, waits) if later]


def silences(log, grown):
    """Seconds without a result around each death: from before the fault, and with the time that a hang may take."""
    deaths = [at for at, line in log if "the executor died" in line]
    nexts = [bisect.bisect(grown, death) for death in deaths]
    return [grown[i] - grown[i - 1] for i in nexts if 0 < i < len(grown)]


def letters_of(folder, *names):
    """The values of the named headers, for each dead letter."""
    lines = [json.loads(line) for line in (folder / "dead-letters").read_text().splitlines()]
    headers = [dict(letter["headers"]) for letter in lines]
    return [tuple(header[name] for name in names) for header in headers]


def print_table(arguments, mixture, wrong, log, grown):
    print(f"seed {arguments.seed}: {mixture.count} jobs, {len(mixture.poison)} poisonous, {LANES} lanes, {arguments.driver} driver")
    for place, entry in sorted(mixture.poison.items()):
        print(f"  job-{place:<6} {entry:<14} {mixture.codes[place]}")
    for name, places in wrong.items():
        print(f"  {name:<20} {len(places)}{'  ' + str(places[:10]) if places else ''}")
    for what, times in (("from a death to the next result", hold_ups(log, grown)),
                        ("from the last result before it to the next", silences(log, grown))):
        if times:
            print(f"  {len(times)} deaths, {what}: median {statistics.median(times) * 1000:.0f} ms, "
                  f"longest {max(times) * 1000:.0f} ms")
    print(f"  (jobs that hang may take {HANG_TIMEOUT_MS} ms)")


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="gpu-worker-containment-") as name:
        folder = pathlib.Path(name)
        mixture = Mixture(arguments.count, arguments.poison, arguments.driver, arguments.seed)
        status, log, grown = run_worker(folder, arguments, mixture.jobs, executors={"spare": arguments.spare})
        wrong = mixture.check(
            list(gw.read_results(folder / "results")), letters_of(folder, "gpu-worker-job-id", "dlq.error.code"))
        print_table(arguments, mixture, wrong, log, grown)
        is_good = status == (JOBS_FAILED if mixture.poison else 0) and not any(wrong.values())
        if not is_good:
            print(f"the worker ended with {status}; the end of its log:", *[line for _, line in log[-60:]], sep="\n  ")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
