#!/usr/bin/env python3
"""Two programs as tenants, one with secrets, one that reads on behind its own buffers to the end of its slab (on the
device, or pinned and mapped) or block of the pool; and a third one that kills the executor, again and again. Nothing
of the secrets is found: not after other batches, not after a death, not by the next worker.
usage: isolation_deaths_test.py BUILD_FOLDER [--driver cpu|cuda]"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts/python"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "containment"))
import gpu_worker as gw
from poison import is_verdict, poisonous
from worker_environment import for_faults

WORKER_TIMEOUT_S = 300
SECRET = 0x5EC2E7A95B3D1F47
SECRETS = numpy.full(64, SECRET, "<u8")
SLAB_BYTES = 64 << 10
LARGE_BYTES = 256 << 10  # of a buffer that does not fit a slab
BLOCK_BYTES = 512 << 10  # of the pool, with its other buffer, which takes 256 bytes in front of it
IN_FLIGHT = 8
JOBS_FAILED = 7
RUNS_MAX = 20  # whether a search finds what is there is up to which lane's slab it gets


def keep(id, entry):
    """A job with secrets in its input, output and argument."""
    return gw.job(
        id, buffers={"from": gw.upload(SECRETS), "to": gw.zeros(SECRETS.shape, "<u8")}, outputs=["to"],
        steps=[gw.step("keeper", ["from", "to", gw.u64(SECRET), gw.u32(SECRETS.size)], entry=entry, elements=SECRETS.size)])


def keep_large(id):
    words = LARGE_BYTES // 8
    buffers = {"from": gw.zeros((words,), "<u8"), "to": gw.zeros((words,), "<u8")}  # the kernel fills in the secret
    return gw.job(
        id, buffers=buffers, outputs=[{"buffer": "to", "offset": 0, "bytes": 1024}],
        steps=[gw.step("keeper", ["from", "to", gw.u64(SECRET), gw.u32(words)], entry="keep", elements=words)])


def search(id, entry, from_bytes, memory_bytes):
    buffers = {"found": gw.zeros((1,), "<u4"), "from": gw.zeros((from_bytes // 8,), "<u8")}
    args = ["found", "from", gw.u64(memory_bytes - 256), gw.u64(SECRET ^ 0xFFFFFFFFFFFFFFFF)]
    return gw.job(id, buffers=buffers, outputs=["found"], steps=[gw.step("probe", args, entry=entry, grid=[8])])


def keepers(name):
    return [keep(f"keep-{name}-a", "keep"), keep(f"keep-{name}-b", "keep_streamed"), keep_large(f"keep-{name}-c")]


def searches(name):
    return [
        search(f"search-{name}-slab", "search_on", 8, SLAB_BYTES),
        search(f"search-{name}-mapped", "search_on_streamed", 8, SLAB_BYTES),
        search(f"search-{name}-block", "search_on", LARGE_BYTES, BLOCK_BYTES),
    ]


def poisonous_among_keepers(name):
    """So far from any search that none is a suspect: then its buffers would stand in blocks of their own."""
    before, behind = ([job for n in range(IN_FLIGHT) for job in keepers(f"{name}-{side}-{n}")] for side in ("before", "behind"))
    return before + [poisonous(f"poison-{name}", "bad_address")] + behind


def write_config(folder, arguments, isolation):
    programs = folder / "programs"
    if not programs.exists():
        programs.mkdir()
        tests = arguments.build / "tests"
        for program in (tests / "containment/poison", tests / "hardening/isolation/probe", tests / "hardening/isolation/keeper"):
            (programs / program.name).symlink_to(program.resolve())
    path = folder / "config.yaml"
    path.write_text(json.dumps({  # JSON is YAML
        "driver": arguments.driver, "lanes": 2, "lane_slab_bytes": SLAB_BYTES,
        "batch": {"jobs": 1, "isolation": isolation},  # so that a job's own buffers are the first in its slab
        "limits": {"jobs_in_flight": IN_FLIGHT},
        "programs": {"dir": str(programs)}, "state": {"dir": str(folder / "state")},
    }))
    return path


def run_worker(folder, arguments, isolation, name, jobs):
    """The results by id."""
    gw.write_jobs(folder / f"{name}-jobs", jobs)
    command = [arguments.build / "bin/gpu-worker", "run", "--config", write_config(folder, arguments, isolation)]
    for what in ("jobs", "results", "dead-letters"):
        command += [f"--{what}", folder / f"{name}-{what}"]
    worker = subprocess.run(
        command, env=for_faults(), stderr=subprocess.PIPE, text=True, errors="replace", timeout=WORKER_TIMEOUT_S)
    results = {result["id"]: result for result in gw.read_results(folder / f"{name}-results")}
    if worker.returncode not in (0, JOBS_FAILED) or len(results) != len(jobs):
        sys.exit(f"the worker ended with {worker.returncode} and {len(results)} of {len(jobs)} results:\n{worker.stderr}")
    return results


def sum_found(results):
    """Words by where they were looked for."""
    found = {"slab": 0, "mapped": 0, "block": 0}
    for id, result in results.items():
        if id.startswith("search-"):
            if result["status"] != "ok":
                sys.exit(f"{id}: {result['error']}")
            found[id.rpartition("-")[2]] += int(gw.arrays(result)["found"][0])
    return found


def run_both(arguments, isolation):
    """What was found among secrets and deaths, and by the next worker, behind one that died of its last job."""
    with tempfile.TemporaryDirectory(prefix="gpu-worker-isolation-") as name:
        folder = pathlib.Path(name)
        jobs = []
        for n in range(8):
            jobs += keepers(n) + searches(n)
            if n % 4 == 3:
                jobs += poisonous_among_keepers(n)
        results = run_worker(folder, arguments, isolation, "among", jobs + searches("last"))
        code = "worker_crash" if arguments.driver == "cpu" else "gpu_illegal_address"
        if not all(is_verdict(result, code) for id, result in results.items() if id.startswith("poison-")):
            sys.exit("the poisonous jobs did not kill their executors")
        among = sum_found(results)
        last = [job for n in range(8) for job in keepers(n)] + [poisonous("poison-last", "bad_address")]
        run_worker(folder, arguments, isolation, "last", last)
        after = sum_found(run_worker(folder, arguments, isolation, "after", [job for n in range(8) for job in searches(n)]))
    print(f"isolation {isolation}: words found among secrets and deaths {among}, by the next worker {after}")
    return among, after


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path, help="the build folder")
    parser.add_argument("--driver", default=os.environ.get("GPU_WORKER_TEST_DRIVER", "cpu"))
    arguments = parser.parse_args()
    isolated = run_both(arguments, "program")
    if any(sum(found.values()) for found in isolated):
        return "a tenant found another's secrets"
    has_found = set()
    for _ in range(RUNS_MAX):
        shared, _ = run_both(arguments, "none")  # what the next worker then finds is the driver's affair
        has_found |= {where for where, words in shared.items() if words > 0}
        if has_found == set(shared):
            return 0
    return f"without isolation something is found only in {sorted(has_found)}: the search does not work"


if __name__ == "__main__":
    sys.exit(main())
