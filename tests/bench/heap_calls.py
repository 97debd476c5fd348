"""How often the worker asks its heap for memory, of each small job: from a file to /dev/null, two runs of N and of 2 N jobs,
of which the difference is what N jobs cost. A library that is loaded first counts the calls (heap_calls.c).
usage: heap_calls.py BUILD_FOLDER LIBRARY [--driver cuda|cpu] [--jobs N] [--elements N]"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/python"))

import gpu_worker as gw
import msgpack
import numpy


def job(number, elements):
    ones = numpy.ones(elements, "<f4")
    return msgpack.packb(gw.job(
        f"job-{number}", buffers={"x": gw.upload(ones), "y": gw.upload(ones)},
        steps=[gw.step("saxpy", [gw.f32(2), "x", "y", gw.u32(elements)], elements=elements)], outputs=["y"]))


def count_calls(options, folder, jobs):
    """Calls that took memory, and calls that returned it."""
    messages, counts = folder / f"jobs-{jobs}", folder / f"calls-{jobs}"
    messages.write_bytes(b"".join(job(number, options.elements) for number in range(jobs)))
    subprocess.run(
        [options.build / "bin/gpu-worker", "run", "--no-supervisor", "--config", folder / "worker.yaml", "--jobs", messages,
         "--results", "/dev/null"],
        check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "LD_PRELOAD": str(options.library.resolve()), "HEAP_CALLS": str(counts)})
    lines = [tuple(map(int, line.split())) for line in counts.read_text().splitlines()]
    return tuple(map(sum, zip(*lines)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--driver", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--jobs", type=int, default=20000)
    parser.add_argument("--elements", type=int, default=8, help="of each of a job's two inputs, of 4 bytes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "worker.yaml").write_text(json.dumps({"driver": options.driver, "state": {"dir": str(folder / "state")}}))
        few, many = (count_calls(options, folder, jobs) for jobs in (options.jobs, 2 * options.jobs))
    taken, returned = ((after - before) / options.jobs for before, after in zip(few, many))
    print(f"heap calls of a job: {taken:.2f} that take memory, {returned:.2f} that return it")


if __name__ == "__main__":
    main()
