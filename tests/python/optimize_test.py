"""CMA-ES of the package cma finds the same on workers as on the CPU. usage: optimize_test.py BUILD_FOLDER"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

BUILD = pathlib.Path(sys.argv.pop(1))
ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "build/deps/examples"
DRIVER = os.environ.get("GPU_WORKER_TEST_DRIVER", "cpu")
AT_ZERO = 0.6931  # the loss where the search begins


class OptimizeTest(unittest.TestCase):
    def test_the_population_on_workers_leads_to_the_same_loss_as_on_the_cpu(self):
        if not PACKAGES.exists():
            self.skipTest("scripts/setup examples installs what this takes")
        done = subprocess.run(
            [sys.executable, "-W", "ignore", ROOT / "config/examples/optimize.py", "--driver", DRIVER, "--generations", "60"],
            capture_output=True, text=True, timeout=280,
            env=os.environ | {"PATH": f"{BUILD / 'bin'}{os.pathsep}{os.environ['PATH']}",
                              "PYTHONPATH": f"{ROOT / 'scripts/python'}{os.pathsep}{PACKAGES}"})
        self.assertEqual(done.returncode, 0, done.stderr)
        on_workers, on_cpu = map(float, re.search(r"loss on workers (\S+), on the CPU with NumPy (\S+)", done.stdout).groups())
        self.assertIn("60 generations of 32 candidates, each generation one job\n", done.stdout)
        self.assertIn("largest difference of a candidate's loss: below 1e-5\n", done.stdout)
        # The search forks where two candidates are nearer to each other than floats tell.
        self.assertLess(abs(on_workers - on_cpu), 0.02)
        self.assertLess(max(on_workers, on_cpu), AT_ZERO / 3)


if __name__ == "__main__":
    unittest.main()
