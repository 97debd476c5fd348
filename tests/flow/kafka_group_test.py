"""Static members of a group at a real Apache Kafka.
usage: kafka_group_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA."""

import time
import unittest

from gate import SETTINGS, Gate, held
from worker_flow import SLOWER, KafkaFlowTest, is_saxpy, saxpy

import msgpack

# Until a member's partitions would go to another: longer than any test waits for anything.
SESSION_TIMEOUT_MS = 300_000
PARTITIONS = 4  # of the job topic
STAYS_S = 4  # how long it is watched that a member does nothing


class GroupTest(KafkaFlowTest):
    def config(self, **more):
        config = super().config(**more)
        config["kafka"] |= {"instance_id": "rack-1.worker-7", "consumer": {"session.timeout.ms": SESSION_TIMEOUT_MS}}
        return config

    def test_a_restart_after_kill_9_takes_up_its_partitions_at_once(self):
        count = 3_000
        self.produce(*[msgpack.packb(saxpy(number)) for number in range(count)])
        first = self.start_worker(self.config(**SLOWER), "first")
        self.wait_for_results(10)
        first.kill()
        before = len(self.results())
        self.assertLess(before, count)

        started = time.monotonic()
        second = self.start_worker(self.config(), "second")
        self.wait_for_results(before + 1)
        print(f"results again {time.monotonic() - started:.1f} s after the restart", flush=True)
        self.wait_for_no_lag()
        self.stop_well(second)
        results = {result["id"]: result for result in self.results()}
        self.assertEqual(len(results), count)
        self.assertTrue(all(is_saxpy(results[f"job-{n}"], n) for n in range(count)))

    def test_of_two_members_of_one_name_the_earlier_ends_and_says_why(self):
        first = self.start_worker(self.config(), "first", "--no-supervisor")
        self.wait_for_log("was assigned", "first")
        second = self.start_worker(self.config(), "second", "--no-supervisor")
        self.wait_for_end(first)
        last_line = self.log_of("first").splitlines()[-1]
        self.assertEqual(first.status(), 5, last_line)
        self.assertIn("FENCED_INSTANCE_ID", last_line)
        self.assertIn("kafka.instance_id", last_line)
        self.produce(msgpack.packb(saxpy(1)))
        self.wait_for_no_lag()
        self.stop_well(second)

    def member(self, name, **more):
        config = self.config(**{"drain_timeout_ms": "2s", **SETTINGS} | more)
        config["kafka"]["instance_id"] = name
        return config

    @staticmethod
    def held(numbers):
        return [msgpack.packb(held(number)) for number in numbers]

    def start_giving_back(self):
        """A member with a job that has begun in each partition, some of which a newcomer is to have. They end once the gate
        is open."""
        self.gate = Gate(self)
        self.gate.open()
        first = self.start_worker(
            self.member("a", lanes=PARTITIONS, lane_depth=1, batch={"jobs": 1}, drain_timeout_ms="1h"), "first")
        self.produce_to_each_partition(self.held(range(PARTITIONS)))  # they show how quick the others would be
        self.wait_for_no_lag()
        self.gate.close()
        self.produce_to_each_partition(self.held(range(PARTITIONS, 2 * PARTITIONS)))
        newcomer = self.start_worker(self.member("b"), "newcomer")
        self.assertRegex(self.wait_for_log("consumer revoking", "first"), r"waiting for [1-9]\d* running jobs")
        return first, newcomer

    def end(self, *workers):
        self.wait_for_no_lag()
        for worker in workers:
            self.stop_well(worker)
        self.assertEqual({result["id"] for result in self.results()}, {f"job-{n}" for n in range(2 * PARTITIONS)})

    def test_partitions_that_a_killed_member_was_giving_back_find_an_owner(self):
        """The one that comes back has what it was to keep, and the group takes itself for stable."""
        killed, newcomer = self.start_giving_back()
        killed.kill()
        self.gate.open()
        self.end(self.start_worker(self.member("a"), "restarted"), newcomer)

    def test_partitions_that_a_living_member_gives_back_are_waited_for(self):
        """For as long as giving back may take, a member that sees them without an owner stays."""
        first, newcomer = self.start_giving_back()
        newcomer.kill()
        restarted = self.start_worker(self.member("b", drain_timeout_ms="10m"), "restarted")
        self.wait_for_log(" ready: ", "restarted")
        time.sleep(STAYS_S)
        self.gate.open()
        self.end(first, restarted)
        self.assertNotIn("leaves the group", self.log_of("restarted"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
