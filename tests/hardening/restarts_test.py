"""An idle executor that crashes again and again.
usage: restarts_test.py BUILD_FOLDER"""

import contextlib
import os
import signal
import unittest

from worker_environment import for_faults
from worker_flow import FlowTest

PATIENCE_S = 240


class RestartsTest(FlowTest):
    def test_crashes_with_nobody_in_hand_have_a_budget(self):
        self.use_environment(for_faults())
        worker = self.start_worker({
            "driver": "cpu", "lanes": 1, "kafka": {"bootstrap_servers": "127.0.0.1:1"},
            "executors": {"deaths_max": 3}, "topics": {"jobs": ["jobs"], "results": "results"}})
        log = self.folder / "worker.log"

        def crash_and_look():
            said = log.read_text()
            if "is unhealthy" in said:  # any child that is left is no executor, but a sanitizer's
                return worker.status() is not None
            if said.count("ready: ") > said.count("the executor died"):
                for pid in worker.executors() if worker.status() is None else []:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGSEGV)
            return False

        self.wait_until(crash_and_look, "the worker gives its device up", PATIENCE_S)
        self.assertEqual(worker.status(), 4)
        self.assertIn("3 deaths within", log.read_text())
        self.assertLessEqual(log.read_text().count("ready: "), 4)


if __name__ == "__main__":
    unittest.main(verbosity=2)
