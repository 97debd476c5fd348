"""The supervisor and its executors as processes: who starts again, who ends, and who never runs twice.
usage: supervise_test.py BUILD_FOLDER"""

import contextlib
import ctypes
import os
import pathlib
import re
import signal
import subprocess
import unittest

from worker_flow import BINARY, PATIENCE_S, FlowTest, ask, is_saxpy, reserve_address, saxpy

import gpu_worker as gw
import msgpack
import worker_process

LIBC = ctypes.CDLL(None)
# What an executor keeps, as <linux/capability.h> numbers them: CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER,
# IPC_LOCK, SYS_NICE
KEPT_CAPABILITIES = sum(1 << number for number in (0, 1, 2, 3, 14, 23))


def executors_of(pid):
    """The child processes of one; none once it is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    # Between fork and exec a child still shows its parent's arguments, and while it lists devices, others.
    return [int(child) for child in text.split() if "--state" in arguments_of(child)]


def arguments_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def device_of(executor):
    arguments = arguments_of(executor)
    return arguments[arguments.index("--device") + 1]


def status_of(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def thread_of(pid, name):
    for comm in pathlib.Path("/proc").glob(f"{pid}/task/*/comm"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if comm.read_text().strip() == name:
                return int(comm.parent.name)
    return None


class SuperviseTest(FlowTest):
    def start(self, *arguments, stdin=subprocess.DEVNULL, name="log"):
        log = self.folder / name
        with open(log, "wb") as output:
            process = subprocess.Popen(
                [BINARY, "run", *arguments], stdin=stdin, stdout=output, stderr=output,
                env=os.environ | {"XDG_STATE_HOME": str(self.folder / "state")})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, log

    def wait_for_executors(self, process, count, but=()):
        return self.wait_until(lambda: [pid for pid in executors_of(process.pid) if pid not in but], f"{count} executors",
                               is_met=lambda found: len(found) == count)

    def write_config(self, **config):
        path = self.folder / "worker.yaml"
        worker_process.write_config(path, {"driver": "cpu", "lanes": 2} | config)
        return path

    def write_jobs(self, count):
        """Every tenth job fails: its answer stands in two files."""
        path = self.folder / "jobs"
        broken = {"steps": [gw.step("nope", [], grid=[1])]}
        path.write_bytes(b"".join(
            msgpack.packb(saxpy(number) | (broken if number % 10 == 9 else {})) for number in range(count)))
        return path

    def run_and_kill(self, count, kills, **config):
        results, letters = self.folder / "results", self.folder / "letters"
        config = self.write_config(retry={"max_attempts": 1}, limits={"jobs_in_flight": 64}, **config)
        process, log = self.start("--config", config, "--jobs", self.write_jobs(count), "--results", results,
                                  "--dead-letters", letters)
        killed = []
        for number in range(kills):
            pids = self.wait_for_executors(process, 1, but=killed)
            size = results.stat().st_size if results.exists() else 0
            self.wait_until(lambda: process.poll() is not None or
                            (results.exists() and results.stat().st_size > size + 20_000), "more results")
            if process.poll() is not None:
                break
            os.kill(pids[0], signal.SIGKILL)
            killed += pids
        self.assertGreater(len(killed), 0)
        self.assertEqual(process.wait(PATIENCE_S), 7, log.read_text()[-4000:])
        answered = list(gw.read_results(results))
        self.assertEqual(len(answered), count)
        self.assertEqual(len({result["id"] for result in answered}), count)
        for result in answered:
            number = int(result["id"].removeprefix("job-"))
            self.assertEqual(result["status"], "error" if number % 10 == 9 else "ok", result)
            self.assertTrue(number % 10 == 9 or is_saxpy(result, number), result)
        self.assertEqual(len(letters.read_text().splitlines()), count // 10)

    def test_a_run_of_files_goes_on_when_its_executor_is_killed_and_answers_each_job_once(self):
        self.run_and_kill(30_000, kills=4)

    def test_the_same_with_lanes_that_spin(self):
        self.run_and_kill(15_000, kills=2, lane_wait="spin")

    def test_a_run_from_a_pipe_ends_with_its_executor_and_says_why(self):
        process, log = self.start("--config", self.write_config(), "--jobs", "-", "--results", self.folder / "r",
                                  stdin=subprocess.PIPE)
        os.kill(self.wait_for_executors(process, 1)[0], signal.SIGKILL)
        self.assertEqual(process.wait(PATIENCE_S), 1)
        self.assertIn("cannot be read again", log.read_text())
        process.stdin.close()

    def test_a_batch_that_never_ends_costs_the_executor_its_life(self):
        process, log = self.start(
            "--config", self.write_config(limits={"timeout_ms": 500}, cpu_driver={"faults": "cuLaunchKernel:hang@2"}),
            "--jobs", "-", "--results", self.folder / "r", stdin=subprocess.PIPE)
        process.stdin.write(b"".join(msgpack.packb(saxpy(number)) for number in range(2)))
        process.stdin.flush()
        self.assertEqual(process.wait(PATIENCE_S), 4)
        self.assertIn("gpu_hang", log.read_text())
        process.stdin.close()

    def start_service(self, faults="", **config):
        """A worker on two CPU devices, which takes its jobs from the broker inside another worker; that one has the
        topic, and takes none of them."""
        address = self.folder / "address"
        broker = self.write_config(broker="embedded", embedded={"address_file": str(address), "partitions": 1},
                                   topics={"jobs": ["others"], "reply_to": ["gpu-jobs"]},
                                   state={"dir": str(self.folder / "broker-state")})
        self.start("--config", broker, name="broker-log")
        self.servers = self.wait_until(lambda: address.exists() and address.read_text().strip(), "a broker")
        path = self.write_config(
            kafka={"bootstrap_servers": self.servers, "group": "two", "consumer": {"session.timeout.ms": 6000}},
            cpu_driver={"devices": 2, "faults": faults}, commit_interval_ms="100ms", **config)
        process, log = self.start("--config", path)
        return process, log, path, self.wait_for_executors(process, 2)

    def metrics(self, family):
        """The family's values by the labels of each but the UUID."""
        found = {}
        for line in ask(self.http, "/metrics")[1].splitlines():
            name, labels, value = re.fullmatch(r"(?:#.*|(\w+)(?:{([^}]*)})? (\S+))", line).groups()
            if name == family:
                pairs = re.findall(r'(\w+)="([^"]*)"', labels)
                found[tuple(text for label, text in pairs if label != "uuid")] = float(value)
        return found

    def wait_until_ready(self, log, count=2):
        self.wait_until(lambda: log.read_text().count(" ready: "), "executors that are ready",
                        is_met=lambda found: found >= count)

    def test_each_device_has_an_executor_that_starts_again_alone_and_all_stop_together(self):
        process, log, path, executors = self.start_service()
        self.assertEqual(sorted(map(device_of, executors)), ["0", "1"])
        self.wait_until_ready(log)

        killed, other = sorted(executors, key=lambda pid: device_of(pid) != "0")
        second = subprocess.Popen(  # it waits for twenty seconds, in which the other one is killed
            [BINARY, "run", "--no-supervisor", "--config", path, "--device", "1",
             "--state", self.folder / "state/gpu-worker/gpu1.state"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(second.kill)

        os.kill(killed, signal.SIGKILL)
        started = self.wait_for_executors(process, 1, but=executors)
        self.assertIn(other, executors_of(process.pid))
        self.wait_until_ready(log, 3)
        _, said = second.communicate(timeout=PATIENCE_S)
        self.assertEqual(second.returncode, 3, said)
        self.assertIn("another executor runs with", said)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(PATIENCE_S), 0, log.read_text())
        self.assertFalse(any(is_alive(pid) for pid in executors + started))

    def test_ps_calls_executors_what_it_calls_their_supervisor(self):
        process, log, _, executors = self.start_service()
        self.wait_until_ready(log)
        names = {pathlib.Path(f"/proc/{pid}/comm").read_text().strip() for pid in executors + [process.pid]}
        self.assertEqual(names, {"gpu-worker"})

    def test_no_file_of_a_worker_takes_the_place_of_a_closed_standard_stream(self):
        def close_standard_streams():
            os.closerange(0, 3)

        path = self.write_config(broker="embedded", state={"dir": str(self.folder / "state")})
        process = subprocess.Popen([BINARY, "run", "--config", path], preexec_fn=close_standard_streams)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        (executor,) = self.wait_for_executors(process, 1)
        for pid in (process.pid, executor):
            streams = {os.readlink(f"/proc/{pid}/fd/{stream}") for stream in range(3)}
            self.assertEqual(streams, {"/dev/null"})
        process.terminate()
        self.assertEqual(process.wait(PATIENCE_S), 0)

    def test_a_stop_reaches_an_executor_through_any_of_its_threads(self):
        path = self.write_config(broker="embedded")
        process, log = self.start("--no-supervisor", "--config", path)
        self.wait_until_ready(log, 1)
        publisher = self.wait_until(lambda: thread_of(process.pid, "publisher"), "the publisher's thread")
        self.assertEqual(LIBC.tgkill(process.pid, publisher, signal.SIGTERM), 0)
        self.assertEqual(process.wait(PATIENCE_S), 0, log.read_text())

    def test_an_executor_that_does_not_stop_is_killed_and_the_log_says_so(self):
        path = self.write_config(broker="embedded", drain_timeout_ms="0ms", state={"dir": str(self.folder / "state")})
        process, log = self.start("--config", path)
        (executor,) = self.wait_for_executors(process, 1)
        self.wait_until_ready(log, 1)
        os.kill(executor, signal.SIGSTOP)
        process.terminate()
        self.assertEqual(process.wait(PATIENCE_S), 6, log.read_text())
        self.assertIn("the executor has not ended 5000 ms after the signal to stop: killing it", log.read_text())

    def test_what_signals_its_parent_ignored_or_blocked_makes_no_difference_to_a_worker(self):
        def ignore_and_block():
            for number in (signal.SIGCHLD, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())

        path = self.write_config(kafka={"bootstrap_servers": "127.0.0.1:1"}, state={"dir": str(self.folder / "state")})
        process = subprocess.Popen([BINARY, "run", "--config", path], preexec_fn=ignore_and_block, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        (executor,) = self.wait_for_executors(process, 1)
        os.kill(executor, signal.SIGKILL)
        self.wait_for_executors(process, 1, but=[executor])
        process.terminate()
        self.assertEqual(process.wait(PATIENCE_S), 0)

    def test_a_device_whose_memory_cannot_be_corrected_gets_no_executor_any_more(self):
        path = self.write_config(cpu_driver={"faults": "cuLaunchKernel:ecc_uncorrectable@1"})
        jobs, results = self.folder / "jobs", self.folder / "results"
        jobs.write_bytes(msgpack.packb(saxpy(1)))
        process, log = self.start("--config", path, "--jobs", jobs, "--results", results)
        self.assertEqual(process.wait(PATIENCE_S), 4, log.read_text())
        (said,) = [line for line in log.read_text().splitlines() if "is unhealthy" in line]
        self.assertIn("ecc", said.lower())
        self.assertNotIn("starting it again", log.read_text())
        self.assertEqual(results.read_bytes(), b"", "nobody is blamed for it")

    def test_an_executor_can_do_less_than_its_supervisor_and_its_state_is_nobody_elses(self):
        process, log, _, executors = self.start_service()
        self.wait_until_ready(log)
        for pid in executors:
            status = status_of(pid)
            self.assertEqual(status["NoNewPrivs"], "1")
            for name in ("CapEff", "CapPrm", "CapInh"):
                self.assertEqual(int(status[name], 16) & ~KEPT_CAPABILITIES, 0, f"{name} {status[name]}")
            self.assertRegex(pathlib.Path(f"/proc/{pid}/limits").read_text(), r"Max core file size +0 +0 ")
        files = list((self.folder / "state").rglob("*.state"))
        self.assertEqual(len(files), 2, files)
        for file in files:
            self.assertEqual(file.stat().st_mode & 0o777, 0o600, file)

    def test_executors_do_not_outlive_their_supervisor(self):
        process, _, _, executors = self.start_service()
        process.kill()
        self.wait_until(lambda: list(filter(is_alive, executors)), "the end of the executors", is_met=lambda left: not left)

    def test_a_device_whose_executor_dies_again_and_again_is_given_up_and_the_other_goes_on(self):
        self.http = reserve_address(self)
        process, log, _, executors = self.start_service(executors={"deaths_max": 1}, http={"listen": self.http})
        self.wait_until_ready(log)
        os.kill(executors[0], signal.SIGKILL)
        self.wait_until(lambda: "is unhealthy" in log.read_text(), "a line that says so")
        self.assertEqual(executors_of(process.pid), [executors[1]])
        self.assertEqual(self.metrics("gpu_worker_device_healthy"), {("0", "deaths"): 0, ("1", ""): 1})
        self.assertEqual(self.metrics("gpu_worker_executor_up"), {("0",): 0, ("1",): 1})
        deaths = self.metrics("gpu_worker_executor_deaths_total")
        self.assertEqual({labels for labels, count in deaths.items() if count > 0}, {("0", "unexplained")})
        os.kill(executors[1], signal.SIGKILL)
        self.assertEqual(process.wait(PATIENCE_S), 4)

    def test_a_configuration_that_cannot_work_is_not_tried_again(self):
        process, log = self.start("--config", self.write_config(devices=[0, 7], cpu_driver={"devices": 2}))
        self.assertEqual(process.wait(PATIENCE_S), 4)
        self.assertEqual(len(log.read_text().splitlines()), 1, log.read_text())
        self.assertIn("no device '7'", log.read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
