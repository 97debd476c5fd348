"""The manual pages and the completion of bash say what the binary says of itself. usage: manual_test.py BUILD"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

BUILD = pathlib.Path(sys.argv.pop(1))
BINARY = BUILD / "bin/gpu-worker"
COMMANDS, SETTINGS, COMPLETION = ((BUILD / "deploy" / f"gpu-worker.{name}").resolve() for name in ("1", "yaml.5", "bash"))


def ask(*arguments):
    return subprocess.run([BINARY, *arguments], check=True, capture_output=True, text=True).stdout


def words(text):
    """One line, however it was broken."""
    return " ".join(text.split())


def rendered(page):
    """The page as a reader sees it, without line breaks in words."""
    environment = os.environ | {"MANWIDTH": "500", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": ""}
    return subprocess.run(["man", "--no-hyphenation", "--no-justification", "-l", page], check=True, capture_output=True,
                          text=True, env=environment).stdout


def complete(*typed):
    script = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gpu_worker; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", script, COMPLETION, "gpu-worker", *typed], check=True, capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout.split()


def listed_commands():
    listed = ask("--help").split("\ncommands", 1)[1].split("\n\n", 1)[0].splitlines()[1:]
    return [line.split()[0] for line in listed]


class ManualTest(unittest.TestCase):
    def test_groff_has_no_warning_about_a_page(self):
        for page in (COMMANDS, SETTINGS):
            done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), page.name)

    def test_the_page_of_the_commands_has_every_line_of_every_help_text(self):
        page = words(rendered(COMMANDS))
        for name in listed_commands():
            self.assertIn(f"gpu-worker {name}", page)
            for line in ask(name, "--help").splitlines():
                line = words(re.sub("^(usage:|examples?:|exit codes:)", "", line))
                self.assertIn(line, page, name)

    def test_the_page_of_the_settings_has_every_row_of_their_table(self):
        page = words(rendered(SETTINGS))
        rows = ask("config", "table").splitlines()[2:]
        self.assertGreater(len(rows), 50)
        for row in rows:
            key, kind, default, meaning = row.strip("| ").split(" | ", 3)
            self.assertIn(words(f"{key.strip('`')} {kind}, default {default[1:-1]} {meaning}"), page)


class CompletionTest(unittest.TestCase):
    def test_a_command_is_completed_from_its_first_letters(self):
        self.assertEqual(complete(""), [*listed_commands(), "help", "--help", "--version"])
        self.assertEqual(complete("help", "sub"), ["submit"])
        self.assertEqual(complete("sub"), ["submit"])

    def test_every_option_of_every_command_is_offered(self):
        for name in listed_commands():
            options = re.findall(r"(?m)^  (--[a-z-]+)", ask(name, "--help"))
            self.assertEqual(set(complete(name, "--")), {*options, "--help"}, name)

    def test_an_option_is_followed_by_what_it_takes(self):
        self.assertEqual(complete("run", "--driver", ""), ["cuda", "cpu"])
        self.assertEqual(complete("config", "s"), ["show", "schema"])
        self.assertEqual(complete("tail", "--count", ""), [])
        self.assertEqual(complete("check", "--config", str(COMPLETION)[:-2]), [str(COMPLETION)])
        self.assertEqual(complete("programs", "--dir", str(BUILD / "de")), [str(BUILD / "deploy")])


if __name__ == "__main__":
    unittest.main()
