"""A worker that its group went on without, while it had jobs in hand: with `delivery: exactly_once` it commits nothing of
them. At a real Apache Kafka of three brokers, with one, two and three workers.
usage: expelled_test.py BUILD_FOLDER"""

import collections
import os
import re
import time
import unittest

from gate import SETTINGS, Gate, held, is_right
from kafka_cluster import BRIEF, KafkaCluster
from kafka_topics import Topics, admin_of
from worker_flow import PATIENCE_S, KafkaFlowTest

import msgpack

PARTITIONS = 4
EACH = 2  # jobs of each partition; all have begun when the worker is frozen
SESSION_TIMEOUT_MS = 6000  # the least that brokers allow
# transaction.c: a repetition waits 0.1 s, and then twice as long each time, until it is 1.6 s
REPEATS_BEFORE_THE_LONGEST, REPEAT_MAX_S = 5, 1.6
REPEATED = r"aborted a transaction of \d+ messages"


class ExpelledTest(KafkaFlowTest):
    """Workers are static members, always; tests/broker/transaction_test.c has dynamic ones, too."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = KafkaCluster(3, BRIEF)
        cls.addClassCleanup(cls.cluster.down)
        os.environ["GPU_WORKER_TEST_KAFKA"] = cls.cluster.servers

    def setUp(self):
        super().setUp()
        self.topics = Topics(self.servers, PARTITIONS, self.cluster.brokers)
        self.workers = []
        self.gate = Gate(self)
        self.ledger = self.folder / "ledger"
        self.ledger.touch()
        self.use_environment({"GPU_WORKER_TEST_LEDGER": str(self.ledger)})

    def start(self, name):
        """Alone in its process: a supervisor would miss an executor that is frozen."""
        config = self.config(
            delivery="exactly_once", commit_interval_ms="100ms", drain_timeout_ms="1h", lanes=PARTITIONS * EACH,
            lane_depth=1, batch={"jobs": 1}, **SETTINGS)
        config["kafka"] |= {"instance_id": name, "consumer": {"session.timeout.ms": SESSION_TIMEOUT_MS}}
        self.workers.append(self.start_worker(config, name, "--no-supervisor"))
        return self.workers[-1]

    def runs(self):
        """Of jobs that have begun, also those that run again."""
        return self.ledger.stat().st_size // 4

    def members(self):
        """The group's state, and how many it has."""
        for worker in self.workers:
            worker.check()
        (future,) = admin_of(self.servers).describe_consumer_groups(
            [self.topics.group], request_timeout=PATIENCE_S).values()
        group = future.result(PATIENCE_S)
        return group.state.name, len(group.members)

    def wait_for_members(self, count):
        state = "STABLE" if count > 0 else "EMPTY"
        self.wait_until(self.members, f"the group has {count} members", is_met=lambda seen: seen == (state, count))

    def check(self, workers):
        count = PARTITIONS * EACH
        self.produce_to_each_partition([msgpack.packb(held(number)) for number in range(count)])
        frozen = self.start("frozen")
        self.wait_until(self.runs, "all jobs have begun", is_met=lambda runs: runs == count)
        others = [f"other-{number}" for number in range(1, workers)]
        joined = [self.start(name) for name in others]
        if others:
            self.wait_for_log("consumer revoking", "frozen")
        frozen.pause()
        self.wait_for_members(len(others))
        self.gate.open()
        if others:
            self.wait_for_no_lag()
        resumed = time.monotonic()
        frozen.resume()
        self.wait_for_members(workers)
        self.wait_for_no_lag()
        for worker in [*joined, frozen]:
            self.stop_well(worker)
        self.assertEqual(self.runs(), 2 * count, "what it had in hand ran elsewhere, or again")
        self.assert_each_once(count)
        self.assert_repeats_back_off(["frozen", *others], time.monotonic() - resumed)

    def assert_each_once(self, count):
        results = self.results()
        times = collections.Counter(result["id"] for result in results)
        self.assertEqual([job for job, n in times.items() if n > 1], [], "committed twice")
        self.assertEqual({f"job-{n}" for n in range(count)} - set(times), set(), "lost")
        for result in results:
            self.assertTrue(is_right(result, int(result["id"].removeprefix("job-"))), result)

    def assert_repeats_back_off(self, names, seconds):
        for name in names:
            repeats = len(re.findall(REPEATED, self.log_of(name)))
            print(f"{name}: {repeats} transactions aborted", flush=True)
            self.assertLessEqual(repeats, REPEATS_BEFORE_THE_LONGEST + seconds / REPEAT_MAX_S, self.log_of(name))

    def test_one_worker(self):
        self.check(1)

    def test_two_workers(self):
        self.check(2)

    def test_three_workers(self):
        self.check(3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
