"""Reloads while jobs of a real Kafka run: none is lost or answered twice, whichever way of delivery.
usage: reload_kafka_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA."""

import json
import os
import shutil
import signal
import unittest

from worker_flow import BUILD, PATIENCE_S, SLOW, KafkaFlowTest

import gpu_worker as gw
import msgpack

ANSWERS = {1: BUILD / "tests/pipeline/libanswer_first.so", 2: BUILD / "tests/pipeline/libanswer_second.so"}
DEVICES = 2


def answer(number):
    return msgpack.packb(gw.job(f"job-{number}", buffers={"y": {"bytes": 4}},
                                steps=[gw.step("answer", ["y", gw.u32(1)], elements=1)], outputs=["y"]))


def answered_by(result):
    return int.from_bytes(result["outputs"][0]["data"], "little")


class ReloadKafkaTest(KafkaFlowTest):
    def install_answer(self, image):
        folder = self.folder / "programs/answer"
        folder.mkdir(exist_ok=True, parents=True)
        shutil.copy(ANSWERS[image], folder / "answer.so")
        (folder / "program.yaml").write_text(json.dumps({
            "name": "answer", "images": [{"kind": "cpu", "file": "answer.so"}],
            "entries": [{"name": "answer", "args": [{"name": "y", "buffer": "out", "type": "UINT32"},
                                                    {"name": "n", "value": "u32"}]}]}))

    def configure(self, **more):
        settings = {"programs": {"dir": str(self.folder / "programs")}} | SLOW | more
        return self.config(**settings | {"cpu_driver": SLOW["cpu_driver"] | {"devices": DEVICES}})

    def count_lines(self, text):
        return (self.folder / "worker.log").read_text(errors="replace").count(text)

    def reload(self, worker):
        """Until both executors have."""
        before = self.count_lines(" reloaded: ")
        worker.reload()
        self.wait_until(lambda: self.count_lines(" reloaded: ") >= before + DEVICES, "a reload")

    def results_by_id(self):
        found = {}
        for result in self.results():
            found.setdefault(result["id"], []).append(answered_by(result))
        return found

    def check_reloads(self, delivery):
        self.install_answer(1)
        worker = self.start_worker(self.configure(delivery=delivery))
        self.produce(*map(answer, range(200)))
        self.wait_until(lambda: len(self.results()) >= 20, "some results")
        for round_number in range(1, 6):
            self.install_answer(1 + round_number % 2)
            self.reload(worker)
            self.produce(*map(answer, range(200 * round_number, 200 * round_number + 200)))
        self.wait_for_no_lag()
        self.stop_well(worker)
        found = self.results_by_id()
        self.assertEqual(len(found), 1200)
        self.assertTrue(all(len(images) == 1 for images in found.values()), "a job was answered twice")
        last = [found[f"job-{number}"] for number in range(1000, 1200)]
        self.assertEqual(last, [[2]] * 200, "what was sent after the last reload went by an earlier program")

    def test_reloads_lose_no_job_and_repeat_none_at_least_once(self):
        self.check_reloads("at_least_once")

    def test_reloads_lose_no_job_and_repeat_none_exactly_once(self):
        self.check_reloads("exactly_once")

    def test_an_executor_that_is_killed_after_a_reload_starts_with_the_new_configuration(self):
        self.install_answer(1)
        worker = self.start_worker(self.configure(delivery="exactly_once"))
        self.produce(*map(answer, range(300)))
        self.wait_until(lambda: len(self.results()) >= 20, "some results")
        self.install_answer(2)
        (self.folder / "worker.yaml").write_text(json.dumps(self.configure(delivery="exactly_once", lanes=3)))
        self.reload(worker)
        for pid in worker.executors():
            os.kill(pid, signal.SIGKILL)
        self.wait_until(lambda: self.count_lines(", 3 lanes, ") == DEVICES, "executors with three lanes each")
        self.produce(*map(answer, range(300, 400)))
        self.wait_for_no_lag(PATIENCE_S)
        self.stop_well(worker)
        found = self.results_by_id()
        self.assertEqual(len(found), 400)
        self.assertTrue(all(len(images) == 1 for images in found.values()), "a job was answered twice")
        self.assertTrue(all(found[f"job-{number}"] == [2] for number in range(300, 400)))


if __name__ == "__main__":
    unittest.main(verbosity=2)
