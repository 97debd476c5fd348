"""A spare (executors.spare) as a process: it takes over when the executor dies, and costs nobody anything when it dies
itself. usage: spare_test.py BUILD_FOLDER"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import unittest

from answering import answer, answered_by, install_answer
from gate import Gate, is_right, paced
from worker_flow import BINARY, BUILD, PATIENCE_S, FlowTest, ask, reserve_address

import gpu_worker as gw
import msgpack
import worker_process

COUNT = 4000  # which take longer than any test waits, until it opens their gate


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class SpareTest(FlowTest):
    """A run of files that lasts until a test has done its worst: then it opens the gate."""

    def setUp(self):
        super().setUp()
        self.results, self.log = self.folder / "results", self.folder / "log"
        self.programs = self.folder / "programs"
        shutil.copytree(BUILD / "tests/flow/ledger", self.programs / "ledger")

    def start(self, jobs=None, faults="", **config):
        self.http = reserve_address(self)
        path, file = self.folder / "worker.yaml", self.folder / "jobs"
        file.write_bytes(b"".join(map(msgpack.packb, jobs or map(paced, range(COUNT)))))
        self.gate = Gate(self)
        worker_process.write_config(path, {
            "driver": "cpu", "lanes": 2, "http": {"listen": self.http}, "executors": {"spare": True},
            "programs": {"dir": str(self.programs)}, "batch": {"jobs": 1}, "limits": {"jobs_in_flight": 64},
            "cpu_driver": {"faults": faults}} | config)
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen(
                [BINARY, "run", "--config", path, "--jobs", file, "--results", self.results],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)

    def device(self):
        """What /status.json says; {} before it says anything."""
        status, page, _ = ask(self.http, "/status.json")
        return json.loads(page)["devices"][0] if status == 200 else {}

    def wait_for_spare(self, but=()):
        """The processes of the executor and of a spare that is ready."""
        def look():
            self.assertIsNone(self.process.poll(), self.log.read_text())
            return self.device()

        def is_there(device):
            return (device.get("standing") == "working" and device["spare"]["is_ready"]
                    and device["spare"]["pid"] not in but)
        device = self.wait_until(look, "a spare that is ready", is_met=is_there)
        return device["executor"]["pid"], device["spare"]["pid"]

    def wait_for_line(self, text, count=1):
        def look():
            status, log = self.process.poll(), self.log.read_text(errors="replace")
            self.assertTrue(log.count(text) >= count or status is None, log)
            return log.count(text)
        self.wait_until(look, text, is_met=lambda found: found >= count)

    def wait_for_more_results(self):
        """More than were in the executor's hands: what another one had in hand when it was killed is over."""
        def count():
            unpacker = msgpack.Unpacker()
            unpacker.feed(self.results.read_bytes() if self.results.exists() else b"")
            return sum(1 for _ in unpacker)
        before = count()
        self.wait_until(count, "more results", is_met=lambda found: found > before + 20)

    def assert_ends_well(self, count=COUNT):
        self.gate.open()
        self.assertEqual(self.process.wait(PATIENCE_S), 0, self.log.read_text()[-4000:])
        results = list(gw.read_results(self.results))
        self.assertEqual(len(results), count)
        self.assertEqual(len({result["id"] for result in results}), count)
        for result in results:
            self.assertTrue(is_right(result, int(result["id"].removeprefix("job-"))), result)

    def test_it_takes_over_when_the_executor_is_killed_and_another_one_waits(self):
        self.start()
        seen = []
        for _ in range(3):
            executor, spare = self.wait_for_spare(but=seen)
            if seen:
                self.assertEqual(executor, seen[-1], "the executor is what was the spare")
            seen += [spare]
            self.wait_for_more_results()
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
        install_answer(self.programs, 1)
        self.start(jobs=[answer(0), *map(paced, range(1, COUNT - 1)), answer(COUNT - 1)])
        executor, spare = self.wait_for_spare()
        self.wait_for_more_results()  # the first one's is there
        install_answer(self.programs, 2)
        self.process.send_signal(signal.SIGHUP)
        self.wait_for_line(" reloaded: ")
        executor, _ = self.wait_for_spare(but=[spare])
        os.kill(executor, signal.SIGKILL)
        self.gate.open()
        self.assertEqual(self.process.wait(PATIENCE_S), 0, self.log.read_text()[-4000:])
        results = {result["id"]: result for result in gw.read_results(self.results)}
        self.assertEqual(len(results), COUNT)
        self.assertEqual([answered_by(results[f"job-{number}"]) for number in (0, COUNT - 1)], [1, 2])
        self.assertEqual(self.log.read_text().count(" reloaded: "), 1, "the spare had them when it began")
        self.assertNotIn("its spare died", self.log.read_text())

    def test_a_stop_ends_it_with_the_executor(self):
        self.start()
        pids = self.wait_for_spare()
        self.process.terminate()
        self.assertEqual(self.process.wait(PATIENCE_S), 6, self.log.read_text())
        self.wait_until(lambda: list(filter(is_alive, pids)), "the end of both", is_met=lambda left: not left)
        self.assertNotIn("its spare died", self.log.read_text())

    def test_it_does_not_outlive_its_supervisor(self):
        self.start()
        pids = self.wait_for_spare()
        self.process.kill()
        self.wait_until(lambda: list(filter(is_alive, pids)), "the end of both", is_met=lambda left: not left)

    def test_metrics_say_whether_it_is_ready(self):
        self.start()
        self.wait_for_spare()
        self.assertRegex(ask(self.http, "/metrics")[1], "(?m)^gpu_worker_spare_ready{.*} 1$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
