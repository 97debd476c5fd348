"""Whatever names a job has, what the worker says of it is UTF-8: read back strictly.
usage: hostile_names_test.py BUILD_FOLDER"""

import json
import subprocess
import unittest

from worker_flow import BINARY, FlowTest, saxpy

import gpu_worker as gw
import worker_process

import msgpack

# What terminals act on, what readers of lines take for the end of one, and what turns the direction of text.
HAZARDOUS = {chr(c) for c in (*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))}
HAZARDS = [f"{c}--- # forged" for c in sorted(HAZARDOUS - {"\0"})]
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


    def test_nothing_that_is_said_of_hostile_names_moves_a_cursor_or_ends_a_line(self):
        jobs, results, letters = self.folder / "jobs", self.folder / "results", self.folder / "letters"
        sent = [job for name in HAZARDS for job in (
            saxpy(1) | {"id": f"a{name}", "steps": [{"program": f"p{name}", "args": [], "grid": [1]}]},
            saxpy(1) | {"id": f"b{name}", "outputs": [{"buffer": name}]},
            saxpy(1) | {"id": f"c{name}", "reply_to": name},
            saxpy(1) | {"id": f"d{name}", "buffers": {name: {"bytes": 3, "datatype": "FP32", name: 1}}})]
        jobs.write_bytes(b"".join(map(msgpack.packb, sent)))
        for log in ("text", "json"):
            config = self.folder / "worker.yaml"
            worker_process.write_config(config, {
                "driver": "cpu", "lanes": 1, "retry": {"max_attempts": 1}, "log": {"level": "debug", "format": log}})
            ended = subprocess.run(
                [BINARY, "run", "--config", config, "--jobs", jobs, "--results", results, "--dead-letters", letters],
                capture_output=True, timeout=240)
            self.assertEqual(ended.returncode, 7, ended.stderr)
            self.assert_harmless(ended.stderr, f"the log as {log}")
        answers = list(msgpack.Unpacker(open(results, "rb")))
        self.assertEqual({answer["id"] for answer in answers}, {job["id"] for job in sent})
        for answer in answers:
            self.assert_harmless((answer["error"]["message"] + answer["error"]["fix"]).encode() + b"\n", "an error")
            self.assert_harmless(str(gw.JobFailed(answer)).encode() + b"\n", "an exception")
        self.assert_harmless(letters.read_bytes(), "the file of dead letters")
        for file in (results, letters):
            for options in ([], ["--json"]):
                said = subprocess.run([BINARY, "decode", file, *options], capture_output=True, check=True).stdout
                self.assert_harmless(said, f"decode {options} {file.name}")
                self.assertGreaterEqual(said.count(b"\n"), len(sent))

    def assert_harmless(self, said, where):
        for line in said.decode("utf-8", "strict").split("\n"):
            self.assertEqual([ascii(c) for c in line if c in HAZARDOUS], [], f"{where}: {line!a}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
