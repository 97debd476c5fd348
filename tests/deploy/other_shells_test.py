"""The completions of fish and zsh say what the binary says of itself. usage: other_shells_test.py BUILD"""

import contextlib
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from manual_test import BUILD, ask, listed_commands

FISH, ZSH = ((BUILD / "deploy" / f"gpu-worker.{shell}").resolve() for shell in ("fish", "zsh"))
PATIENCE_S = 240


def complete_in_fish(line):
    """What fish offers for a line, without the descriptions."""
    script = f'source {FISH}; complete -C {json.dumps(line)}'
    done = subprocess.run(["fish", "--no-config", "-c", script], check=True, capture_output=True, text=True)
    assert done.stderr == "", done.stderr
    return [offered.split("\t")[0] for offered in done.stdout.splitlines()]


class FishTest(unittest.TestCase):
    def test_commands_options_words_and_what_they_take_are_offered(self):
        self.assertCountEqual(complete_in_fish("gpu-worker "), [*listed_commands(), "help"])
        self.assertEqual(complete_in_fish("gpu-worker help sub"), ["submit"])
        for name in listed_commands():
            options = re.findall(r"(?m)^  (--[a-z-]+)", ask(name, "--help"))
            self.assertEqual(set(complete_in_fish(f"gpu-worker {name} --")), {*options, "--help"}, name)
        self.assertCountEqual(complete_in_fish("gpu-worker run --driver "), ["cuda", "cpu"])
        self.assertCountEqual(complete_in_fish("gpu-worker config s"), ["show", "schema"])
        self.assertEqual(complete_in_fish("gpu-worker tail --count "), [])
        self.assertIn(str(FISH), complete_in_fish(f"gpu-worker check --config {str(FISH)[:-2]}"))


class ZshTest(unittest.TestCase):
    """A zsh at a terminal: Tab completes a line, and Ctrl-X writes it to a file."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.line = pathlib.Path(folder.name, "line")
        (pathlib.Path(folder.name) / "_gpu-worker").symlink_to(ZSH)
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.environ |= {"ZDOTDIR": folder.name, "TERM": "dumb", "LC_ALL": "C.UTF-8"}
            os.chdir(folder.name)
            os.execvp("zsh", ["zsh", "-f", "-i"])
        self.addCleanup(self.end)
        threading.Thread(target=self.drain, daemon=True).start()
        self.type(f"fpath=({folder.name} $fpath); autoload -U compinit; compinit -u -D; setopt nolistbeep\n"
                  'keep() { print -r -- "$BUFFER" > line.new; mv line.new line; BUFFER="" }; zle -N keep; bindkey "^X" keep\n'
                  "gpu-worker() { : }; true > line\n")
        self.wait_for(self.line.exists)

    def end(self):
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)
        os.close(self.terminal)

    def drain(self):
        with contextlib.suppress(OSError):
            while os.read(self.terminal, 65536):
                pass

    def type(self, text):
        os.write(self.terminal, text.encode())

    def wait_for(self, condition):
        until = time.monotonic() + PATIENCE_S
        while not condition():
            self.assertLess(time.monotonic(), until, "zsh does not answer")
            time.sleep(0.02)

    def completed(self, line):
        self.line.unlink()
        self.type(f"{line}\t\x18")
        self.wait_for(self.line.exists)
        return self.line.read_text().rstrip("\n")

    def test_what_was_begun_is_completed(self):
        for begun, whole in (("gpu-worker sub", "gpu-worker submit "), ("gpu-worker help ta", "gpu-worker help tail "),
                             ("gpu-worker run --driver cu", "gpu-worker run --driver cuda "),
                             ("gpu-worker config de", "gpu-worker config defaults "),
                             ("gpu-worker tail --from", "gpu-worker tail --from-beginning "),
                             ("gpu-worker check --config _gpu", "gpu-worker check --config _gpu-worker "),
                             ("gpu-worker tail --count a", "gpu-worker tail --count a")):
            self.assertEqual(self.completed(begun), whole)

    def test_every_option_of_every_command_is_in_the_file(self):
        text = ZSH.read_text()
        for name in listed_commands():
            part = text.split(f"        {name})\n", 1)[1].split(";;", 1)[0]
            for option in (*re.findall(r"(?m)^  (--[a-z-]+)", ask(name, "--help")), "--help"):
                self.assertIn(f"'*{option}[", part, name)


if __name__ == "__main__":
    unittest.main()
