"""The systemd units: right, confined, and what the worker's own numbers ask for. usage: unit_test.py BUILD"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(1))
EXPOSURE_MAX = 2.5
UNITS = ("gpu-worker.service", "gpu-worker@.service")


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


class UnitTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        subprocess.run(["cmake", "--install", BUILD, "--prefix", self.folder], check=True, capture_output=True)
        self.units = self.folder / "lib/systemd/system"

    def settings(self, name):
        """The keys of a unit, each with all its values."""
        found = {}
        for key, value in re.findall(r"(?m)^([A-Za-z]+)=(.*)$", (self.units / name).read_text()):
            found.setdefault(key, []).append(value)
        return found

    def test_systemd_finds_nothing_wrong(self):
        for name in ("gpu-worker.service", "gpu-worker@one.service"):
            # The pages are named as they are installed, and are not there yet.
            done = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", self.units / name)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""), name)

    def test_little_of_the_machine_is_exposed(self):
        for name in UNITS:
            done = run("systemd-analyze", "security", "--offline=true", "--no-pager", self.units / name)
            exposure = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
            self.assertLess(float(exposure[1]), EXPOSURE_MAX, done.stdout)

    def test_the_gpus_stay_reachable(self):
        for name in UNITS:
            unit = self.settings(name)
            self.assertEqual(unit["DeviceAllow"], ["char-nvidia* rw"])
            self.assertNotIn("PrivateDevices", unit)

    def test_a_stop_gives_jobs_their_drain_timeout_and_ten_seconds(self):
        defaults = run(BUILD / "bin/gpu-worker", "config", "defaults").stdout
        drain_s = int(re.search(r"(?m)^drain_timeout_ms: (\d+)s$", defaults)[1])
        for name in UNITS:
            self.assertEqual(self.settings(name)["TimeoutStopSec"], [str(drain_s + 10)])

    def test_exit_codes_that_would_come_again_are_not_tried_again(self):
        help_text = run(BUILD / "bin/gpu-worker", "--help").stdout
        codes = re.findall(r"(?m)^  (\d+)  (?:wrong arguments|the configuration or a program is wrong)", help_text)
        for name in UNITS:
            unit = self.settings(name)
            self.assertEqual((unit["Restart"], unit["RestartPreventExitStatus"]), (["on-failure"], [" ".join(codes)]))

    def test_instances_share_no_state(self):
        self.assertEqual(self.settings("gpu-worker.service")["StateDirectory"], ["gpu-worker"])
        self.assertEqual(self.settings("gpu-worker@.service")["StateDirectory"], ["gpu-worker/%i"])

    def test_the_user_and_its_folder_are_what_systemd_understands(self):
        # In a root of its own, which begins empty: what they make is seen there.
        root = self.folder / "root"
        (root / "etc").mkdir(parents=True)
        done = run("systemd-sysusers", f"--root={root}", self.folder / "lib/sysusers.d/gpu-worker.conf")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex((root / "etc/passwd").read_text(), r"(?m)^gpu-worker:.*:/var/lib/gpu-worker:")
        done = run("systemd-tmpfiles", f"--root={root}", "--create", self.folder / "lib/tmpfiles.d/gpu-worker.conf")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual((root / "var/lib/gpu-worker").stat().st_mode & 0o777, 0o750)


if __name__ == "__main__":
    unittest.main()
