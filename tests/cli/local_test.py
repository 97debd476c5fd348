"""What needs no broker beside it: submit --local with --set and --out, the demo, and the progress of a run of files.
usage: local_test.py BINARY"""

import ast
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BINARY = pathlib.Path(sys.argv.pop(1)).resolve()
PATIENCE_S = 120
JOB = """
id: by-hand
buffers:
  x: {data: {f32: [1, 2, 3, 4]}, datatype: FP32, shape: [2, 2]}
  y: {data: {f32: [10, 20, 30, 40]}, datatype: FP32, shape: [2, 2]}
steps:
  - {program: saxpy, args: [{f32: 2}, x, y, {u32: 4}], elements: 4}
outputs:
  - {buffer: y}
  - {buffer: y, as: head, bytes: 8}
"""


def read_npy(path):
    """Description, shape and bytes, as the format says them."""
    raw = path.read_bytes()
    assert raw[:8] == b"\x93NUMPY\x01\x00", raw[:8]
    size = int.from_bytes(raw[8:10], "little")
    assert (10 + size) % 64 == 0 and raw[9 + size:10 + size] == b"\n"
    header = ast.literal_eval(raw[10:10 + size].decode())
    assert header["fortran_order"] is False
    return header["descr"], header["shape"], memoryview(raw[10 + size:])


class LocalTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gpu-worker-local-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.job = self.folder / "job.yaml"
        self.job.write_text(JOB)
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        self.environment = os.environ | {"TMPDIR": str(self.temporary), "XDG_STATE_HOME": str(self.folder / "state")}

    def submit(self, *options):
        return subprocess.run([BINARY, "submit", "--local", "--driver", "cpu", *options, self.job], capture_output=True,
                              text=True, timeout=PATIENCE_S, env=self.environment)

    def test_a_job_runs_without_a_broker_and_leaves_nothing(self):
        done = self.submit()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("data: {f32: [12, 24, 36, 48]}", done.stdout)
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_numbers_are_set_by_their_names_in_the_manifest(self):
        result = json.loads(self.submit("--json", "--set", "a=0.5", "--set", "n=3").stdout)
        self.assertEqual(result["outputs"][0]["data"], {"f32": [10.5, 21, 31.5, 40]})

    def test_what_cannot_be_set_is_named(self):
        for option, said in (("b=1", "the job's kernels have no argument 'b'"), ("x=1", "'x' is no number in step 1"),
                             ("a", "write --set NAME=VALUE"), ("=1", "write --set NAME=VALUE")):
            done = self.submit("--set", option)
            self.assertEqual((done.returncode != 0, done.stdout), (True, ""), option)
            self.assertIn(said, done.stderr)

    def test_a_number_that_would_become_infinite_is_refused(self):
        done = self.submit("--set", "a=1e999")
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn("1e999 does not fit into 64 bits", done.stderr)

    def test_the_nearest_name_is_said(self):
        self.job.write_text(JOB.replace("saxpy, args: [{f32: 2}, x, y, {u32: 4}]", "bfs_csr, args: []"))
        self.assertIn("the job's kernels have no argument 'n_vertice'; did you mean 'n_vertices'?",
                      self.submit("--set", "n_vertice=1").stderr)

    def test_outputs_become_arrays_of_numpy(self):
        whole, head = self.folder / "y.npy", self.folder / "head.npy"
        done = self.submit("--out", f"y={whole}", "--out", f"head={head}")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        description, shape, data = read_npy(whole)
        self.assertEqual((description, shape, list(data.cast("f"))), ("<f4", (2, 2), [12, 24, 36, 48]))
        description, shape, data = read_npy(head)
        self.assertEqual(len(data), 8)
        for option, said in ((str(whole), "the job has 2 outputs; say which output: --out NAME=FILE"),
                             ("z=z.npy", "the job has no output 'z'"), ("y=/nowhere/y.npy", "/nowhere/y.npy: No such file")):
            done = self.submit("--out", option)
            self.assertEqual(done.returncode, 1, option)
            self.assertIn(said, done.stderr)
        self.job.write_text(JOB.replace("  - {buffer: y, as: head, bytes: 8}\n", ""))
        self.assertEqual(self.submit("--out", str(whole)).returncode, 0)

    def test_a_job_that_fails_is_a_failure_and_a_worker_that_does_not_start_says_why(self):
        self.job.write_text(JOB.replace("saxpy", "saxpi"))
        done = self.submit()
        self.assertEqual(done.returncode, 1)
        self.assertIn("code: unknown_program", done.stdout)
        config = self.folder / "worker.yaml"
        config.write_text(f"programs: {{dir: {self.folder / 'nowhere'}}}\n")
        done = self.submit("--config", config)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("nowhere: No such file or directory", done.stderr)
        self.assertIn("gpu-worker submit: the worker gave no result; see the lines above", done.stderr)
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_a_job_that_is_interrupted_or_late_leaves_nothing(self):
        config = self.folder / "worker.yaml"
        config.write_text(json.dumps({"driver": "cpu", "cpu_driver": {"faults": "cuLaunchKernel:slow=60000ms@*"}}))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with subprocess.Popen([BINARY, "submit", "--local", "--config", config, self.job], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, env=self.environment) as submit:
                self.wait_for_log("info ready")
                submit.send_signal(number)
                self.assertEqual((submit.wait(PATIENCE_S), *submit.communicate()), (-number, "", ""))
            self.assertEqual(list(self.temporary.iterdir()), [])
        late = self.submit("--config", config, "--timeout", "1")
        self.assertEqual((late.returncode, late.stdout), (1, ""))
        self.assertIn("no result within 1 s; give it more with --timeout", late.stderr)
        self.assertEqual(list(self.temporary.iterdir()), [])

    def wait_for_log(self, words):
        """Until the worker that a command has started logs them."""
        until = time.monotonic() + PATIENCE_S
        while not any(words in log.read_text() for log in self.temporary.glob("*/*log")):
            self.assertLess(time.monotonic(), until, f"no worker logs '{words}'")
            time.sleep(0.02)

    def test_a_demo_whose_worker_does_not_start_says_why_and_leaves_nothing(self):
        done = subprocess.run([BINARY, "demo", "--driver", "cuda"], capture_output=True, text=True, timeout=PATIENCE_S,
                              env=self.environment | {"CUDA_VISIBLE_DEVICES": "-1"})
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertRegex(done.stderr, r"gpu-worker run: .*; .*\ngpu-worker demo: the lines above say why\n\Z")
        self.assertNotIn("gpu-worker submit", done.stderr)
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_a_demo_prints_its_result_alone_as_json(self):
        done = subprocess.run([BINARY, "demo", "--once", "--json"], capture_output=True, text=True, timeout=PATIENCE_S,
                              env=self.environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(json.loads(done.stdout)["status"], "ok")

    def test_a_demo_that_is_interrupted_leaves_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with subprocess.Popen([BINARY, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env=self.environment) as demo:
                self.assertIn("job.yaml", demo.stdout.readline())
                demo.send_signal(number)
                _, said = demo.communicate(timeout=PATIENCE_S)
                self.assertEqual((demo.returncode, said), (0, ""))
            self.assertEqual(list(self.temporary.iterdir()), [])

    def test_the_demo_answers_a_job_and_leaves_nothing(self):
        done = subprocess.run([BINARY, "demo", "--once"], capture_output=True, text=True, timeout=PATIENCE_S,
                              env=self.environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("data: {f32: [12, 24, 36]}", done.stdout)
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_the_worker_of_the_demo_takes_jobs_until_it_is_stopped(self):
        with subprocess.Popen([BINARY, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=self.environment) as demo:
            text = ""
            while "gpu-worker submit --config" not in text.split("Ctrl-C", 1)[-1] or "Ctrl-C" not in text:
                line = demo.stdout.readline()
                self.assertNotEqual(line, "", "the demo has ended")
                text += line
            command = re.findall(r"(?m)^  gpu-worker (submit .*)$", text)[-1].split()
            answered = subprocess.run([BINARY, *command], capture_output=True, text=True, timeout=PATIENCE_S)
            self.assertIn("{f32: [15, 30, 45]}", answered.stdout, answered.stderr)
            demo.send_signal(signal.SIGINT)
            self.assertEqual(demo.wait(PATIENCE_S), 0)
        self.assertEqual(list(self.temporary.iterdir()), [])

    def run_of_files(self, error):
        jobs = self.folder / "jobs"
        with open(jobs, "wb") as out:
            for _ in range(40):
                subprocess.run([BINARY, "submit", "--encode", self.job], stdout=out, check=True)
        config = self.folder / "worker.yaml"
        config.write_text(json.dumps({"driver": "cpu", "lanes": 1, "batch": {"jobs": 1}, "log": {"level": "error"},
                                      "cpu_driver": {"faults": "cuLaunchKernel:slow=100ms@*"}}))
        return subprocess.Popen([BINARY, "run", "--config", config, "--jobs", jobs, "--results", "/dev/null"], stderr=error,
                                env=self.environment)

    def test_a_run_of_files_shows_its_progress_on_a_terminal(self):
        ours, theirs = pty.openpty()
        with self.run_of_files(theirs) as worker:
            os.close(theirs)
            shown, until = b"", time.monotonic() + PATIENCE_S
            while time.monotonic() < until:
                if not select.select([ours], [], [], 1)[0]:
                    continue
                try:
                    shown += os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
            self.assertEqual(worker.wait(PATIENCE_S), 0)
        os.close(ours)
        self.assertRegex(shown, rb"\r\x1b\[K[1-9]\d* jobs done, 0 failed, \d+ a second\r")
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown)

    def test_a_run_of_files_shows_no_progress_elsewhere(self):
        with self.run_of_files(subprocess.PIPE) as worker:
            self.assertEqual(worker.stderr.read(), b"")


if __name__ == "__main__":
    unittest.main(verbosity=2)
