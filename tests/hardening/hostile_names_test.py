"""Whatever names a job has, what the worker says of it is UTF-8: read back strictly.
usage: hostile_names_test.py BUILD_FOLDER"""

import json
import subprocess
import unittest

from worker_flow import BINARY, FlowTest, saxpy

import worker_process

import msgpack

CHARACTERS = ("é", "€", "😀")


def name(shift, character, size):
    """As many bytes as that, or a few less."""
    return "a" * shift + character * ((size - shift) // len(character.encode()))


def hostile_jobs():
    for character in CHARACTERS:
        for shift in range(8):
            long = name(shift, character, 250)
            yield saxpy(1) | {"id": long, "steps": [{"program": long, "args": [], "grid": [1]}]}
            yield saxpy(1) | {"id": f"x{long}", "outputs": [{"buffer": long}]}
            yield saxpy(1) | {"id": f"y{long}", "reply_to": long}
            yield saxpy(1) | {"id": f"z{long}", "buffers": {long: {"bytes": 3, "datatype": "FP32", long: 1}}}


class HostileNamesTest(FlowTest):
    def test_all_that_is_said_of_hostile_names_is_utf8(self):
        jobs, results, letters = self.folder / "jobs", self.folder / "results", self.folder / "letters"
        sent = list(hostile_jobs())
        jobs.write_bytes(b"".join(map(msgpack.packb, sent)))
        config = self.folder / "worker.yaml"
        worker_process.write_config(config, {
            "driver": "cpu", "lanes": 1, "retry": {"max_attempts": 1}, "log": {"level": "debug", "format": "json"}})
        ended = subprocess.run(
            [BINARY, "run", "--config", config, "--jobs", jobs, "--results", results, "--dead-letters", letters],
            capture_output=True, timeout=240)
        self.assertIn(ended.returncode, (0, 7), ended.stderr)
        for line in ended.stderr.decode("utf-8", "strict").splitlines():
            if line.startswith("{"):
                json.loads(line)
        answers = list(msgpack.Unpacker(open(results, "rb"), raw=False, unicode_errors="strict"))
        self.assertEqual({answer["id"] for answer in answers}, {job["id"] for job in sent})
        self.assertTrue(all(answer["error"]["message"] for answer in answers))
        lines = letters.read_bytes().decode("utf-8", "strict").splitlines()
        self.assertEqual(len(lines), len(sent))
        for line in lines:
            said = [value for header, value in json.loads(line)["headers"] if header == "dlq.error.message"]
            self.assertTrue(all(isinstance(value, str) for value in said), "written as hex: it was no UTF-8")


if __name__ == "__main__":
    unittest.main(verbosity=2)
