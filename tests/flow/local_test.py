"""A worker with the broker inside it whose jobs do their worst: each failure costs its own job.
usage: local_test.py BUILD_FOLDER"""

import sys
import unittest

import numpy
from worker_flow import BINARY, BUILD, PATIENCE_S, ROOT, FlowTest, gw

sys.path.insert(0, str(ROOT / "tests/containment"))
from poison import poisonous

X = numpy.arange(4, dtype="<f4")
GOOD = 5  # on each side of the bad job


class LocalTest(FlowTest):
    def start_local(self, **config):
        """One that has the programs of the worker, and the poisonous one."""
        programs = self.folder / "programs"
        programs.mkdir()
        for program in (BUILD / "share/gpu-worker/programs/saxpy", BUILD / "tests/containment/poison"):
            (programs / program.name).symlink_to(program.resolve())
        client = gw.local(binary=BINARY, programs=programs, folder=self.folder / "local", config=config)
        self.addCleanup(client.close, wait=False)
        return client

    def check_costs_itself_alone(self, entry, code):
        client = self.start_local(retry={"max_attempts": 1})
        saxpy = client.program("saxpy")
        jobs = [saxpy(a=2, x=X, y=X) for _ in range(GOOD)]
        bad = client.submit(poisonous("bad", entry))
        jobs += [saxpy(a=2, x=X, y=X) for _ in range(GOOD)]
        with self.assertRaises(gw.JobFailed) as failed:
            bad.result(PATIENCE_S)
        self.assertEqual(failed.exception.code, code)
        for job in jobs:
            numpy.testing.assert_array_equal(job.result(PATIENCE_S)["y"], 3 * X)

    def test_a_kernel_that_writes_out_of_bounds_costs_its_own_job(self):
        self.check_costs_itself_alone("bad_address", "worker_crash")

    def test_a_kernel_that_hangs_costs_its_own_job(self):
        self.check_costs_itself_alone("endless", "gpu_hang")


if __name__ == "__main__":
    unittest.main(verbosity=2)
