#!/usr/bin/env python3
"""The check of files finds what it is there to find."""

import pathlib
import tempfile
import unittest

import files

LISTS = {"CMakeLists.txt": "", "worker/base/CMakeLists.txt": "target_sources(worker PRIVATE\n  log.c)\n"}


def violations_of(contents):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in (LISTS | contents).items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return files.violations(root)


class Files(unittest.TestCase):
    def assert_finds(self, expected, contents):
        found = violations_of(contents)
        self.assertEqual(1, len(found), found)
        self.assertIn(expected, found[0])

    def test_a_listed_source_is_fine(self):
        self.assertEqual([], violations_of({"worker/base/log.c": "int x;\n"}))

    def test_a_source_that_is_not_listed(self):
        self.assert_finds("worker/base/og.c:1: is not listed", {"worker/base/og.c": "int x;\n"})

    def test_a_source_that_is_too_long(self):
        self.assert_finds("worker/base/log.c:801:", {"worker/base/log.c": "\n" * 801})

    def test_a_name_at_the_top_that_was_not_agreed(self):
        self.assert_finds("notes/x.md:1:", {"notes/x.md": ""})

    def test_what_a_build_or_a_tool_leaves_is_not_ours(self):
        self.assertEqual([], violations_of({"build/x.c": "", ".cache/x": "", "scripts/__pycache__/x": ""}))

    def test_a_comment_that_begins_with_a_pronoun(self):
        self.assert_finds("worker/base/log.c:1: a comment", {"worker/base/log.c": "/* " "It is written. */\nint x;\n"})
        self.assert_finds("tests/a_test.py:1: a comment", {"tests/a_test.py": '""' '"Its name."""\n'})
        self.assertEqual([], violations_of({"worker/base/log.c": "/* A line is written. It ends. */\nint x;\n"}))

    def test_an_open_mark_and_a_path_of_one_machine(self):
        self.assert_finds("scripts/x:2: leaves", {"scripts/x": "\n# TO" "DO: later\n"})
        self.assert_finds("scripts/x:1: names", {"scripts/x": "cd /ho" "me/someone\n"})


if __name__ == "__main__":
    unittest.main()
