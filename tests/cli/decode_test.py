"""gpu-worker decode: every golden message as YAML and JSON, dead letters of a run, and files that are none.
usage: decode_test.py BINARY GOLDEN"""

import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

import msgpack

BINARY, GOLDEN = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))
FORMS = {"f32": "f", "f64": "d", "u8": "B", "u32": "I", "u64": "Q", "i32": "i", "i64": "q", "i8": "b", "u16": "H", "i16": "h",
         "bool": "?", "f16": "e"}
SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def decode(given, *options):
    return subprocess.run([BINARY, "decode", *options, "-"], input=given, capture_output=True, timeout=60)


def bytes_of(value):
    """The bytes that {"hex": ...} or {"f32": [...]} stands for; None where it is neither."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    ((form, items),) = value.items()
    if form == "hex":
        return bytes.fromhex(items)
    if form == "bf16":
        return b"".join(struct.pack("<f", item)[2:] for item in items)
    if form not in FORMS or not isinstance(items, list):
        return None
    return struct.pack(f"<{len(items)}{FORMS[form]}", *(SPECIAL.get(item, item) if isinstance(item, str) else item for item in items))


def same(printed, packed):
    if isinstance(packed, bytes):
        return bytes_of(printed) == packed
    if isinstance(packed, dict):
        return isinstance(printed, dict) and list(printed) == [str(key) for key in packed] and all(
            same(printed[str(key)], value) for key, value in packed.items())
    if isinstance(packed, list):
        return len(printed) == len(packed) and all(map(same, printed, packed))
    if isinstance(packed, float) and not math.isfinite(packed):
        return math.isnan(packed) and printed == "NaN" or SPECIAL.get(printed) == packed
    return printed == packed and isinstance(printed, bool) == isinstance(packed, bool)


class DecodeTest(unittest.TestCase):
    def test_every_golden_message_loses_nothing_as_json(self):
        kinds = ("valid", "results", "progress", "telemetry")
        messages = sorted(path for kind in kinds for path in (GOLDEN / kind).glob("*.msgpack"))
        self.assertGreater(len(messages), 50)
        for path in messages:
            packed = msgpack.unpackb(path.read_bytes(), strict_map_key=False)
            done = decode(path.read_bytes(), "--json")
            self.assertEqual((done.returncode, done.stderr), (0, b""), path)
            self.assertTrue(same(json.loads(done.stdout), packed), path)
            done = decode(path.read_bytes())
            self.assertEqual((done.returncode, done.stdout[:4]), (0, b"---\n"), path)

    def test_messages_are_read_one_after_the_other_and_printed_a_line_each(self):
        many = b"".join(msgpack.packb({"id": str(number), "data": b"x" * 1000}) for number in range(1000))
        done = decode(many, "--json")
        self.assertEqual([json.loads(line)["id"] for line in done.stdout.splitlines()], [str(number) for number in range(1000)])

    def test_text_that_is_no_utf8_and_control_characters_stay_json_and_off_the_terminal(self):
        done = decode(msgpack.packb({b"\xff".decode(errors="surrogateescape"): "\x1b[2J\x9b"}, unicode_errors="surrogateescape"),
                      "--json")
        self.assertEqual(json.loads(done.stdout), {"?": "\x1b[2J\x9b"})
        self.assertNotIn(b"\x1b", done.stdout)
        self.assertNotIn(b"\xc2\x9b", done.stdout)

    def test_a_file_that_ends_early_gives_what_is_whole_and_fails(self):
        done = decode(msgpack.packb({"id": "a"}) + msgpack.packb({"id": "b"})[:-1], "--json")
        self.assertEqual((done.returncode, done.stdout), (1, b'{"id": "a"}\n'))
        self.assertIn(b"gpu-worker decode: ", done.stderr)

    def test_what_is_no_message_is_refused(self):
        for given, said in ((b"root:x:0\n", b"what comes after 0 messages is no map"), (b"\x93\1\2\3", b"is no map"),
                            (b'{"headers": 7}\n', b"no dead letter: byte 12"), (b"\x81\xa1a\xc1", b"")):
            done = decode(given)
            self.assertEqual((done.returncode, done.stdout), (1, b""), given)
            self.assertIn(said, done.stderr)
        done = subprocess.run([BINARY, "decode", "/nowhere/x"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr),
                         (1, "gpu-worker decode: /nowhere/x: No such file or directory; name a file that can be read\n"))
        self.assertEqual(decode(b"").stdout, b"")

    def test_dead_letters_of_a_run_are_printed_with_their_headers(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "jobs").write_bytes(msgpack.packb({"v": 1, "id": "lost", "buffers": {}, "outputs": [], "steps": [
                {"program": "nothing", "args": [], "elements": 1}]}))
            ran = subprocess.run([BINARY, "run", "--driver", "cpu", "--jobs", folder / "jobs", "--results", folder / "results",
                                  "--dead-letters", folder / "dead"], capture_output=True, timeout=120)
            self.assertEqual(ran.returncode, 7, ran.stderr)
            letters = (folder / "dead").read_bytes()
            with open("/dev/full", "w") as full:
                lost = subprocess.run([BINARY, "decode", folder / "dead"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual((lost.returncode, lost.stderr),
                         (1, "gpu-worker decode: standard output: some of it could not be written\n"))
        done = decode(letters, "--json")
        letter = json.loads(done.stdout)
        self.assertEqual(letter["message"]["id"], "lost")
        self.assertIn(["dlq.error.code", "unknown_program"], letter["headers"])
        done = decode(letters)
        self.assertIn(b"--- # -/0/0\n", done.stdout)
        self.assertIn(b"# dlq.error.code: unknown_program\n", done.stdout)
        self.assertIn(b"\nid: lost\n", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
