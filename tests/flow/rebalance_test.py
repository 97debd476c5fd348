"""Partitions that move from a busy worker to a newcomer, at a real Apache Kafka: what is particular to a client and its
brokers. What a worker does then, tests/world/scenarios_test.c shows.
usage: rebalance_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA."""

import collections
import re
import unittest

from worker_flow import KafkaFlowTest, is_saxpy, metric, read_all, reserve_address, saxpy, unpack

import gpu_worker as gw
import msgpack
import numpy

JOBS = 1_000
KEYS = 16
LANES, DEPTH = 2, 2
# All are in hand while the first few run: most would take longer than a test waits for anything. The log names each job
# that is answered.
BUSY = {"lanes": LANES, "lane_depth": DEPTH, "batch": {"jobs": 1}, "limits": {"jobs_in_flight": 2 * JOBS},
        "retry": {"base_ms": "10ms", "max_ms": "20ms", "max_attempts": 100}, "log": {"level": "debug"}}
SLOW = "cuLaunchKernel:slow=700ms@*"
FAILING = "seed=3;cuMemcpyDtoHAsync:invalid_value@p0.2"


def job_of(number):
    """Every fourth brings a static, which is cold."""
    job = saxpy(number)
    if number % 4 == 0:
        job["buffers"]["x"] = gw.static(numpy.full(4, number, "<f4"), with_data=True)
    return job


class RebalanceTest(KafkaFlowTest):
    def config(self, **more):
        return super().config(**{"commit_interval_ms": "100ms", "drain_timeout_ms": "1h"} | more)

    def produce_jobs(self):
        with self.producing() as send:
            for number in range(JOBS):
                send(msgpack.packb(job_of(number)), key=f"key-{number % KEYS}")

    def assert_all_answered_once(self):
        results = read_all(self.servers, self.topics.results)
        times = collections.Counter(unpack(message)["id"] for message in results)
        self.assertEqual([id for id, n in times.items() if n > 1], [], "answered twice")
        self.assertEqual({f"job-{n}" for n in range(JOBS)} - set(times), set(), "lost")
        for message in results:
            result = unpack(message)
            self.assertTrue(is_saxpy(result, int(result["id"].removeprefix("job-"))), result)
        return results

    def assert_order_of_keys(self, results):
        numbers = collections.defaultdict(list)
        for message in results:
            numbers[message.key()].append(int(unpack(message)["id"].removeprefix("job-")))
        self.assertEqual(len(numbers), KEYS)
        for key, order in numbers.items():
            self.assertEqual(order, sorted(order), key)

    def answered_while_leaving(self, log):
        """How many jobs of the partitions that were asked back were answered from then on until they were given back. No
        job of theirs may begin in between, so each was in a lane's hands."""
        leaving = re.search(r"revoking (.+?): waiting for (\d+) running jobs, returning (\d+)\n"
                            r"(.*?) returned [^\n]* with [1-9]\d* unfinished messages, 0 of them running\n", log, re.DOTALL)
        self.assertIsNotNone(leaving, f"it returned no partition with jobs that had not begun: {log}")
        names, begun, left, meanwhile = leaving.groups()
        partitions = set(re.findall(rf"{self.topics.jobs} \[(\d+)\]", names))
        answered = [partition for partition in re.findall(rf"job {self.topics.jobs}/(\d+)/\d+: batch", meanwhile)
                    if partition in partitions]
        print(f"{begun} jobs had begun, {len(answered)} of them were in a lane's hands, and {left} were left", flush=True)
        self.assertGreater(int(left), 0, "the newcomer came too late to show anything")
        return len(answered)

    def move(self, faults, **more):
        """A newcomer gets partitions of a busy worker, which is stopped then."""
        self.produce_jobs()
        address = reserve_address(self)
        busy = self.start_worker(
            self.config(**BUSY, **more, cpu_driver={"faults": faults}, http={"listen": address}), "busy")
        self.wait_for_results()
        self.wait_until(lambda: metric(address, "gpu_worker_jobs_in_flight"), "nearly all are in hand",
                        is_met=lambda found: found > JOBS * 3 // 4)
        quick = self.start_worker(self.config(**more), "quick")
        self.wait_for_log(f"was assigned {self.topics.jobs}", "quick")
        self.stop_well(busy)
        self.wait_for_no_lag()
        self.stop_well(quick)
        self.assertLessEqual(self.answered_while_leaving(self.log_of("busy")), LANES * DEPTH,
                             "those in a lane's hands alone are waited for")

    def test_a_newcomer_waits_for_those_jobs_alone_that_have_begun(self):
        self.move(SLOW, delivery="exactly_once")
        self.assert_all_answered_once()
        self.assertNotIn("comes from owners that died", self.log_of("quick"))

    def test_jobs_of_a_key_keep_their_order_though_some_are_tried_again(self):
        self.move(f"{FAILING};{SLOW}", delivery="at_least_once", ordering="key")
        self.assert_order_of_keys(self.assert_all_answered_once())


if __name__ == "__main__":
    unittest.main(verbosity=2)
