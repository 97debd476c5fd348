"""guard.py itself, with a binary that prints what the test says."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

GUARD = pathlib.Path(__file__).with_name("guard.py")
KEYS = {"engine": "ratio_percent", "state": "ratio_percent", "arrays": "times_single"}
STUB = """#!{python}
import json, pathlib, sys
which, calls = sys.argv[2], pathlib.Path({calls!r})
calls.write_text(calls.read_text() + which + "\\n")
tries = calls.read_text().splitlines().count(which)
ratio = {ratios!r}[which][min(tries, len({ratios!r}[which])) - 1]
print(json.dumps({{"bench": which, "work": "small", {keys!r}[which]: {{"least": 0, "median": ratio, "most": ratio}}}}))
"""


class Guard(unittest.TestCase):
    def run_guard(self, ratios, *more, recorded=None):
        """`ratios`: what each run of a bench says, in turn; the last again and again."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            binary, file, calls = folder / "binary", folder / "recorded.json", folder / "calls"
            calls.write_text("")
            binary.write_text(STUB.format(python=sys.executable, calls=str(calls), ratios=ratios, keys=KEYS))
            binary.chmod(0o700)
            file.write_text(json.dumps(recorded))
            done = subprocess.run([sys.executable, "-B", GUARD, binary, file, *more], capture_output=True, text=True, timeout=120)
            return done.returncode, done.stdout + done.stderr, json.loads(file.read_text())

    def test_half_of_what_was_recorded_is_enough(self):
        code, output, _ = self.run_guard({"engine": [40]}, recorded={"engine": {"small": 80}})
        self.assertEqual(0, code, output)

    def test_less_than_half_fails_and_names_the_work(self):
        code, output, _ = self.run_guard({"engine": [39]}, recorded={"engine": {"small": 80}})
        self.assertEqual(1, code, output)
        self.assertIn("engine, small: ratio_percent is 39, less than half of the recorded 80", output)

    def test_the_best_of_several_tries_counts(self):
        code, output, _ = self.run_guard({"engine": [10, 10, 80, 10]}, recorded={"engine": {"small": 80}})
        self.assertEqual(0, code, output)

    def test_work_that_is_not_recorded_fails(self):
        code, output, _ = self.run_guard({"engine": [80]}, recorded={"engine": {"large": 80}})
        self.assertEqual(1, code, output)
        self.assertIn("nothing is recorded of engine, small", output)

    def test_a_record_is_the_median_of_three_runs(self):
        code, output, recorded = self.run_guard({"engine": [1, 90, 80], "state": [100], "arrays": [2, 3, 4]}, "--record")
        self.assertEqual(0, code, output)
        self.assertEqual({"engine": {"small": 80}, "state": {"small": 100}, "arrays": {"small": 3}}, recorded)


if __name__ == "__main__":
    unittest.main()
