"""What gpu-worker bench prints; how much it measures is no test's business.
usage: bench_test.py BINARY"""

import re
import subprocess
import sys
import unittest

BINARY = sys.argv.pop(1)
RATE = re.compile(r"\| (.+) \| (\d+) \| (\d+) \| (\d+) % \| (\d+) \.\. (\d+) % \|")


def bench(*arguments):
    return subprocess.run([BINARY, "bench", *arguments], capture_output=True, text=True, timeout=600)


class Bench(unittest.TestCase):
    def test_engine_prints_a_ratio_for_each_kind_of_work_and_what_a_single_job_takes(self):
        done = bench("engine", "--driver", "cpu", "--rounds", "1", "--ms", "1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rates = RATE.findall(done.stdout)
        self.assertEqual(len(rates), 7, done.stdout)
        self.assertEqual(len({name for name, *_ in rates}), 7)
        self.assertRegex(done.stdout, r"one job at a time: baseline [\d.]+ us, worker [\d.]+ us")

    def test_state_compares_the_same_work_with_and_without_a_state_file(self):
        done = bench("state", "--driver", "cpu", "--rounds", "1", "--ms", "1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len(RATE.findall(done.stdout)), 7, done.stdout)
        self.assertIn("without state file", done.stdout)

    def test_isolation_compares_tenants_that_change_seldom_and_always_with_none(self):
        done = bench("isolation", "--driver", "cpu", "--rounds", "1", "--ms", "1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rates = RATE.findall(done.stdout)
        self.assertEqual(len({name for name, *_ in rates}), 16, done.stdout)
        self.assertIn("not isolated", done.stdout)

    def test_wrong_arguments_are_one_line(self):
        for arguments in ([], ["engines"], ["engine", "--rounds", "0"], ["engine", "--rounds", "100"],
                          ["engine", "--ms", "x"], ["engine", "--driver", "gpu"], ["engine", "engine"]):
            done = bench(*arguments)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), arguments)


if __name__ == "__main__":
    unittest.main()
