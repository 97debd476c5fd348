"""What a manifest says of numbers holds in a whole worker, and a manifest that says other than its images is refused.
usage: manifests_test.py BUILD_FOLDER"""

import json
import shutil
import subprocess
import unittest

from worker_flow import BINARY, BUILD, PATIENCE_S, FlowTest, saxpy

import gpu_worker as gw
import numpy
import worker_process

SHIPPED = BUILD / "share/gpu-worker/programs"
HOSTILE = (5, 2**31, 2**32 - 1)  # of 4 elements


def floats(count):
    return gw.zeros((count,), "<f4")


def job(id, program, buffers, args, **step):
    return gw.job(id, buffers=buffers, steps=[gw.step(program, args, **step)], outputs=[list(buffers)[-1]])


def search(id, program, own_buffers, dimension, samples, grid=(1,), objective=0, **own):
    """Of one optimizer, with room for 4 points of one axis."""
    names = [*own_buffers, "best", "loss", "counts", "done"]
    names.insert(names.index("best") - 1, "population")
    elements = {"state": 5, "population": 8, "normals": 4, "trials": 8, "counts": 3}
    buffers = {name: floats(elements.get(name, 1)) for name in names}
    numbers = [gw.u32(objective), gw.u32(dimension), gw.u32(samples), gw.u64(1), *map(gw.f32, own.values())]
    return job(id, program, buffers, [*names, *numbers, gw.f32(-1), gw.f32(1), gw.f32(0), gw.u32(0)], grid=list(grid))


def hostile_jobs():
    """Of every shipped program: numbers and shapes that lead outside of their buffers."""
    table = gw.static(numpy.zeros(4, "<u4"), with_data=True)
    values = gw.static(numpy.zeros(4, "<f4"), with_data=True)
    for n in HOSTILE:
        yield job(f"saxpy {n}", "saxpy", {"x": floats(4), "y": floats(4)}, [gw.f32(2), "x", "y", gw.u32(n)], elements=4)
        yield job(f"add {n}", "bench", {"x": floats(4), "z": floats(n % 7)}, ["x", "x", "z", gw.u32(n)], elements=4)
        yield job(f"sum {n}", "reduce_sum", {"x": floats(4), "s": floats(1)}, ["x", "s", gw.u32(n)], grid=[1])
        yield job(f"vertices {n}", "bfs_csr", {"t": table, "l": gw.zeros((4,), "<u4")},
                  ["t", "t", "l", gw.u32(n), gw.u32(4)], elements=4)
        yield job(f"edges {n}", "bfs_csr", {"t": table, "l": gw.zeros((4,), "<u4")},
                  ["t", "t", "l", gw.u32(3), gw.u32(n)], elements=4)
        for rows, features in ((n, 1), (1, n), (n, n)):
            numbers = [gw.f32(1), gw.f32(1), gw.u32(rows), gw.u32(features)]
            yield job(f"train {rows} {features}", "logreg_adam", {"x": values, "w": floats(2), "m": floats(6)},
                      ["x", "x", "w", "m", *numbers, gw.u32(1)], grid=[1])
            yield job(f"measure {rows} {features}", "logreg_adam", {"x": values, "w": floats(2), "m": floats(2)},
                      ["x", "x", "w", "m", *numbers[1:]], entry="logreg_metrics", grid=[1])
        for dimension, samples in ((n, 4), (1, n), (n, n)):
            yield search(f"cma {dimension} {samples}", "sep_cma_es", ["state", "normals"], dimension, samples, sigma=1)
            yield search(f"evolve {dimension} {samples}", "differential_evolution", ["trials"], dimension, samples,
                         scale=1, crossover=1)
    yield search("a search of 2 blocks", "sep_cma_es", ["state", "normals"], 1, 4, grid=[2], sigma=1)
    yield search("an objective that is none", "sep_cma_es", ["state", "normals"], 1, 4, objective=4, sigma=1)
    for rows, epochs in ((4, 0), (4, 1001), (0, 1)):
        yield job(f"{epochs} epochs of {rows} rows", "logreg_adam", {"x": values, "w": floats(2), "m": floats(6)},
                  ["x", "x", "w", "m", gw.f32(1), gw.f32(1), gw.u32(rows), gw.u32(1), gw.u32(epochs)], grid=[1])
    yield job("sums of 2 blocks", "reduce_sum", {"x": floats(4), "s": floats(1)}, ["x", "s", gw.u32(4)], grid=[2])
    yield job("little shared memory", "reduce_sum", {"x": floats(4), "s": floats(1)}, ["x", "s", gw.u32(4)],
              grid=[1], block=[512])


class ManifestsTest(FlowTest):
    def run_jobs(self, jobs, **settings):
        """The status of a run of files, what it logged, and the answers by id."""
        names = [self.folder / name for name in ("jobs", "results", "dead-letters", "worker.yaml")]
        gw.write_jobs(names[0], jobs)
        worker_process.write_config(names[3], {"driver": "cpu", "lanes": 2, "blobs": {"dir": str(self.folder)}} | settings)
        options = zip(("--jobs", "--results", "--dead-letters", "--config"), names)
        done = subprocess.run([BINARY, "run", *(word for option in options for word in option)], capture_output=True,
                              text=True, timeout=PATIENCE_S)
        answers = {answer["id"]: answer for answer in gw.read_results(names[1])} if names[1].exists() else {}
        return done.returncode, done.stderr, answers

    def test_no_number_leads_a_shipped_program_outside_of_its_buffers(self):
        jobs = list(hostile_jobs())
        _, log, answers = self.run_jobs([*jobs, saxpy(1)])
        self.assertEqual(answers["job-1"]["status"], "ok", log)
        codes = {job["id"]: answers[job["id"]].get("error", {}).get("code") for job in jobs}
        self.assertEqual(codes, dict.fromkeys(codes, "bad_argument"))
        error = answers["saxpy 5"]["error"]
        self.assertIn("argument 'n' is 5, and the kernel needs n <= x: 5 elements; buffer 'x' has 4 (FP32)",
                      error["message"])
        self.assertEqual(error["retry"], "never")

    def change(self, old, new, image):
        """saxpy with another manifest, and with this image alone."""
        folder = self.folder / "programs"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(SHIPPED / "saxpy", folder / "saxpy")
        path = folder / "saxpy/program.yaml"
        text = path.read_text()
        self.assertIn(old, text)
        lines = [line for line in text.replace(old, new).splitlines() if "kind:" not in line or image in line]
        path.write_text("\n".join(lines) + "\n")
        return folder

    def assert_refused(self, old, new, place, *parts):
        """For each image; by check, by programs, and by a run, whose job is not launched."""
        for image in ("saxpy.ptx", "saxpy.so"):
            folder = self.change(old, new, image)
            config = self.folder / "check.yaml"
            config.write_text(json.dumps({"driver": "cpu", "programs": {"dir": str(folder)}}))
            for command in (["check", "--config", config], ["programs", "--dir", folder]):
                done = subprocess.run([BINARY, *command], capture_output=True, text=True, timeout=PATIENCE_S)
                self.assertEqual(done.returncode, 3)
                for part in (f"{folder}/saxpy/program.yaml:{place}: ", image, *parts):
                    self.assertIn(part, done.stderr)
            status, log, answers = self.run_jobs([saxpy(1)], programs={"dir": str(folder)})
            self.assertNotEqual(status, 0)
            self.assertIn(f"{folder}/saxpy/program.yaml:{place}: ", log)
            self.assertNotEqual(answers.get("job-1", {}).get("status"), "ok")

    def test_another_size_than_the_kernel_has_is_refused(self):
        self.assert_refused("{name: a, value: f32}", "{name: a, value: f64}", "6:9",
                            "argument 'a' is f64 (8 bytes), but parameter 1 of 'saxpy' in", "has 4 bytes")

    def test_a_buffer_for_a_number_is_refused(self):
        self.assert_refused("{name: n, value: u32, at_most: [x, y]}", "{name: n, buffer: in}", "9:9",
                            "argument 'n' is a buffer (8 bytes), but parameter 4 of 'saxpy' in", "has 4 bytes")

    def test_one_argument_too_few_is_refused(self):
        self.assert_refused("      - {name: n, value: u32, at_most: [x, y]}\n", "", "6:7",
                            "entry 'saxpy' has 3 arguments, but 'saxpy' in", "has 4 parameters")

    def test_another_kernel_for_the_batched_one_is_refused(self):
        self.assert_refused("batched: saxpy_batched", "batched: saxpy", "11:14", "is not a batched kernel")

    def test_a_kernel_that_the_image_has_not_is_refused(self):
        self.assert_refused("batched: saxpy_batched", "batched: saxpy_batch", "11:14", "has no kernel 'saxpy_batch'")


if __name__ == "__main__":
    unittest.main(verbosity=2)
