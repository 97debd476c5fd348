"""What a poisoned executor costs its neighbour: one worker with two devices (of the CPU driver), each with a partition of
a real Apache Kafka; every other round one partition has poisonous jobs among its own. Reports how fast the other one's
jobs are answered; no time is asserted, only that everybody is answered and nobody changes the device.
usage: neighbour_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA and the number of rounds
with and without poison in GPU_WORKER_TEST_ROUNDS (11 say more)."""

import collections
import itertools
import os
import pathlib
import sys
import unittest

import msgpack

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "flow"))
from worker_flow import BUILD, KafkaFlowTest, Topics, read_all, unpack

import confluent_kafka

from containment_test import link_programs
from neighbours import KINDS, WORKERS, print_rates
from poison import Mixture

ROUNDS = int(os.environ.get("GPU_WORKER_TEST_ROUNDS", "1"))
JOBS = (1000, 4000)  # of each in a round: the neighbour has work while the other one dies
POISON = 4


class NeighbourTest(KafkaFlowTest):
    def setUp(self):
        super().setUp()
        self.topics = Topics(self.servers, partitions=2)
        self.producer = confluent_kafka.Producer(
            {"bootstrap.servers": self.servers, "linger.ms": 5, "queue.buffering.max.messages": 1_000_000})
        self.produced = [0, 0]  # per partition: where the next message stands

    def submit(self, *mixtures):
        """A mixture for each partition, job by job in turns."""
        for jobs in itertools.zip_longest(*(mixture.jobs for mixture in mixtures)):
            for partition, job in enumerate(jobs):
                if job is not None:
                    self.producer.produce(self.topics.jobs, msgpack.packb(job), partition=partition)
                    self.produced[partition] += 1
        self.assertEqual(self.producer.flush(60), 0)

    def answers(self):
        """By partition and offset of the job: when it was answered (ms), and the result."""
        found = [{}, {}]
        for message in read_all(self.servers, self.topics.results):
            result = unpack(message)
            source = result["source"]
            found[source["partition"]][source["offset"]] = (message.timestamp()[1], result)
        return found

    def are_apart(self):
        """Whether the partitions' latest jobs were answered by a device each; a job more for each, if not."""
        self.submit(Mixture(1, 0, "cpu", 0), Mixture(1, 0, "cpu", 0))
        self.wait_for_no_lag()
        latest = [found[produced - 1] for found, produced in zip(self.answers(), self.produced)]
        return len({result["worker"]["device"] for _, result in latest}) == 2

    def run_round(self, kind):
        """Where the round's jobs begin in both partitions."""
        begins = list(self.produced)
        poison = POISON if kind == "with poison" else 0
        self.submit(Mixture(JOBS[0], poison, "cpu", begins[0]), Mixture(JOBS[1], 0, "cpu", 0))
        self.wait_for_no_lag(240)
        return begins

    def test_what_a_poisoned_executor_costs_its_neighbour(self):
        programs = link_programs(BUILD, self.folder / "programs")
        config = self.config(
            lanes=4, batch={"jobs": 2}, programs={"dir": str(programs)}, state={"dir": str(self.folder / "state")},
            suspend={"convictions": 0}, drain_timeout_ms="200s",  # a stop waits for brokers on a machine with much to do
            # As on a GPU, the device and not the machine's cores decides how fast jobs are.
            cpu_driver={"devices": 2, "faults": "cuLaunchKernel:slow=2ms@*"})
        config["kafka"]["consumer"] = {"session.timeout.ms": 120_000}  # a machine with much to do moves no partition
        worker = self.start_worker(config)
        self.wait_until(self.are_apart, "each executor has a partition")
        begins = [(kind, self.run_round(kind)) for _ in range(ROUNDS) for kind in KINDS]
        self.stop_well(worker)
        self.report(begins, self.answers())

    def report(self, begins, answers):
        rates, devices = collections.defaultdict(list), [set(), set()]
        for kind, begin in begins:
            for i, who in enumerate(WORKERS):
                times, results = zip(*(answers[i][begin[i] + k] for k in range(JOBS[i])))
                is_poisoned = who == "poisoned one" and kind == "with poison"
                self.assertEqual(sum(result["status"] != "ok" for result in results), POISON if is_poisoned else 0)
                devices[i].update(result["worker"]["device"] for result in results)
                rates[who, kind].append(JOBS[i] / (max(times) - min(times)) * 1000)
        self.assertEqual([len(seen) for seen in devices], [1, 1])
        print_rates(
            f"two executors with {JOBS} jobs a round, in every other round {POISON} of the first one's poisonous; "
            f"{ROUNDS} interleaved rounds of both kinds", rates)


if __name__ == "__main__":
    unittest.main(verbosity=2)
