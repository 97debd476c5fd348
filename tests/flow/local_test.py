"""A worker with the broker inside it whose jobs do their worst: each failure costs its own job.
usage: local_test.py BUILD_FOLDER"""

import gc
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import numpy
from worker_flow import BINARY, BUILD, PATIENCE_S, ROOT, SLOWER, FlowTest, gw

sys.path[:0] = [str(ROOT / "tests/containment"), str(ROOT / "tests/python")]
from by_hand import await_child, run_forked, start_forked
from poison import poisonous
from waiting import wait_until

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

    def test_a_forked_child_has_answers_of_the_worker_of_its_parent(self):
        saxpy = self.start_local().program("saxpy")
        saxpy(a=2, x=X, y=X).result(PATIENCE_S)

        def run():  # its reader looks after the worker behind each answer
            for _ in range(FORKED):
                saxpy(a=2, x=X, y=X).result(PATIENCE_S)
        self.assertEqual(run_forked(run), 0)
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
        child = start_forked(run)
        client.close()
        os.close(close)
        self.assertEqual(await_child(child), 0)
        self.assertEqual(client.worker._process.returncode, 0)

    def test_a_job_of_a_forked_child_fails_when_the_worker_of_its_parent_ends(self):
        client = self.start_local(**SLOWER)
        saxpy = client.program("saxpy")
        saxpy(a=2, x=X, y=X).result(PATIENCE_S)
        is_sent, sent = os.pipe()

        def run():
            jobs = [saxpy(a=2, x=X, y=X) for _ in range(1000)]  # more than it does before it ends
            os.write(sent, b"1")
            with self.assertRaisesRegex(ConnectionError, "the worker has ended"):
                for job in jobs:
                    job.result(PATIENCE_S)
        child = start_forked(run)
        os.close(sent)
        os.read(is_sent, 1)
        client.close()
        self.assertEqual(await_child(child), 0)

    def test_a_forked_child_that_ends_as_programs_do_leaves_the_worker_alone(self):
        """The script collects the client, and runs what is to be run at an exit."""
        script = f"""if True:
            import gc, os, sys, gpu_worker as gw
            client = gw.local(binary={str(BINARY)!r})
            saxpy = client.program("saxpy")
            saxpy(a=2, x=[1], y=[1]).result({PATIENCE_S})
            for use in (lambda: None, client.close, client.worker.stop, lambda: saxpy(a=2, x=[1], y=[1]).result({PATIENCE_S})):
                child = os.fork()
                if child == 0:
                    use()
                    del client, saxpy, use
                    gc.collect()
                    sys.exit(0)
                assert os.waitpid(child, 0)[1] == 0
                assert saxpy(a=2, x=[1], y=[1]).result({PATIENCE_S})["y"] == [3]
            assert client.worker.config.exists()
            client.close()
            assert not client.worker.folder.exists() and client.worker._process.returncode == 0"""
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_S,
                             env={**os.environ, "PYTHONPATH": str(ROOT / "scripts/python")})
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))

    def test_local_clients_that_nobody_has_any_more_leave_nothing(self):
        """As a cell of a notebook does that is run again: nothing waits for garbage to be collected."""
        def held():
            lists = [os.listdir(folder) for folder in ("/proc/self/task", "/proc/self/fd", self.folder)]
            return list(map(len, lists))

        self.addCleanup(gc.enable)
        gc.collect()
        gc.disable()
        before, answers, workers = held(), [], []
        with unittest.mock.patch.object(tempfile, "tempdir", str(self.folder)):
            for _ in range(3):
                client = gw.local(binary=BINARY)
                answers.append(client.program("saxpy")(a=2, x=X, y=X))
                answers[-1].result(PATIENCE_S)
                workers.append(client.worker._process)
        del client
        self.wait_until(held, f"it is {before} again", is_met=lambda now: all(a <= b for a, b in zip(now, before)))
        self.assertEqual([process.wait(PATIENCE_S) for process in workers], [0, 0, 0])

    def test_a_worker_that_does_not_stop_in_time_is_killed_and_what_it_started_too(self):
        numbers, stubborn = self.folder / "numbers", self.folder / "stubborn"
        stubborn.write_text(f"#!/bin/sh\ntrap '' TERM\nsleep 3600 & echo $! $$ >{numbers}; wait\n")
        stubborn.chmod(0o755)
        with unittest.mock.patch.object(sys.modules["gpu_worker.local"], "STOP_TIMEOUT_S", 0.1):
            worker = sys.modules["gpu_worker.local"].Worker(stubborn, {}, None, self.folder / "local")
            wait_until(lambda: numbers.exists() and numbers.read_text().split(), "the worker runs")
            worker.stop()
        for number in numbers.read_text().split():
            wait_until(lambda: not pathlib.Path("/proc", number).exists() or "\nState:\tZ" in
                       pathlib.Path("/proc", number, "status").read_text(), "the process has ended")

    def test_a_process_that_is_killed_leaves_nothing_of_its_worker(self):
        script = f"import gpu_worker as gw, time\nclient = gw.local(binary={str(BINARY)!r})\nprint(client.worker.folder, flush=True)\ntime.sleep({PATIENCE_S})"
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONPATH": str(ROOT / "scripts/python")}) as process:
            folder = pathlib.Path(process.stdout.readline().strip())
            self.assertTrue((folder / "worker.log").exists())
            process.kill()
        self.wait_until(folder.exists, "its folder is gone", is_met=lambda is_there: not is_there)


if __name__ == "__main__":
    unittest.main(verbosity=2)
