"""Runs the sweep of sweep.py on a worker of its own and checks every result. scripts/quickstart calls it."""

import argparse
import ctypes
import json
import os
import pathlib
import shutil
import sys
import time

import gpu_worker as gw

import sweep
from worker_process import Failure, embedded_address, running_worker

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULT_TIMEOUT_S = 120


def say(text):
    print(f"quickstart: {text}", flush=True)


def has_cuda_device():
    """True where libcuda.so.1 opens and finds a device: the same two questions that the worker asks."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def choose_driver(wanted):
    if wanted:
        return wanted, "as asked"
    if has_cuda_device():
        return "cuda", "libcuda.so.1 found a GPU"
    return "cpu", "no GPU answers here"


def make_config(driver, bootstrap_servers, address_file, blobs):
    config = {"driver": driver, "blobs": {"dir": str(blobs)}}
    if bootstrap_servers:
        return config | {"broker": "kafka", "kafka": {"bootstrap_servers": bootstrap_servers, "group": "quickstart"}}
    return config | {"broker": "embedded", "embedded": {"address_file": str(address_file)}}


def write_yaml(path, config):
    """A key a line; what JSON calls a value is one in YAML as well."""
    lines = ["# Written by scripts/quickstart. config/README.md has every key."]
    path.write_text("\n".join(lines + [f"{key}: {json.dumps(value)}" for key, value in config.items()]) + "\n")


def print_next(options, folder):
    """What to type next, where the quickstart was started; a test does."""
    binary, config = (os.path.relpath(path) for path in (options.build / "bin/gpu-worker", folder / "worker.yaml"))
    job = os.path.relpath(ROOT / "config/examples/saxpy.yaml")
    say(f"{config} is yours to go on with. Try:")
    for command in (
        *options.first,
        f"{binary} check --config {config}",
        f"{binary} run --config {config} 2> {os.path.relpath(folder)}/worker.log &",
        f"{binary} submit --config {config} {job}",
        "kill %1",
    ):
        print(f"  {command}")


def show_progress(done, total):
    """One line that grows on a terminal, a line for each quarter in a log."""
    if sys.stdout.isatty():
        print(f"\rquickstart: {done} of {total} jobs answered", end="\n" if done == total else "", flush=True)
    elif done % (total // 4) == 0:
        say(f"{done} of {total} jobs answered")


def collect(client, worker, jobs):
    """Sends the jobs; {id: result} and the seconds from the first job sent to the last result."""
    started = time.monotonic()
    client.submit(jobs)
    results = {}
    ids = [job["id"] for job in jobs]
    for result in client.results(ids, RESULT_TIMEOUT_S, on_wait=worker.check):
        results[result["id"]] = result
        show_progress(len(results), len(jobs))
    return results, time.monotonic() - started


def compare_all(points, dataset, results):
    """Every comparison, and a line for each job that failed or disagrees."""
    comparisons, faults = [], []
    for point in points:
        try:
            comparison = sweep.compare(point, dataset, results[point.id])
        except gw.JobFailed as failed:
            faults.append(str(failed))
            continue
        comparisons.append(comparison)
        if comparison.fault:
            faults.append(f"{point.id}: {comparison.fault}")
    return comparisons, faults


def print_table(comparisons):
    """The five lowest losses, and the highest."""
    ranked = sorted(comparisons, key=lambda comparison: comparison.loss)
    print("\n  learning rate         l2       loss  reference  accuracy  rows differing")
    for comparison in [*ranked[:5], None, *ranked[-1:]]:
        if comparison is None:
            print("            ...")
            continue
        print(
            f"  {comparison.point.learning_rate:13.5f} {comparison.point.l2:10.2e} {comparison.loss:10.6f}"
            f" {comparison.reference_loss:10.6f} {comparison.accuracy:9.4f} {comparison.rows_differing:15}"
        )
    print()


def run(options):
    driver, why = choose_driver(options.driver)
    say(f"driver {driver} ({why}), broker {'kafka' if options.bootstrap_servers else 'embedded'}")
    folder = pathlib.Path(options.folder).absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    dataset = sweep.read_dataset(options.data)
    blobs = gw.BlobStore(folder / "blobs")
    blobs.put(dataset.x)
    blobs.put(dataset.y)
    points = sweep.grid()
    jobs = [sweep.make_job(point, dataset) for point in points]

    config, address_file = folder / "worker.yaml", folder / "broker.address"
    write_yaml(config, make_config(driver, options.bootstrap_servers, address_file, blobs.folder))
    with running_worker(options.build / "bin/gpu-worker", config, folder / "worker.log") as worker:
        address = options.bootstrap_servers or embedded_address(worker, address_file)
        with gw.KafkaClient(address) as client:
            results, seconds = collect(client, worker, jobs)

    comparisons, faults = compare_all(points, dataset, results)
    if comparisons:
        print_table(comparisons)
    say(f"{len(jobs)} jobs of {sweep.ITERATIONS} iterations in {seconds:.1f} s on the {driver} driver")
    for fault in faults:
        print(f"quickstart: {fault}", file=sys.stderr)
    if not faults:
        print_next(options, folder)
        print()
    say(f"{len(jobs) - len(faults)} of {len(jobs)} jobs ok")
    return 1 if faults else 0


def main():
    parser = argparse.ArgumentParser(prog="quickstart", description=__doc__)
    parser.add_argument("--driver", choices=["cpu", "cuda"])
    parser.add_argument("--bootstrap-servers", help="a Kafka to use; without it the worker's embedded broker")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="where the worker was built")
    parser.add_argument("--folder", default=ROOT / "build/quickstart", help="emptied, then used for everything written")
    parser.add_argument("--data", default=ROOT / "config/examples/breast_cancer.csv")
    parser.add_argument(
        "--first", metavar="COMMAND", action="append", default=[], help="printed before the commands to try next")
    options = parser.parse_args()
    try:
        sys.exit(run(options))
    except (Failure, ConnectionError, TimeoutError) as failure:
        print(f"quickstart: failed: {failure}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
