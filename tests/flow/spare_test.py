"""A spare (executors.spare) as a process: it takes over when the executor dies, and costs nobody anything when it dies
itself. usage: spare_test.py BUILD_FOLDER"""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import unittest
import urllib.error
import urllib.request

from worker_flow import BINARY, BUILD, SLOW, FlowTest, is_saxpy, saxpy

import gpu_worker as gw
import msgpack
import worker_process

END_TIMEOUT_S = 240
COUNT = 800
PROGRAMS = BUILD / "share/gpu-worker/programs"
ANSWERS = {1: BUILD / "tests/pipeline/libanswer_first.so", 2: BUILD / "tests/pipeline/libanswer_second.so"}


def free_address():
    """One that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return "{}:{}".format(*server.getsockname())


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def answer(number):
    """Its result holds the number of the image that ran it."""
    return gw.job(f"job-{number}", buffers={"y": {"bytes": 4}},
                  steps=[gw.step("answer", ["y", gw.u32(1)], elements=1)], outputs=["y"])


class SpareTest(FlowTest):
    """A run of files so slow that it lasts until a test has done its worst."""

    def setUp(self):
        super().setUp()
        self.results, self.log = self.folder / "results", self.folder / "log"
        self.programs = self.folder / "programs"
        shutil.copytree(PROGRAMS / "saxpy", self.programs / "saxpy")

    def start(self, jobs=None, faults="", **config):
        self.http = free_address()
        path, file = self.folder / "worker.yaml", self.folder / "jobs"
        file.write_bytes(b"".join(map(msgpack.packb, jobs or map(saxpy, range(COUNT)))))
        faults = ";".join(filter(None, (SLOW["cpu_driver"]["faults"], faults)))
        worker_process.write_config(path, {
            "driver": "cpu", "lanes": 2, "http": {"listen": self.http}, "executors": {"spare": True},
            "programs": {"dir": str(self.programs)}} | SLOW | {"cpu_driver": {"faults": faults}} | config)
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen(
                [BINARY, "run", "--config", path, "--jobs", file, "--results", self.results],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)

    def device(self):
        """What /status.json says; {} before it says anything."""
        try:
            with urllib.request.urlopen(f"http://{self.http}/status.json", timeout=60) as page:
                return json.load(page)["devices"][0]
        except (urllib.error.URLError, ConnectionError):
            return {}

    def wait_for_spare(self, but=()):
        """The processes of the executor and of a spare that is ready."""
        found = []

        def is_there():
            self.assertIsNone(self.process.poll(), self.log.read_text())
            device = self.device()
            if not device or device["standing"] != "working" or not device["spare"]["is_ready"]:
                return False
            found[:] = [device["executor"]["pid"], device["spare"]["pid"]]
            return found[1] not in but
        self.wait_until(is_there, "a spare that is ready")
        return found

    def wait_for_line(self, text, count=1):
        def is_there():
            log = self.log.read_text(errors="replace")
            self.assertTrue(log.count(text) >= count or self.process.poll() is None, log)
            return log.count(text) >= count
        self.wait_until(is_there, text)

    def assert_ends_well(self, count=COUNT):
        self.assertEqual(self.process.wait(END_TIMEOUT_S), 0, self.log.read_text()[-4000:])
        results = list(gw.read_results(self.results))
        self.assertEqual(len(results), count)
        self.assertEqual(len({result["id"] for result in results}), count)
        for result in results:
            self.assertTrue(is_saxpy(result, int(result["id"].removeprefix("job-"))), result)

    def test_it_takes_over_when_the_executor_is_killed_and_another_one_waits(self):
        self.start()
        seen = []
        for _ in range(3):
            executor, spare = self.wait_for_spare(but=seen)
            if seen:
                self.assertEqual(executor, seen[-1], "the executor is what was the spare")
            seen += [spare]
            os.kill(executor, signal.SIGKILL)
            self.wait_for_line("its spare takes over", len(seen))
        self.assert_ends_well()
        self.assertNotIn("starting it again", self.log.read_text())

    def test_a_death_of_its_own_is_nobodys_and_another_one_is_started(self):
        self.start(executors={"spare": True, "deaths_max": 1})
        executor, spare = self.wait_for_spare()
        os.kill(spare, signal.SIGKILL)
        again, _ = self.wait_for_spare(but=[spare])
        self.assertEqual(again, executor)
        device = self.device()
        self.assertEqual((device["spare"]["deaths"], device["executor"]["deaths"], device["executor"]["starts"]), (1, {}, 1))
        self.assertIn("its spare died: signal 9", self.log.read_text())
        self.assert_ends_well()

    def test_one_whose_context_is_lost_while_it_waits_is_replaced_and_no_job_is_blamed(self):
        self.start(faults="cuStreamSynchronize:illegal_address@1", executors={"spare": True, "deaths_max": 1})
        self.wait_for_line("its spare died: it ended with code 4")
        self.assert_ends_well()
        self.assertNotIn("unhealthy", self.log.read_text())

    def test_one_that_cannot_begin_makes_way_for_a_new_process_and_the_device_stays_healthy(self):
        self.start(faults="cuStreamSynchronize:illegal_address@1", executors={"spare": True, "deaths_max": 2})
        executor, _ = self.wait_for_spare()
        os.kill(executor, signal.SIGKILL)
        self.assert_ends_well()
        self.assertNotIn("unhealthy", self.log.read_text())

    def test_after_a_reload_it_takes_over_with_the_new_programs(self):
        folder = self.programs / "answer"
        folder.mkdir()
        (folder / "program.yaml").write_text(json.dumps({
            "name": "answer", "images": [{"kind": "cpu", "file": "answer.so"}],
            "entries": [{"name": "answer", "args": [{"name": "y", "buffer": "out", "type": "UINT32"},
                                                    {"name": "n", "value": "u32"}]}]}))
        shutil.copy(ANSWERS[1], folder / "answer.so")
        self.start(jobs=map(answer, range(COUNT)))
        executor, spare = self.wait_for_spare()
        shutil.copy(ANSWERS[2], folder / "answer.so")
        self.process.send_signal(signal.SIGHUP)
        self.wait_for_line(" reloaded: ")
        executor, _ = self.wait_for_spare(but=[spare])
        os.kill(executor, signal.SIGKILL)
        self.assertEqual(self.process.wait(END_TIMEOUT_S), 0, self.log.read_text()[-4000:])
        images = [int.from_bytes(result["outputs"][0]["data"], "little") for result in gw.read_results(self.results)]
        self.assertEqual((len(images), images[0], images[-1]), (COUNT, 1, 2))
        self.assertEqual(self.log.read_text().count(" reloaded: "), 1, "the spare had them when it began")
        self.assertNotIn("its spare died", self.log.read_text())

    def test_a_stop_ends_it_with_the_executor(self):
        self.start()
        pids = self.wait_for_spare()
        self.process.terminate()
        self.assertEqual(self.process.wait(END_TIMEOUT_S), 6, self.log.read_text())
        self.wait_until(lambda: not any(map(is_alive, pids)), "the end of both")
        self.assertNotIn("its spare died", self.log.read_text())

    def test_it_does_not_outlive_its_supervisor(self):
        self.start()
        pids = self.wait_for_spare()
        self.process.kill()
        self.wait_until(lambda: not any(map(is_alive, pids)), "the end of both")

    def test_metrics_say_whether_it_is_ready(self):
        self.start()
        self.wait_for_spare()
        with urllib.request.urlopen(f"http://{self.http}/metrics", timeout=60) as page:
            self.assertRegex(page.read().decode(), "(?m)^gpu_worker_spare_ready{.*} 1$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
