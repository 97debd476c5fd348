"""Runs the sweep of sweep.py on a worker of its own and checks every result. scripts/quickstart calls it."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import time

import gpu_worker as gw

import sweep

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULT_TIMEOUT_S = 120


def say(text):
    print(f"quickstart: {text}", flush=True)


def choose_driver(wanted, binary):
    if wanted:
        return wanted, "as asked"
    if subprocess.run([binary, "devices"], capture_output=True).returncode == 0:
        return "cuda", "gpu-worker devices lists a GPU"
    return "cpu", "no GPU answers here"


def print_next(options, folder):
    """Prints the commands to type next. A test types them."""
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


def run_jobs(client, jobs):
    """Returns futures, and the seconds until all are done."""
    started = time.monotonic()
    futures = [client.submit(job) for job in jobs]
    for _ in gw.as_completed(futures, RESULT_TIMEOUT_S, progress=True):
        pass
    return futures, time.monotonic() - started


def compare_array(array, points, futures):
    """A line for each output that is not byte for byte that of the single job."""
    try:
        outputs = array.result(0)
    except gw.JobFailed as failed:
        return [str(failed)]
    return [
        f"{array.name}: the {name} of {point.id} differ from those of the single job"
        for number, (point, future) in enumerate(zip(points, futures)) if future.exception() is None
        for name, single in future.result().items() if outputs[name][number].tobytes() != single.tobytes()
    ]


def compare_all(points, dataset, futures):
    """Every comparison, and a line for each job that failed or disagrees."""
    comparisons, faults = [], []
    for point, future in zip(points, futures):
        try:
            comparison = sweep.compare(point, dataset, future.result())
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
    binary = options.build / "bin/gpu-worker"
    driver, why = choose_driver(options.driver, binary)
    say(f"driver {driver} ({why}), broker {'kafka' if options.bootstrap_servers else 'embedded'}")
    folder = pathlib.Path(options.folder).absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    dataset, points = sweep.read_dataset(options.data), sweep.grid()
    with gw.local(driver, binary=binary, servers=options.bootstrap_servers, folder=folder) as client:
        x, y = client.static(dataset.x), client.static(dataset.y)
        futures, seconds = run_jobs(client, [sweep.make_job(point, x, y) for point in points])
        whole = sweep.make_array("logreg-array", points, x, y)  # it may take as long as all of them
        (array,), array_seconds = run_jobs(client, [{**whole, "timeout_ms": 1000 * RESULT_TIMEOUT_S}])

    comparisons, faults = compare_all(points, dataset, futures)
    if comparisons:
        print_table(comparisons)
    say(f"{len(points)} jobs of {sweep.EPOCHS} epochs in {seconds:.1f} s on the {driver} driver")
    say(f"the same afterwards as one array job of {len(points)} instances in {array_seconds:.1f} s")
    array_faults = compare_array(array, points, futures)
    for fault in faults + array_faults:
        print(f"quickstart: {fault}", file=sys.stderr)
    if not faults + array_faults:
        print_next(options, folder)
        print()
    say(f"{len(points) - len(faults)} of {len(points)} jobs ok" + (", the array job is not" if array_faults else ""))
    return 1 if faults + array_faults else 0


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
    except (ConnectionError, FileNotFoundError, TimeoutError) as failure:
        print(f"quickstart: failed: {failure}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
