"""What an operator can type by mistake, or do in a hurry, destroys no data and hides no failure.
usage: operator_slips_test.py BUILD_FOLDER"""

import os
import signal
import subprocess
import unittest

from worker_flow import BINARY, PATIENCE_S, FlowTest, saxpy

import gpu_worker as gw
import msgpack
import worker_process

HANGS = {"cpu_driver": {"faults": "cuLaunchKernel:hang@1"}, "drain_timeout_ms": "1h"}


def broken(number):
    return saxpy(number) | {"steps": [gw.step("nope", [], grid=[1])]}


class OperatorSlipsTest(FlowTest):
    def setUp(self):
        super().setUp()
        self.jobs, self.results = self.folder / "jobs", self.folder / "results"

    def write_jobs(self, *jobs):
        self.jobs.write_bytes(b"".join(map(msgpack.packb, jobs)))

    def write_config(self, **config):
        path = self.folder / "worker.yaml"
        worker_process.write_config(path, {"driver": "cpu", "lanes": 2} | config)
        return path

    def run_files(self, *options, **more):
        return subprocess.run([BINARY, "run", *options], capture_output=True, timeout=PATIENCE_S, **more)

    def start(self, *options):
        """The worker in a process group of its own, as a terminal has it, and what it logs."""
        log = self.folder / "log"
        with open(log, "wb") as output:
            process = subprocess.Popen(
                [BINARY, "run", *options], stdin=subprocess.PIPE, stderr=output, start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdin.close)
        return process, log

    def start_on_a_job_that_never_ends(self, *options):
        process, log = self.start("--config", self.write_config(**HANGS), "--jobs", "-", "--results", self.results,
                                  *options)
        process.stdin.write(msgpack.packb(saxpy(0)))
        process.stdin.flush()
        self.wait_until(lambda: " ready: " in log.read_text(), "a worker that is ready")
        return process, log

    # files

    def assert_refused(self, *options):
        before = {path: path.read_bytes() for path in self.folder.iterdir() if path.is_file()}
        run = self.run_files("--driver", "cpu", *options, stdin=subprocess.DEVNULL)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertIn(b"are the same file", run.stderr)
        self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)
        for path, content in before.items():
            self.assertEqual(path.read_bytes(), content, path)

    def test_a_file_that_is_read_is_never_written(self):
        self.write_jobs(saxpy(1))
        hard, soft = self.folder / "hard", self.folder / "soft"
        os.link(self.jobs, hard)
        soft.symlink_to(self.jobs)
        for name in (self.jobs, hard, soft, self.folder / "." / "jobs"):
            self.assert_refused("--jobs", self.jobs, "--results", name)
            self.assert_refused("--jobs", self.jobs, "--results", self.results, "--dead-letters", name)
            self.assert_refused("--jobs", self.jobs, "--results", self.results, "--telemetry", name)
        config = self.write_config()
        self.assert_refused("--config", config, "--jobs", self.jobs, "--results", config)

    def test_two_streams_are_never_written_into_one_file(self):
        self.write_jobs(saxpy(1))
        self.assert_refused("--jobs", self.jobs, "--results", self.results, "--dead-letters", self.results)
        alias = self.folder / "alias"
        alias.symlink_to(self.folder / "letters")  # which is not there yet
        self.assert_refused(
            "--jobs", self.jobs, "--results", self.folder / "letters", "--telemetry", alias)

    def test_the_file_that_standard_input_is_redirected_from_is_not_written(self):
        self.write_jobs(saxpy(1))
        with open(self.jobs, "rb") as jobs:
            run = self.run_files("--driver", "cpu", "--jobs", "-", "--results", self.jobs, stdin=jobs)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertEqual(self.jobs.read_bytes(), msgpack.packb(saxpy(1)))

    def test_all_streams_may_go_to_the_null_device(self):
        self.write_jobs(saxpy(1))
        run = self.run_files("--driver", "cpu", "--jobs", self.jobs, "--results", "/dev/null",
                             "--dead-letters", "/dev/null", "--telemetry", "/dev/null")
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_a_configuration_that_can_be_read_once_is_read_once(self):
        self.write_jobs(saxpy(1))
        read_end, write_end = os.pipe()  # as a shell makes one of <(...)
        os.write(write_end, b"driver: cpu\nlanes: 1\n")
        os.close(write_end)
        run = self.run_files("--config", f"/dev/fd/{read_end}", "--jobs", self.jobs, "--results", self.results,
                             pass_fds=[read_end])
        os.close(read_end)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(list(gw.read_results(self.results))), 1)

    def test_a_pipe_in_the_place_of_a_file_keeps_no_command_waiting(self):
        self.write_jobs(saxpy(1))
        programs, pipe = self.folder / "programs", self.folder / "pipe"
        os.mkfifo(pipe)
        (programs / "mine").mkdir(parents=True)
        os.mkfifo(programs / "mine/program.yaml")
        fine, file_run = self.write_config(), ["--jobs", self.jobs, "--results", self.results]

        def config(**more):
            path = self.folder / f"{next(iter(more))}.yaml"
            worker_process.write_config(path, {"driver": "cpu"} | more)
            return path
        embedded = config(broker="embedded", embedded={"address_file": str(pipe)})
        for command in (["check", "--config", pipe], ["run", "--config", pipe, *file_run],
                        ["config", "show", "--config", pipe],
                        ["check", "--config", fine, "--programs", programs],
                        ["check", "--config", config(profile={"nvtx_library": str(pipe)})],
                        ["check", "--config", config(http={"listen": "127.0.0.1:9400", "token_file": str(pipe)})],
                        ["check", "--config", config(kafka={"producer": {"ssl.ca.location": str(pipe)}})],
                        ["check", "--config", embedded], ["run", "--config", embedded],
                        ["tail", "--config", embedded],
                        ["submit", "--config", embedded, pipe]):
            with self.subTest(command):
                run = subprocess.run([BINARY, *command], capture_output=True, text=True, timeout=PATIENCE_S)
                self.assertGreater(run.returncode, 1, run.stderr)
                self.assertIn("pipe" if pipe in command else ".", run.stderr)

    def test_an_address_file_takes_the_place_of_nothing_else(self):
        jobs = self.folder / "important.txt"
        jobs.write_text("important\n")
        config = self.write_config(broker="embedded", embedded={"address_file": str(jobs)})
        for command in (["check"], ["run"], ["run", "--no-supervisor"]):
            run = subprocess.run([BINARY, *command, "--config", config], capture_output=True, text=True,
                                 timeout=PATIENCE_S)
            self.assertEqual(run.returncode, 3, run.stderr)
            self.assertIn("embedded.address_file", run.stderr)
            self.assertEqual(jobs.read_text(), "important\n")

    def test_a_problem_of_a_configuration_names_the_file_that_was_given(self):
        self.write_jobs(saxpy(1))
        config = self.write_config(lanes=0)
        run = self.run_files("--config", config, "--jobs", self.jobs, "--results", self.results)
        self.assertEqual(run.returncode, 3, run.stderr)
        self.assertIn(f"{config}:".encode(), run.stderr)

    # exit codes

    def test_the_exit_code_says_that_jobs_failed(self):
        self.write_jobs(saxpy(1), broken(2))
        config = self.write_config(retry={"max_attempts": 1})
        for options in ([], ["--no-supervisor"]):
            run = self.run_files("--config", config, "--jobs", self.jobs, "--results", self.results, *options)
            self.assertEqual(run.returncode, 7, run.stderr)

    def test_the_exit_code_says_that_jobs_failed_before_an_executor_died(self):
        # The last job costs the first executor its life; the second one meets no failure of its own.
        self.write_jobs(broken(1), saxpy(2))
        config = self.write_config(retry={"max_attempts": 1}, limits={"jobs_in_flight": 1},
                                   cpu_driver={"faults": "cuLaunchKernel:illegal_address@1"})
        run = self.run_files("--config", config, "--jobs", self.jobs, "--results", self.results)
        self.assertIn(b"starting it again", run.stderr)
        self.assertEqual(run.returncode, 7, run.stderr)

    def test_the_exit_code_says_that_a_run_was_interrupted(self):
        for stop in (signal.SIGTERM, signal.SIGINT):
            for options in ([], ["--no-supervisor"]):
                process, log = self.start("--config", self.write_config(), "--jobs", "-", "--results", self.results,
                                          *options)
                process.stdin.write(msgpack.packb(saxpy(1)))
                process.stdin.flush()
                self.wait_until(lambda: self.results.exists() and self.results.stat().st_size > 0, "a result")
                process.send_signal(stop)
                self.assertEqual(process.wait(PATIENCE_S), 6, log.read_text())
                self.results.unlink()

    def test_what_an_interrupted_run_leaves_is_not_replaced_without_a_word(self):
        letters = self.folder / "letters"
        for options in ([], ["--no-supervisor"]):
            process, log = self.start("--config", self.write_config(), "--jobs", "-", "--results", self.results,
                                      "--dead-letters", letters, *options)
            process.stdin.write(msgpack.packb(saxpy(1)))
            process.stdin.flush()
            self.wait_until(lambda: self.results.exists() and self.results.stat().st_size > 0, "a result")
            process.terminate()
            self.assertEqual(process.wait(PATIENCE_S), 6, log.read_text())
            self.assertIn("interrupted: the same command starts over, and replaces the results", log.read_text())
            self.write_jobs(saxpy(2))
            size = self.results.stat().st_size
            run = self.run_files("--config", self.write_config(), "--jobs", self.jobs, "--results", self.results,
                                 "--dead-letters", letters, *options, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(run.stderr.count(f"{self.results} had {size} bytes of an earlier run, which are replaced"), 1)
            self.assertNotIn(str(letters), run.stderr)  # it was empty
            self.assertNotIn("interrupted", run.stderr)
            self.results.unlink()

    def test_a_run_that_goes_on_after_a_death_replaces_nothing(self):
        self.write_jobs(*map(saxpy, range(8)))
        config = self.write_config(limits={"jobs_in_flight": 1}, batch={"jobs": 1},
                                   cpu_driver={"faults": "cuLaunchKernel:illegal_address@4"})
        run = self.run_files("--config", config, "--jobs", self.jobs, "--results", self.results, text=True)
        self.assertIn("starting it again", run.stderr)
        self.assertNotIn("of an earlier run", run.stderr)

    # signals

    def test_one_interrupt_from_the_terminal_drains_and_a_second_one_stops_at_once(self):
        for stop in (signal.SIGINT, signal.SIGTERM):
            process, log = self.start_on_a_job_that_never_ends()
            os.killpg(process.pid, stop)
            self.wait_until(lambda: "stopping: 1 jobs in flight" in log.read_text(), "a worker that drains")
            self.assertIsNone(process.poll(), "one signal ended a worker with a job in flight")
            os.killpg(process.pid, stop)
            self.assertEqual(process.wait(PATIENCE_S), 6, log.read_text())

    def test_an_executor_without_a_supervisor_stops_at_once_at_the_second_signal(self):
        process, log = self.start_on_a_job_that_never_ends("--no-supervisor")
        process.terminate()
        self.wait_until(lambda: "stopping: 1 jobs in flight" in log.read_text(), "a worker that drains")
        process.terminate()
        self.assertEqual(process.wait(PATIENCE_S), 6, log.read_text())

    def test_a_terminal_that_goes_away_ends_no_worker_that_runs_under_nohup(self):
        with open(self.folder / "log", "wb") as log:
            process = subprocess.Popen(
                ["nohup", BINARY, "run", "--config", self.write_config(), "--jobs", "-", "--results", self.results],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_until(lambda: b" ready: " in (self.folder / "log").read_bytes(), "a worker that is ready")
        os.killpg(process.pid, signal.SIGHUP)
        process.communicate(msgpack.packb(saxpy(1)), timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 0, (self.folder / "log").read_text())
        self.assertEqual(len(list(gw.read_results(self.results))), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
