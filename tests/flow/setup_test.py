"""scripts/setup, where everything that it starts is a script here: what downloads do to each other, and to the next run."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE_S = 60
LISTS = {"plot": "tests/bench/plot.txt", "types": "tests/python/types.txt"}

# A test says what a download does besides, in a file with the download's name.
PYTHON = """#!/bin/bash
if [ "$1" = -m ]; then
    mkdir -p "$3/bin"
    ln -s "$FAKES/python3" "$FAKES/pip" "$3/bin"
fi
"""
PIP = """#!/bin/bash
what=$(basename "${0%/bin/pip}")
echo "$what" >>"$FAKES/calls"
if [ -e "$FAKES/$what" ]; then . "$FAKES/$what"; fi
"""


def give_up(*_):
    raise TimeoutError(f"no other end of a pipe, or no end of a script, in {PATIENCE_S} s")


class SetupTest(unittest.TestCase):
    def setUp(self):
        signal.signal(signal.SIGALRM, give_up)  # the only limit that opening a pipe can have
        signal.alarm(PATIENCE_S)
        self.addCleanup(signal.alarm, 0)
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.fakes = self.root / "fakes"
        self.fakes.mkdir()
        for name, text in ("python3", PYTHON), ("pip", PIP):
            (self.fakes / name).write_text(text)
            (self.fakes / name).chmod(0o755)
        for name in "scripts/setup", "scripts/lib.sh", *LISTS.values():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)

    def does(self, download, script, *pipes):
        for name in pipes:
            if not (self.fakes / name).exists():
                os.mkfifo(self.fakes / name)
        (self.fakes / download).write_text(script)

    def begin(self):
        environment = {key: value for key, value in os.environ.items() if key != "GPU_WORKER_NO_INSTALL"}
        process = subprocess.Popen(
            [self.root / "scripts/setup", *LISTS], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
            env=environment | {"PATH": f"{self.fakes}:{os.environ['PATH']}", "FAKES": str(self.fakes)})
        self.addCleanup(process.kill)
        return process

    def end(self, process, code=0):
        said, _ = process.communicate()
        self.assertEqual(process.returncode, code, said)
        return said

    def calls(self):
        return sorted((self.fakes / "calls").read_text().split())

    def test_downloads_run_side_by_side_and_a_second_run_has_nothing_to_do(self):
        self.does("plot", 'echo >"$FAKES/one"; read -r <"$FAKES/two"', "one", "two")
        self.does("types", 'read -r <"$FAKES/one"; echo >"$FAKES/two"')
        self.end(self.begin())
        self.assertEqual(self.end(self.begin()), "")
        self.assertEqual(self.calls(), ["plot", "types"])

    def test_two_at_the_same_time_download_once(self):
        self.does("plot", 'echo >"$FAKES/begun"; read -r <"$FAKES/go"', "begun", "go")
        first = self.begin()
        (self.fakes / "begun").read_text()
        second = self.begin()
        (self.fakes / "go").write_text("\n")
        self.end(first)
        self.end(second)
        self.assertEqual(self.calls(), ["plot", "types"])

    def test_a_download_that_fails_is_told_with_what_it_said_and_alone_is_tried_again(self):
        self.does("plot", "echo there is no such package; exit 3")
        said = self.end(self.begin(), code=1)
        self.assertIn("there is no such package\n", said)
        self.assertIn("setup: failed, see above: plot\n", said)
        (self.fakes / "plot").unlink()
        self.end(self.begin())
        self.assertEqual(self.calls(), ["plot", "plot", "types"])

    def test_no_download_outlives_a_setup_that_is_ended_and_what_was_half_made_is_made_again(self):
        self.does("plot", 'exec 7>"$FAKES/alive"; echo begun >&7; read -r <"$FAKES/never"', "alive", "never")
        process = self.begin()
        with open(self.fakes / "alive") as alive:
            self.assertEqual(alive.readline(), "begun\n")
            process.send_signal(signal.SIGTERM)
            self.end(process, code=128 + signal.SIGTERM)
            self.assertEqual(alive.read(), "")  # the last that could write has ended
        (self.fakes / "plot").unlink()
        self.end(self.begin())
        self.assertEqual(self.calls().count("plot"), 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
