"""A worker with little room loses executors to poisonous jobs while other jobs fail and are tried again: everybody
is answered once, and no executor ends of anything else. Both deliveries, on a real Kafka.
usage: in_flight_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA"""

import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "containment"))
from job_client import JobClient
from worker_flow import BUILD, KafkaFlowTest, headers_of, read_all

from containment_test import SLAB, link_programs
from poison import Mixture
from worker_environment import for_faults

IN_FLIGHT_MAX = 8
# Jobs that fail and are tried again wait in a heap that is as large as the room in flight. An array has several copies,
# any of which may fail: with a fifth of them, few of its attempts would go well.
FAULTS = "seed=9;cuMemcpyHtoDAsync:not_supported@p0.05"


class InFlightTest(KafkaFlowTest):
    def assert_answers_all(self, delivery):
        mixture = Mixture(600, 4, "cpu", random.SystemRandom().randrange(1 << 32))
        client = JobClient(self.servers, self.topics.jobs, self.topics.results)
        self.addCleanup(client.close)
        client.submit(mixture.jobs)
        self.use_environment(for_faults())
        worker = self.start_worker(self.config(
            programs={"dir": str(link_programs(BUILD, self.folder / "programs"))},
            lane_slab_bytes=SLAB,
            limits={"jobs_in_flight": IN_FLIGHT_MAX, "convictions_per_job": 2},  # all instances of a poisonous array are culprits
            retry={"max_attempts": 20, "base_ms": "20ms", "max_ms": "100ms"},
            cpu_driver={"faults": FAULTS}, delivery=delivery, commit_interval_ms="100ms",
            state={"dir": str(self.folder / "state")}))
        self.wait_for_no_lag()
        self.stop_well(worker)
        log = (self.folder / "worker.log").read_text()
        self.assertNotIn("broken invariant", log)
        self.assertIn("the executor died", log)
        letters = [headers_of(letter) for letter in read_all(self.servers, self.topics.dead_letters)]
        wrong = mixture.check(
            self.results(), [(letter["gpu-worker-job-id"], letter["dlq.error.code"]) for letter in letters])
        if delivery == "at_least_once":
            wrong.pop("answered twice")
        self.assertEqual({name: places for name, places in wrong.items() if places}, {})

    def test_with_at_least_once(self):
        self.assert_answers_all("at_least_once")

    def test_with_exactly_once(self):
        self.assert_answers_all("exactly_once")


if __name__ == "__main__":
    unittest.main(verbosity=2)
