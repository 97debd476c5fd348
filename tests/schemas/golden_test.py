#!/usr/bin/env python3
"""The golden vectors are what generate.py writes, and worker/decode and schemas/check_job.py agree on each.

golden_test.py GOLDEN_TEST  where GOLDEN_TEST is the program built from tests/decode/golden_test.c
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import jsonschema
import msgpack

SCHEMAS = pathlib.Path(__file__).parents[2] / "schemas"
GOLDEN = SCHEMAS / "golden"
sys.path[:0] = [str(SCHEMAS), str(GOLDEN)]

import check_job  # noqa: E402  found through the path above
import generate  # noqa: E402


KINDS = {
    "jobs": (["valid", "invalid"], check_job.check),
    "control": (["control"], check_job.check_control),
}


def vectors(kind):
    return sorted(path for folder in KINDS[kind][0] for path in (GOLDEN / folder).glob("*.msgpack"))


def python_verdict(kind, path):
    return check_job.verdict(path.read_bytes(), KINDS[kind][1])[0]


def worker_verdicts(program, kind):
    """{vector: code} as the worker's decoder says."""
    folders = [GOLDEN / folder for folder in KINDS[kind][0]]
    lines = subprocess.run(
        [program, kind, *folders], capture_output=True, text=True, errors="replace").stdout.splitlines()
    return {name: code for line in lines if ": " in line for code, name in [line.split(": ")[0].split(" ")]}


class Golden(unittest.TestCase):
    program = ""

    def test_committed_vectors_are_the_generated_ones(self):
        with tempfile.TemporaryDirectory() as folder:
            generate.generate(pathlib.Path(folder))
            for kind in ("valid", "invalid", "control", "results", "progress", "telemetry", "runs"):
                new = {path.name: path.read_bytes() for path in (pathlib.Path(folder) / kind).iterdir()}
                committed = {path.name: path.read_bytes() for path in (GOLDEN / kind).iterdir()}
                self.assertEqual(new, committed, "run schemas/golden/generate.py")

    def test_python_gives_the_verdict_of_each_sidecar(self):
        for kind in KINDS:
            for path in vectors(kind):
                expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["code"]
                with self.subTest(path.name):
                    self.assertEqual(python_verdict(kind, path), expected)

    def test_worker_and_python_agree_on_each(self):
        for kind in KINDS:
            python = {path.stem: python_verdict(kind, path) for path in vectors(kind)}
            self.assertEqual(worker_verdicts(self.program, kind), python)

    def test_there_is_a_vector_for_each_key_of_a_job(self):
        schema = json.loads((SCHEMAS / "job.schema.json").read_text(encoding="utf-8"))
        definitions = [schema, *schema["$defs"].values(), schema["$defs"]["arg"]["oneOf"][1]]
        keys = {key for definition in definitions for key in definition.get("properties", {})}
        everything = b"".join(path.read_bytes() for path in (GOLDEN / "valid").glob("*.msgpack"))
        self.assertEqual([], [key for key in keys if msgpack.packb(key) not in everything])


class Results(unittest.TestCase):
    def setUp(self):
        self.validator = check_job.load_validator("result")

    def test_schemas_are_schemas_but_for_the_type_binary(self):
        for path in SCHEMAS.glob("*.schema.json"):
            text = path.read_text(encoding="utf-8").replace('"type": "binary"', '"type": "string"')
            jsonschema.Draft202012Validator.check_schema(json.loads(text))

    def test_golden_results_are_valid(self):
        for path in sorted((GOLDEN / "results").glob("*.msgpack")):
            with self.subTest(path.name):
                self.validator.validate(msgpack.unpackb(path.read_bytes()))

    def test_golden_telemetry_is_valid_and_nothing_else_may_stand_in_it(self):
        validator = check_job.load_validator("telemetry")
        for path in (GOLDEN / "telemetry").glob("*.msgpack"):
            message = msgpack.unpackb(path.read_bytes())
            validator.validate(message)
            for section in ("worker", "jobs", "timed", "batches", "intake", "engine", "gauges"):
                self.assertFalse(validator.is_valid(message | {section: message[section] | {"extra": 1}}))

    def test_golden_progress_is_valid_and_nothing_else_may_stand_in_it(self):
        validator, whole = check_job.load_validator("progress"), generate.shown()
        for path in sorted((GOLDEN / "progress").glob("*.msgpack")):
            with self.subTest(path.name):
                validator.validate(msgpack.unpackb(path.read_bytes()))
        (output,) = whole["outputs"]
        blob = {"name": "y", "blob": generate.DIGEST}
        others = [{"extra": 1}, {"attempt": 0}, {"rounds": 0}, {"rounds": 2**32}, {"rounds": 1.0}, {"live": -1},
                  {"live": 2**32}, {"outputs": [blob]}, {"outputs": [output | {"blob": generate.DIGEST}]},
                  {"outputs": [{"name": "y"}]},
                  {"source": whole["source"] | {"offset": -1}}, {"status": "ok"}]
        for other in others:
            self.assertFalse(validator.is_valid(whole | other), other)
        for key in whole:
            self.assertFalse(validator.is_valid({name: value for name, value in whole.items() if name != key}), key)

    def test_results_that_contradict_themselves_are_not(self):
        ok, error = generate.ok_result(), generate.error_result()
        wrong = {
            "error without error": {key: value for key, value in error.items() if key != "error"},
            "ok with error": ok | {"error": error["error"]},
            "error with outputs": error | {"outputs": ok["outputs"]},
            "unknown key": ok | {"extra": 1},
            "data as text": ok | {"outputs": [{"name": "y", "data": "text"}]},
            "both data and blob": ok | {"outputs": [{"name": "y", "data": b"", "blob": generate.DIGEST}]},
            "offset as float": ok | {"source": ok["source"] | {"offset": 1.0}},
            "unknown retry": error | {"error": error["error"] | {"retry": "maybe"}},
            "rounds without ended": ok | {"rounds": 7},
            "ended without rounds": ok | {"ended": "until"},
            "ended in another way": generate.with_ends(ok, 7, "done"),
            "more rounds than a number says": generate.with_ends(ok, 2**32, "until"),
            "rounds of an array, and one end": generate.with_ends(ok, b"\7\0\0\0", "until"),
            "rounds of one, and ends of an array": generate.with_ends(ok, 7, b"\1"),
            "a failed job that ended": generate.with_ends(error, 7, "until"),
            "a partial result that ended": generate.with_ends(generate.partial_result(), b"\7\0\0\0" * 2, b"\1\1"),
        }
        for name, result in wrong.items():
            with self.subTest(name):
                self.assertFalse(self.validator.is_valid(result))


if __name__ == "__main__":
    Golden.program = sys.argv.pop(1)
    unittest.main()
