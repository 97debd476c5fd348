"""A worker with the broker inside it whose jobs do their worst: each failure costs its own job.
usage: local_test.py BUILD_FOLDER"""

import os
import sys
import traceback
import unittest

import numpy
from worker_flow import BINARY, BUILD, PATIENCE_S, ROOT, FlowTest, gw

sys.path.insert(0, str(ROOT / "tests/containment"))
from poison import poisonous

X = numpy.arange(4, dtype="<f4")
GOOD, FORKED = 5, 20  # on each side of the bad job; in a child


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

    def fork(self, run):
        """A child that runs it; its process id. It exits with 0 where that raises nothing."""
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                run()
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        return pid

    def test_a_forked_child_has_answers_of_the_worker_of_its_parent(self):
        saxpy = self.start_local().program("saxpy")
        saxpy(a=2, x=X, y=X).result(PATIENCE_S)

        def run():  # its reader looks after the worker behind each answer
            for _ in range(FORKED):
                saxpy(a=2, x=X, y=X).result(PATIENCE_S)
        self.assertEqual(os.waitpid(self.fork(run), 0)[1], 0)
        numpy.testing.assert_array_equal(saxpy(a=2, x=X, y=X).result(PATIENCE_S)["y"], 3 * X)

    def test_a_worker_ends_with_its_client_also_where_a_forked_child_lives_on_and_learns_it(self):
        client = self.start_local()
        saxpy = client.program("saxpy")
        saxpy(a=2, x=X, y=X).result(PATIENCE_S)
        is_closed, close = os.pipe()

        def run():
            os.close(close)
            os.read(is_closed, 1)  # until the parent has closed the client
            with self.assertRaisesRegex(ConnectionError, "the worker has ended"):
                client.worker.check()
        pid = self.fork(run)
        client.close()
        os.close(close)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual(client.worker._process.returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
