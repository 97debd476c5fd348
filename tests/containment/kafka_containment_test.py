"""Poisonous jobs, and deaths that nobody explains, between the topics of a real Apache Kafka.
usage: kafka_containment_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA and how often
something is killed in GPU_WORKER_TEST_KILLS (200 shows more)."""

import os
import pathlib
import random
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "flow"))
from job_client import JobClient
from worker_flow import BUILD, PATIENCE_S, FlowTest, Topics, headers_of, lag, read_all, unpack

import confluent_kafka

from containment_test import SLAB, link_programs
from poison import Mixture

SERVERS = os.environ["GPU_WORKER_TEST_KAFKA"]
KILLS = int(os.environ.get("GPU_WORKER_TEST_KILLS", "8"))
ANSWERS_MAX = 100  # between two kills
JOBS_PER_KILL = 500  # more than are answered meanwhile, so that there is work until the last kill


class Containment(FlowTest):
    def setUp(self):
        super().setUp()
        self.topics = Topics(SERVERS)
        self.seed = random.SystemRandom().randrange(1 << 32)
        print(f"seed {self.seed}")

    def start(self, *options, disk="state", **more):
        config = self.topics.config(
            SERVERS, lanes=8, lane_slab_bytes=SLAB, state={"dir": str(self.folder / disk)}, suspend={"convictions": 0},
            limits={"convictions_per_job": 2}, **more)  # all instances of a poisonous array are culprits
        programs = self.folder / "programs"
        if not programs.exists():
            link_programs(BUILD, programs)
        config["programs"] = {"dir": str(programs)}
        config["kafka"] |= {"instance_id": self.topics.group}
        return self.start_worker(config, disk, *options)

    def submit(self, mixture):
        client = JobClient(SERVERS, self.topics.jobs, self.topics.results)
        self.addCleanup(client.close)
        client.submit(mixture.jobs)

    def assert_contained(self, mixture, allowed=()):
        """Prints the table; nothing in it may be wrong, but for what is allowed."""
        letters = [headers_of(letter) for letter in read_all(SERVERS, self.topics.dead_letters)]
        wrong = mixture.check(
            [unpack(result) for result in read_all(SERVERS, self.topics.results)],
            [(letter["gpu-worker-job-id"], letter["dlq.error.code"]) for letter in letters])
        print(f"{mixture.count} jobs, {len(mixture.poison)} poisonous:",
              *[f"{name} {len(places)}" for name, places in wrong.items()], sep="\n  ")
        self.assertEqual({name: places for name, places in wrong.items() if places and name not in allowed}, {})

    def answers(self):
        """How many there are; committed or not."""
        consumer = confluent_kafka.Consumer({"bootstrap.servers": SERVERS, "group.id": "reader"})
        places = (confluent_kafka.TopicPartition(self.topics.results, number) for number in range(4))
        count = sum(consumer.get_watermark_offsets(place, 30)[1] for place in places)
        consumer.close()
        return count

    def wait_for_end(self):
        self.wait_until(lambda: lag(SERVERS, self.topics) == 0, "the group's lag reaches 0")


class PoisonTest(Containment):
    def test_a_poisonous_job_costs_itself_and_everybody_else_is_answered_exactly_once(self):
        mixture = Mixture(1000, 5, "cpu", self.seed)
        self.submit(mixture)
        worker = self.start(delivery="exactly_once", commit_interval_ms="100ms")
        self.wait_for_end()
        self.stop_well(worker)
        self.assert_contained(mixture)


class DeathsTest(Containment):
    def assert_convicted_after_two_takeovers(self, delivery):
        """A pod is lost with its disk, then the one that took over; the third one has it alone at once."""
        mixture = Mixture(1000, 1, "cpu", self.seed, with_arrays=False)  # an array would be searched for its culprits
        self.submit(mixture)
        for disk in ("first", "second"):
            self.assertEqual(self.start("--no-supervisor", disk=disk, delivery=delivery).wait(PATIENCE_S), -signal.SIGSEGV)
        worker = self.start(disk="third", delivery=delivery)
        self.wait_for_end()
        self.stop_well(worker)
        self.assert_contained(mixture, allowed=["answered twice"] if delivery == "at_least_once" else [])
        second, third = ((self.folder / f"{disk}.log").read_text() for disk in ("second", "third"))
        self.assertNotIn("run one by one", second)
        self.assertIn("run one by one", third)
        self.assertEqual(third.count("convicted, and not run again"), 1)
        self.assertNotIn("that it had in hand", third)  # nobody was there when it died

    def test_a_job_that_kills_pods_with_their_disks_is_convicted_by_the_third(self):
        self.assert_convicted_after_two_takeovers("at_least_once")

    def test_the_same_where_each_is_answered_exactly_once(self):
        self.assert_convicted_after_two_takeovers("exactly_once")

    def test_deaths_that_nobody_explains_lose_nothing_and_convict_nobody(self):
        mixture = Mixture(JOBS_PER_KILL * KILLS, 0, "cpu", self.seed)
        self.submit(mixture)
        chance = random.Random(self.seed)
        slow = {"batch": {"jobs": 1}, "cpu_driver": {"faults": "cuLaunchKernel:slow=5ms@*"},
                "executors": {"deaths_max": 1000}}  # kills that come before the first job say nothing of the GPU
        worker = self.start(**slow)
        killed = {"supervisor": 0, "executor": 0}
        for _ in range(KILLS):
            least = self.answers() + chance.randint(1, ANSWERS_MAX)
            self.wait_until(lambda: self.answers() >= least, f"{least} answers")
            executors = worker.executors()
            if not executors or chance.random() < 0.3:
                worker.kill()
                worker = self.start(**slow)
                killed["supervisor"] += 1
            else:
                os.kill(chance.choice(executors), signal.SIGKILL)
                killed["executor"] += 1
        print("killed:", killed, "with", lag(SERVERS, self.topics), "jobs still to come")
        worker.kill()
        worker = self.start()
        self.wait_for_end()
        self.stop_well(worker)
        self.assert_contained(mixture, allowed=["answered twice"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
