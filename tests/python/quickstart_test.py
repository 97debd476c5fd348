#!/usr/bin/env python3
"""The quickstart ends well only when every job does; against a worker that can be made to err."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
SCRIPTS = HERE.parents[1] / "scripts/python"


class Quickstart(unittest.TestCase):
    def run_with(self, fault):
        with tempfile.TemporaryDirectory() as folder:
            binary = pathlib.Path(folder, "build/bin/gpu-worker")
            binary.parent.mkdir(parents=True)
            binary.write_text(f'#!/bin/sh\nexec "{sys.executable}" -B "{HERE}/fake_worker.py" "$@"\n')
            binary.chmod(0o755)
            options = ["--driver", "cpu", "--build", f"{folder}/build", "--folder", f"{folder}/sweep"]
            return subprocess.run(
                [sys.executable, "-B", SCRIPTS / "quickstart.py", *options],
                capture_output=True, text=True, timeout=200, env=os.environ | {"FAKE_FAULT": fault},
            )  # fmt: skip

    def assert_fails(self, fault, last_line, complaint):
        run = self.run_with(fault)
        self.assertEqual(1, run.returncode, run)
        self.assertEqual(last_line, run.stdout.splitlines()[-1])
        self.assertIn(complaint, run.stderr)

    def test_all_jobs_agree(self):
        run = self.run_with("")
        self.assertEqual(0, run.returncode, run)
        self.assertEqual("quickstart: 256 of 256 jobs ok", run.stdout.splitlines()[-1])
        self.assertRegex(run.stdout, r"256 jobs of 300 epochs in [\d.]+ s on the cpu driver\n"
                                     r"quickstart: the same afterwards as one array job of 256 instances in [\d.]+ s\n")

    def test_wrong_weights_fail_it(self):
        self.assert_fails("weights", "quickstart: 255 of 256 jobs ok, the array job is not",
                          "logreg-255: the weights' norm is off by")

    def test_a_loss_that_is_no_number_fails_it(self):
        self.assert_fails("loss", "quickstart: 255 of 256 jobs ok, the array job is not", "logreg-255: the loss is nan")

    def test_a_failed_job_fails_it(self):
        self.assert_fails("error", "quickstart: 255 of 256 jobs ok", "logreg-255: driver_error: no\ntry again")

    def test_an_array_that_gives_other_bytes_than_the_single_jobs_fails_it(self):
        self.assert_fails("array", "quickstart: 256 of 256 jobs ok, the array job is not",
                          "logreg-array: the loss of logreg-000 differ from those of the single job")

    def test_an_array_that_fails_fails_it(self):
        self.assert_fails("array_error", "quickstart: 256 of 256 jobs ok, the array job is not",
                          "logreg-array: driver_error: no\ntry again")

    def test_a_worker_that_dies_fails_it_at_once(self):
        run = self.run_with("death")
        self.assertEqual(1, run.returncode, run)
        self.assertIn("the worker ended with status 7", run.stderr)
        self.assertNotIn("jobs ok", run.stdout)


if __name__ == "__main__":
    unittest.main()
