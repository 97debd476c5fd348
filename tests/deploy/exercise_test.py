"""deploy/exercise, in its short form and where it is interrupted. usage: exercise_test.py BUILD_FOLDER"""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import unittest
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop(1)).absolute()
MARK = "GPU_WORKER_TEST_MARK"
TIMEOUT_S = 840


def marked(value):
    """The processes that have it in their environment: all that a process has started, whoever their parents are now."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and f"{MARK}={value}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


class ExerciseTest(unittest.TestCase):
    def start(self, *options):
        self.mark = uuid.uuid4().hex
        process = subprocess.Popen(
            [ROOT / "deploy/exercise", "--build", BUILD, "--pods", "2", "--brokers", "1", "--delivery", "exactly_once", *options],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
            env=os.environ | {MARK: self.mark})
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        return process

    def test_two_pods_scale_are_upgraded_and_one_is_lost(self):
        process = self.start()
        said, _ = process.communicate(timeout=TIMEOUT_S)
        print(said, flush=True)
        self.assertEqual(process.returncode, 0)
        self.assertIn("0 lost, 0 duplicated, 0 failed, 0 dead letters, 0 not committed", said)
        self.assertEqual(marked(self.mark), [])

    def test_an_exercise_that_is_interrupted_ends_all_that_it_started(self):
        process = self.start()
        for line in process.stdout:
            if "is ready" in line:
                break
        self.assertGreater(len(marked(self.mark)), 4, "brokers, a pod and its executors")
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 1, said)
        self.assertIn("interrupted", said)
        self.assertEqual(marked(self.mark), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
