"""Real workers as processes, for the tests."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

LOG_LINES_SHOWN = 40
STOP_TIMEOUT_S = 240  # it ends one that hangs; what a worker has in hand may take long on a busy machine


class Failure(Exception):
    """An error that the user reads without a traceback."""


def write_config(path, config):
    """Writes JSON, which is also YAML and can quote any path."""
    path.write_text(json.dumps(config, indent=2) + "\n")


JOBS_FAILED = 7  # the exit code of a run of files in which every job was answered, and some with an error


class Worker:
    """A running `gpu-worker run`, its log and its state beside its configuration."""

    def __init__(self, binary, config, log, *options, environment=None):
        """`environment`: variables besides those of this process."""
        self._log = log
        with open(log, "wb") as output:
            self._process = subprocess.Popen(
                [binary, "run", "--config", config, *options], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                env=os.environ | {"XDG_STATE_HOME": f"{pathlib.Path(config).absolute()}.state"} | (environment or {}),
            )

    def check(self):
        """Raises if the worker has ended, so that the caller does not wait for it."""
        if self.status() is not None:
            raise Failure(f"the worker ended with status {self.status()}")

    def status(self):
        """The exit status, or None while it runs."""
        return self._process.poll()

    def peak_bytes(self):
        """The most memory that one of its executors has had resident."""
        return max(self._peak_bytes(pid) for pid in self.executors())

    @staticmethod
    def _peak_bytes(pid):
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) * 1024

    def executors(self):
        """The processes that it runs now."""
        pid = self._process.pid
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def reload(self):
        """Asks it to read its configuration and programs again."""
        self._process.send_signal(signal.SIGHUP)

    def ask_to_stop(self):
        """Returns at once; it drains meanwhile."""
        self._process.send_signal(signal.SIGTERM)

    def stop(self):
        """Asks it to drain and end, and makes it end; its exit status."""
        self.ask_to_stop()
        try:
            return self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def pause(self):
        """Stops it where it stands (SIGSTOP), not its executors."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self):
        self._process.send_signal(signal.SIGCONT)

    def kill(self):
        """Kills it without warning (SIGKILL)."""
        self._process.kill()
        self._process.wait()

    def kill_with_executors(self):
        """Kills all of its processes at once, as when a machine is lost."""
        for pid in [*self.executors(), self._process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def wait(self, timeout_s):
        """Waits until it ends by itself; its exit status."""
        return self._process.wait(timeout_s)

    def print_log(self):
        lines = self._log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
        print(f"the end of {self._log}:", *lines, sep="\n  ", file=sys.stderr)
