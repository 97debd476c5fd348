"""The main job at default settings: logistic regressions of 300 epochs against one static data set.

Prints jobs/s of N of them from a file, start-up and the end excluded, with the sizes of the batches; the same as one array job, whose
results are compared with those of the single jobs; and how long quick jobs take from
sending to result, alone and beside a stream of such trainings, through pipes.
usage: main_job.py BUILD_FOLDER [--driver cuda|cpu] [--jobs N ...] [--slow-per-s R ...] [--pytorch]"""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/python"))

import gpu_worker as gw
import msgpack
import numpy
import sweep

PEER = ROOT / "tests/bench/peers/pytorch_batch.py"
QUICK_PER_S = 500
QUICK_ELEMENTS = 1024
WARM_UP_JOBS, WARM_UP_S = 200, 3
DONE = re.compile(r" info done: .* in ([0-9.]+) s$", re.MULTILINE)


class Bench:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.dataset = sweep.read_dataset(ROOT / "config/examples/breast_cancer.csv")
        self.statics = {"x": gw.static(self.dataset.x), "y": gw.static(self.dataset.y)}
        for array in (self.dataset.x, self.dataset.y):
            content = array.tobytes()
            digest = hashlib.sha256(content).hexdigest()
            blob = folder / "blobs" / digest[:2] / digest
            blob.parent.mkdir(parents=True, exist_ok=True)
            blob.write_bytes(content)
        (folder / "worker.yaml").write_text(json.dumps({
            "driver": options.driver, "limits": {"result_bytes": "256MiB", "message_bytes": "64MiB"}, "blobs": {"dir": str(folder / "blobs")}, "state": {"dir": str(folder / "state")}}))

    @staticmethod
    def point(number):
        return 1e-3 * 1.02 ** (number % 256), 1e-6 * 1.2 ** (number // 256 % 64)

    def training(self, number):
        rate, l2 = self.point(number)
        job = sweep.make_job(sweep.Point(f"training-{number}", rate, l2), self.dataset.x, self.dataset.y)
        return msgpack.packb({**job, "buffers": {**job["buffers"], **self.statics}})

    def array(self, count):
        """The first `count` trainings as one job."""
        points = [sweep.Point("", *self.point(number)) for number in range(count)]
        job = sweep.make_array("array", points, self.dataset.x, self.dataset.y)
        return msgpack.packb({**job, "buffers": {**job["buffers"], **self.statics}})

    @staticmethod
    def quick(name):
        return msgpack.packb(gw.job(
            name,
            buffers={"x": gw.upload(numpy.ones(QUICK_ELEMENTS, "<f4")), "y": gw.upload(numpy.ones(QUICK_ELEMENTS, "<f4"))},
            steps=[gw.step("saxpy", [gw.f32(2), "x", "y", gw.u32(QUICK_ELEMENTS)], elements=QUICK_ELEMENTS)],
            outputs=["y"]))

    def start(self, jobs, results):
        return subprocess.Popen(
            [self.options.build / "bin/gpu-worker", "run", "--no-supervisor", "--config", self.folder / "worker.yaml",
             "--jobs", jobs, "--results", results],
            stdin=subprocess.DEVNULL, stderr=(self.folder / "log").open("w"))

    def end(self, worker):
        """Every job must have been answered well, or the worker ends with a code."""
        log = self.folder / "log"
        if worker.wait(600) != 0:
            sys.exit(f"main_job: a job or the worker failed:\n{log.read_text()}")
        return log.read_text()

    # many trainings from a file

    def run_file(self, messages):
        """The results, and the seconds that they took."""
        jobs, output = self.folder / "jobs", self.folder / "results"
        jobs.write_bytes(messages)
        log = self.end(self.start(jobs, output))
        with output.open("rb") as file:
            results = list(msgpack.Unpacker(file, max_buffer_size=0))
        return results, float(DONE.search(log)[1])

    def run_sweep(self, count):
        results, seconds = self.run_file(b"".join(map(self.training, range(count))))
        self.run_array(count, {int(result["id"].removeprefix("training-")): result for result in results})
        batches = {result["telemetry"]["batch"]["id"]: result["telemetry"]["batch"]["jobs"] for result in results}
        sizes = sorted(collections.Counter(batches.values()).items())
        print(f"{count} trainings: {seconds:.3f} s, {len(results) / seconds:,.0f} jobs/s, batches of " +
              ", ".join(f"{size} ({times} x)" for size, times in sizes), flush=True)

    def run_array(self, count, singles):
        [result], seconds = self.run_file(self.array(count))
        telemetry = result["telemetry"]
        for output in result["outputs"]:
            size = len(output["data"]) // count
            for number, single in singles.items():
                [alone] = [one["data"] for one in single["outputs"] if one["name"] == output["name"]]
                if output["data"][number * size : (number + 1) * size] != alone:
                    sys.exit(f"main_job: {output['name']} of instance {number} is not that of the single job")
        print(f"the same as one array: {seconds:.3f} s, {count / seconds:,.0f} instances/s, {telemetry['slices']} slices, "
              f"{telemetry['batch']['launches']} launches; equal byte for byte", flush=True)

    # quick jobs beside trainings

    def run_quick(self, slow_per_s):
        """The milliseconds of each quick job."""
        pipes = [self.folder / name for name in ("jobs.pipe", "results.pipe")]
        for pipe in pipes:
            pipe.unlink(missing_ok=True)
            os.mkfifo(pipe)
        worker = self.start(*pipes)
        arrived = {}
        reader = threading.Thread(target=self._read, args=(pipes[1], arrived))
        reader.start()
        with pipes[0].open("wb", buffering=0) as pipe:
            sent = self._send(pipe, slow_per_s)
        reader.join()
        self.end(worker)
        return numpy.array([1000 * (arrived[name] - at) for name, at in sent.items()])

    @staticmethod
    def _read(pipe, arrived):
        """Keeps no results: Python would stop for milliseconds to look through them for garbage."""
        unpacker = msgpack.Unpacker(max_buffer_size=0)
        with pipe.open("rb", buffering=0) as file:
            while chunk := file.read(1 << 20):
                now = time.monotonic()
                unpacker.feed(chunk)
                for result in unpacker:
                    arrived[result["id"]] = now

    def _send(self, pipe, slow_per_s):
        """When each quick job was sent. The first jobs of each kind are not measured."""
        trainings = [self.training(number) for number in range(1000)]
        pipe.write(b"".join(self.quick(f"warm-up-{number}") for number in range(WARM_UP_JOBS)))
        if slow_per_s > 0:
            pipe.write(b"".join(trainings[:WARM_UP_JOBS]))
        time.sleep(WARM_UP_S)
        sent, slow, started = {}, 0, time.monotonic()
        while (elapsed := time.monotonic() - started) < self.options.seconds:
            due = []
            while slow < elapsed * slow_per_s:
                due.append(trainings[slow % len(trainings)])
                slow += 1
            while len(sent) < elapsed * QUICK_PER_S:
                name = f"quick-{len(sent)}"
                due.append(self.quick(name))
                sent[name] = time.monotonic()
            pipe.write(b"".join(due))
            time.sleep(0.0005)
        return sent

    def compare_quick(self, slow_per_s):
        p99 = []
        for what, rate in ("alone", 0), (f"beside {slow_per_s:,} trainings a second", slow_per_s):
            times = self.run_quick(rate)
            p99.append(numpy.percentile(times, 99))
            print(f"{len(times)} quick jobs {what}: p50 {numpy.percentile(times, 50):.2f} ms, p99 {p99[-1]:.2f} ms", flush=True)
        print(f"p99 beside them is {p99[1] / p99[0]:.2f} times that alone", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--driver", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--jobs", type=int, nargs="*", default=[4096, 16384])
    parser.add_argument("--slow-per-s", type=int, nargs="*", default=[4000, 20000])
    parser.add_argument("--seconds", type=float, default=4, help="of each stream of quick jobs")
    parser.add_argument("--epochs", type=int, default=sweep.EPOCHS, help="of each training")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--pytorch", action="store_true", help="run peers/pytorch_batch.py in every round, too")
    options = parser.parse_args()
    sweep.EPOCHS = options.epochs
    with tempfile.TemporaryDirectory(prefix="gpu-worker-bench-") as folder:
        bench = Bench(options, pathlib.Path(folder))
        for _ in range(options.rounds):
            for count in options.jobs:
                bench.run_sweep(count)
            if options.pytorch:
                subprocess.run([sys.executable, "-B", PEER, "--rounds", "1", "--jobs", *map(str, options.jobs)], check=True)
            for rate in options.slow_per_s:
                bench.compare_quick(rate)


if __name__ == "__main__":
    main()
