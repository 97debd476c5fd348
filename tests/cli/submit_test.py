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
GOOD_2 = {**GOOD, "shape": [2, 2], "data": 2 * GOOD["data"]}
LONG = {"repeat": 100, "until": {"buffer": "done"}}
ERROR = {"code": "bad_launch", "message": "no", "fix": "do"}


class SubmitTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.worker = FakeWorker(self, None)

    def submit(self, *answers, **keys):
        """What becomes of a job with these keys that these results answer, one after the other."""
        self.worker.say = lambda job: answers
        each = {"each": True} if "count" in keys else {}
        job = {"id": "same", "buffers": {"y": {"bytes": 8, "datatype": "FP32", "shape": [2], **each}},
               "steps": [{"program": "p", "args": ["y"], "elements": 2}], "outputs": [{"buffer": "y"}], **keys}
        if "until" in keys:
            job["buffers"]["done"] = {"bytes": 4, **each}
        (self.folder / "job.yaml").write_text(json.dumps(job))
        (self.folder / "worker.yaml").write_text(json.dumps({
            "kafka": {"bootstrap_servers": self.worker.address}, "topics": {"jobs": ["jobs"], "results": "results"}}))
        return subprocess.run([BINARY, "submit", "--config", self.folder / "worker.yaml", self.folder / "job.yaml"],
                              capture_output=True, text=True, timeout=PATIENCE_S)

    def test_a_result_that_fits_the_job_is_printed(self):
        done = self.submit({"outputs": [GOOD]})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("[0, 1]", done.stdout)
        done = self.submit({"outputs": [GOOD_2]}, count=2)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_long_job_is_printed_with_what_ended_it(self):
        done = self.submit({"outputs": [GOOD], "rounds": 7, "ended": "until"}, **LONG)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ended: until", done.stdout)
        done = self.submit({"outputs": [GOOD], "rounds": 100, "ended": "time"}, repeat=100, time_ms=1000)
        self.assertEqual(done.returncode, 0, done.stderr)
        whole = {"outputs": [GOOD], "rounds": 100, "ended": "repeat"}
        done = self.submit(whole, repeat=100, progress={"every_ms": 100})
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.submit({"outputs": [GOOD_2], "rounds": b"\7\0\0\0\x64\0\0\0", "ended": b"\1\2"}, count=2, **LONG)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.submit({"status": "error", "error": ERROR}, **LONG)
        self.assertIn("bad_launch", done.stdout)

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


    def test_what_a_long_job_cannot_have_ended_with_is_refused(self):
        whole, each = {"rounds": 7, "ended": "until"}, {"rounds": b"\7\0\0\0" * 2, "ended": b"\1\4"}
        time = {"repeat": 100, "time_ms": 1000}
        for what, ends, keys in (
            ("nothing", {}, LONG),
            ("rounds alone", {"rounds": 7}, LONG),
            ("no rounds", {**whole, "rounds": 0}, LONG),
            ("more rounds than it may have", {**whole, "rounds": 101}, LONG),
            ("rounds below 0", {**whole, "rounds": -1}, LONG),
            ("another end", {**whole, "ended": "done"}, LONG),
            ("those of an array", {"rounds": b"\7\0\0\0", "ended": b"\1"}, LONG),
            ("until of a job that has none", whole, time),
            ("an end of a job that is not long", whole, {"repeat": 100}),
            ("a failure that ended", {**whole, "status": "error", "error": ERROR, "outputs": []}, LONG),
            ("an array with those of one", whole, {"count": 2, **LONG}),
            ("an array with fewer rounds", {**each, "rounds": each["rounds"][:4]}, {"count": 2, **LONG}),
            ("an array with too many ends", {**each, "ended": b"\1\1\1"}, {"count": 2, **LONG}),
            ("an array with no rounds", {**each, "rounds": bytes(8)}, {"count": 2, **LONG}),
            ("an array with too many rounds", {**each, "rounds": b"\7\0\0\1" * 2}, {"count": 2, **LONG}),
            ("an array with another end", {**each, "ended": b"\1\5"}, {"count": 2, **LONG}),
            ("an array with an instance that did not end", {**each, "ended": b"\1\0"}, {"count": 2, **LONG}),
            ("an array with until, which it has not", each, {"count": 2, **time}),
        ):
            with self.subTest(what):
                good = GOOD_2 if "count" in keys else GOOD
                done = self.submit({"outputs": [good], **ends}, **keys)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn("the answer does not fit the job: its rounds", done.stderr)


if __name__ == "__main__":
    unittest.main()
