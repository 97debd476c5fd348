"""Brokers that nobody can reach. It waits for them for 15 s, and needs no other broker meanwhile.
usage: unreachable_test.py BUILD_FOLDER"""

import unittest

from worker_flow import FlowTest


class UnreachableTest(FlowTest):
    def test_a_broker_that_is_not_there_is_one_clear_error(self):
        tailed = self.run_to_end({"kafka": {"bootstrap_servers": "127.0.0.1:1"}}, "tail")
        self.assertEqual(tailed.returncode, 5)
        self.assertEqual(len(tailed.stderr.splitlines()), 1, tailed.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
