#!/usr/bin/env python3
"""`gpu-worker submit` and results that anybody may have written.
usage: submit_test.py BINARY"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from by_hand import PATIENCE_S, FakeWorker

BINARY = pathlib.Path(sys.argv.pop(1)).resolve()
GOOD = {"name": "y", "datatype": "FP32", "shape": [2], "data": b"\0\0\0\0\0\0\x80?"}
ERROR = {"code": "bad_launch", "message": "no", "fix": "do"}


class SubmitTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.worker = FakeWorker(self, None)

    def submit(self, *answers, count=None):
        """What becomes of a job that these results answer, one after the other."""
        self.worker.say = lambda job: answers
        each = {"each": True} if count else {}
        job = {"id": "same", "buffers": {"y": {"bytes": 8, "datatype": "FP32", "shape": [2], **each}},
               "steps": [{"program": "p", "args": ["y"], "elements": 2}], "outputs": [{"buffer": "y"}]}
        (self.folder / "job.yaml").write_text(json.dumps({**job, **({"count": count} if count else {})}))
        (self.folder / "worker.yaml").write_text(json.dumps({
            "kafka": {"bootstrap_servers": self.worker.address}, "topics": {"jobs": ["jobs"], "results": "results"}}))
        return subprocess.run([BINARY, "submit", "--config", self.folder / "worker.yaml", self.folder / "job.yaml"],
                              capture_output=True, text=True, timeout=PATIENCE_S)

    def test_a_result_that_fits_the_job_is_printed(self):
        done = self.submit({"outputs": [GOOD]})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("[0, 1]", done.stdout)
        done = self.submit({"outputs": [{**GOOD, "shape": [2, 2], "data": 2 * GOOD["data"]}]}, count=2)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_failed_job_fails_it(self):
        done = self.submit({"status": "error", "error": ERROR})
        self.assertEqual(done.returncode, 1)
        self.assertIn("bad_launch", done.stdout)

    def test_a_result_of_another_message_with_the_same_id_is_passed_over(self):
        forged = {"outputs": [{**GOOD, "data": bytes(8)}], "source": {"topic": "jobs", "partition": 0, "offset": 10**6}}
        done = self.submit(forged, {"outputs": [GOOD]})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("[0, 1]", done.stdout)

    def test_a_result_that_does_not_fit_the_job_is_refused(self):
        for what, answer in {
            "no output": {"outputs": []},
            "two outputs": {"outputs": [GOOD, GOOD]},
            "no list": {"outputs": 7},
            "another name": {"outputs": [{**GOOD, "name": "x"}]},
            "another type": {"outputs": [{**GOOD, "datatype": "INT32"}]},
            "no type": {"outputs": [{"name": "y", "shape": [2], "data": bytes(8)}]},
            "another shape": {"outputs": [{**GOOD, "shape": [1, 2]}]},
            "fewer bytes": {"outputs": [{**GOOD, "data": bytes(4)}]},
            "a number as data": {"outputs": [{**GOOD, "data": 8}]},
            "a large one": {"outputs": [{**GOOD, "data": bytes(900_000)}]},
            "many values": {"outputs": [GOOD], "more": [None] * 60_000},
            "an error that is ok": {"outputs": [GOOD], "error": ERROR},
            "another status": {"status": "fine", "outputs": [GOOD]},
            "an error with outputs": {"status": "error", "error": ERROR, "outputs": [GOOD]},
        }.items():
            with self.subTest(what):
                done = self.submit(answer)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn("the answer does not fit the job", done.stderr)


if __name__ == "__main__":
    unittest.main()
