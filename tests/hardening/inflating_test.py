"""Messages that inflate: a compressed batch that becomes more than an executor may have is set aside with its
partition, and the other partitions go on. With a real Apache Kafka, both deliveries, and a limit on each executor's memory.
usage: inflating_test.py BUILD_FOLDER MEMORY_LIMIT, with the broker's host:port in GPU_WORKER_TEST_KAFKA"""

import json
import os
import pathlib
import re
import resource
import signal
import sys
import unittest
import urllib.request

import confluent_kafka
import msgpack

from worker_environment import for_faults
from worker_flow import KafkaFlowTest, Topics, headers_of, is_saxpy, read_all, reserve_address, saxpy

MEMORY_LIMIT = pathlib.Path(sys.argv.pop(1))
STACK_BYTES = 1 << 20  # of each thread, which counts as its process's memory
MEMORY_KIB = 220 << 10  # of each process: enough for the worker, not for what inflates
INFLATED_MESSAGES = 180
MESSAGE_BYTES = 1_000_000
PARTITIONS = 4
BOMBED = 2
KILLS = 2  # each next executor finds the partition set aside
CRASHED = "a thread of the worker that holds no message crashed"


class InflatingTest(KafkaFlowTest):
    def setUp(self):
        super().setUp()
        self.topics = Topics(self.servers, partitions=PARTITIONS)
        self.producer = confluent_kafka.Producer({"bootstrap.servers": self.servers})
        self.http = reserve_address(self)

    def send_saxpy(self, numbers, partitions):
        for number in numbers:
            for partition in partitions:
                self.producer.produce(
                    self.topics.jobs, msgpack.packb(saxpy(number) | {"id": f"{partition}-{number}"}), partition=partition)
        self.assertEqual(self.producer.flush(60), 0)

    def send_bomb(self):
        """One batch of under a megabyte, of zeros, and how many messages of it the broker took."""
        taken = []
        bomber = confluent_kafka.Producer({
            "bootstrap.servers": self.servers, "compression.type": "gzip", "linger.ms": 60_000,
            "message.max.bytes": 1_000_000_000, "batch.size": 2_000_000_000, "batch.num.messages": INFLATED_MESSAGES,
            "queue.buffering.max.kbytes": 2_000_000})
        for _ in range(INFLATED_MESSAGES):
            bomber.produce(self.topics.jobs, bytes(MESSAGE_BYTES), partition=BOMBED,
                           on_delivery=lambda error, _: taken.append(error is None))
        self.assertEqual(bomber.flush(120), 0)
        return sum(taken)

    def start(self, delivery):
        self.use_environment(for_faults(MEMORY_LIMIT, MEMORY_LIMIT_KIB=str(MEMORY_KIB)))
        before = resource.getrlimit(resource.RLIMIT_STACK)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_STACK, before)
        resource.setrlimit(resource.RLIMIT_STACK, (STACK_BYTES, before[1]))
        self.settings = self.config(
            delivery=delivery, http={"listen": self.http}, state={"dir": str(self.folder / "state")},
            limits={"bytes_in_flight": "64MiB"}, commit_interval_ms="100ms",
            executors={"deaths_max": 3})  # two lives without a cause; those of a trial have one
        return self.start_worker(self.settings)

    def log(self):
        return (self.folder / "worker.log").read_text()

    def answered(self):
        return {result["id"] for result in self.results()}

    def wait_for_answers(self, *ids):
        self.wait_until(lambda: set(ids) <= self.answered(), f"{ids} are answered")

    def set_aside(self):
        with urllib.request.urlopen(f"http://{self.http}/metrics", timeout=240) as page:
            return sum(map(int, re.findall(r"gpu_worker_partitions_set_aside{.*} (\d+)", page.read().decode())))

    def resume(self, *options):
        ended = self.run_to_end(self.settings, "resume", *options)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout

    def assert_bomb_is_set_aside(self, delivery):
        others = [partition for partition in range(PARTITIONS) if partition != BOMBED]
        worker = self.start(delivery)
        self.send_saxpy(range(3), range(PARTITIONS))
        self.wait_for_answers(*[f"{p}-{n}" for p in range(PARTITIONS) for n in range(3)])
        self.assertEqual(self.send_bomb(), INFLATED_MESSAGES)
        self.send_saxpy(range(3, 6), others)
        self.wait_until(lambda: "is set aside at offset 3" in self.log(), "the partition is set aside")
        self.send_saxpy(range(6, 9), range(PARTITIONS))
        self.wait_for_answers(*[f"{p}-{n}" for p in others for n in range(9)])
        self.wait_until(lambda: self.set_aside() == 1, "a metric says so")
        worker.check()
        self.assertIn(f"\tpartition\t{self.topics.jobs}/{BOMBED}\toffset 3\n", self.resume())
        aside = json.loads(self.resume("--json"))
        self.assertEqual((aside["kind"], aside["topic"], aside["partition"], aside["offset"]),
                         ("partition", self.topics.jobs, BOMBED, 3))
        aside = re.findall(r"(\S+ \[\d\]) is set aside", self.log())
        self.assertEqual(set(aside), {f"{self.topics.jobs} [{BOMBED}]"}, "nobody else is")
        for result in self.results():
            self.assertTrue(is_saxpy(result, int(result["id"].split("-")[1])), result)
        self.assertEqual([headers_of(letter) for letter in read_all(self.servers, self.topics.dead_letters)], [])

        deaths = self.log().count("the executor died")
        self.assertIn("ended 1\n", self.resume("--partition", f"{self.topics.jobs}/{BOMBED}"))
        self.wait_until(lambda: self.log().count("the executor died") > deaths, "it is read again, and kills again")
        self.wait_until(lambda: self.log().count("is set aside at offset 3") > 1 and self.set_aside() == 1,
                        "it is set aside again")
        self.send_saxpy(range(9, 12), others)
        self.wait_for_answers(*[f"{p}-{n}" for p in others for n in range(9, 12)])

        crashes = self.log().count(CRASHED)
        for number in range(12, 12 + KILLS):
            for executor in worker.executors():
                os.kill(executor, signal.SIGKILL)
            self.send_saxpy([number], others)
            self.wait_for_answers(*[f"{p}-{number}" for p in others])
        self.assertEqual(self.log().count(CRASHED), crashes, "what is set aside is not read")
        self.stop_well(worker)

    def test_a_partition_that_inflates_is_set_aside_and_the_others_go_on(self):
        self.assert_bomb_is_set_aside("at_least_once")

    def test_the_same_where_each_is_answered_exactly_once(self):
        self.assert_bomb_is_set_aside("exactly_once")


if __name__ == "__main__":
    unittest.main(verbosity=2)
