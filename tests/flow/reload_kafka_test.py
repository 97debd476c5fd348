"""Reloads while jobs of a real Kafka run: none is lost or answered twice, whichever way of delivery.
usage: reload_kafka_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA."""

import json
import os
import signal
import unittest

from answering import answer, answered_by, install_answer
from worker_flow import SLOW, KafkaFlowTest, write_aside

import msgpack

DEVICES = 2


class ReloadKafkaTest(KafkaFlowTest):
    def install_answer(self, image):
        install_answer(self.folder / "programs", image)

    def configure(self, **more):
        settings = {"programs": {"dir": str(self.folder / "programs")}} | SLOW | more
        return self.config(**settings | {"cpu_driver": SLOW["cpu_driver"] | {"devices": DEVICES}})

    def reload(self, worker):
        """Until both executors have."""
        before = self.log_of().count(" reloaded: ")
        worker.reload()
        self.wait_for_log(" reloaded: ", count=before + DEVICES)

    def send(self, numbers):
        self.produce(*(msgpack.packb(answer(number)) for number in numbers))

    def results_by_id(self):
        found = {}
        for result in self.results():
            found.setdefault(result["id"], []).append(answered_by(result))
        return found

    def check_reloads(self, delivery):
        self.install_answer(1)
        worker = self.start_worker(self.configure(delivery=delivery))
        self.send(range(200))
        self.wait_for_results(20)
        for round_number in range(1, 6):
            self.install_answer(1 + round_number % 2)
            self.reload(worker)
            self.send(range(200 * round_number, 200 * round_number + 200))
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
        self.send(range(300))
        self.wait_for_results(20)
        self.install_answer(2)
        write_aside(self.folder / "worker.yaml", json.dumps(self.configure(delivery="exactly_once", lanes=3)))
        self.reload(worker)
        for pid in worker.executors():
            os.kill(pid, signal.SIGKILL)
        self.wait_for_log(", 3 lanes, ", count=DEVICES)
        self.send(range(300, 400))
        self.wait_for_no_lag()
        self.stop_well(worker)
        found = self.results_by_id()
        self.assertEqual(len(found), 400)
        self.assertTrue(all(len(images) == 1 for images in found.values()), "a job was answered twice")
        self.assertTrue(all(found[f"job-{number}"] == [2] for number in range(300, 400)))


if __name__ == "__main__":
    unittest.main(verbosity=2)
