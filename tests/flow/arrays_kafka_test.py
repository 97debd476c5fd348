"""Arrays between the topics of a real Apache Kafka: partitions that move, stops, poisonous instances, small brokers.
usage: arrays_kafka_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA."""

import collections
import pathlib
import sys
import unittest

from kafka_topics import admin_of
from worker_flow import BUILD, PATIENCE_S, KafkaFlowTest, headers_of, lag, read_all, unpack

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "containment"))
from containment_test import link_programs

import confluent_kafka.admin as admin
import gpu_worker as gw
import msgpack
import numpy

PARTITIONS = 4
COUNT = 5_000
# Each instance has launches of its own: an array takes far longer than any test waits.
ENDLESS = {"cpu_driver": {"faults": "cuLaunchKernel:slow=20ms@*"}}


def population(id, count, culprits=()):
    """Instance i has 2 i + 1 for a result, after a kernel that a 0 kills."""
    health = numpy.ones(count, "<u4")
    health[list(culprits)] = 0
    return gw.job(
        id, count=count, timeout_ms=600_000, outputs=["y"],
        buffers={"health": {"bytes": 4, "each": True, "data": health.tobytes()},
                 "x": {"bytes": 4, "each": True, "data": numpy.arange(count, dtype="<f4").tobytes()},
                 "y": {"bytes": 4, "each": True, "datatype": "FP32", "shape": [1],
                       "data": numpy.ones(count, "<f4").tobytes()}},
        steps=[gw.step("poison", ["health"], entry="failed_assert", grid=[1]),
               gw.step("saxpy", [gw.f32(2), "x", "y", gw.u32(1)], elements=1)])


def expected(count, culprits=()):
    values = 2 * numpy.arange(count, dtype="<f4") + 1
    values[list(culprits)] = 0
    return values


class ArraysTest(KafkaFlowTest):
    def setUp(self):
        super().setUp()
        self.programs = link_programs(BUILD, self.folder / "programs")

    def config(self, **more):
        return super().config(
            programs={"dir": str(self.programs)}, limits={"launches_per_job": 1_000_000, "timeout_max_ms": "1h"},
            **{"commit_interval_ms": "100ms"} | more)

    def produce_arrays(self, *jobs):
        self.produce_to_each_partition(map(msgpack.packb, jobs))

    def committed_results(self):
        """By id; each comes once."""
        results = [unpack(message) for message in read_all(self.servers, self.topics.results)]
        times = collections.Counter(result["id"] for result in results)
        self.assertEqual([id for id, n in times.items() if n > 1], [], "answered twice")
        return {result["id"]: result for result in results}

    def letters(self):
        return sorted((headers["gpu-worker-job-id"], headers["dlq.error.code"])
                      for headers in map(headers_of, read_all(self.servers, self.topics.dead_letters)))

    # --- partitions that move ---

    def assert_others_answer(self, delivery):
        """An array a partition. A member that is slow loses some to a newcomer, and is stopped: it answers none."""
        self.produce_arrays(*(population(f"array-{n}", COUNT) for n in range(PARTITIONS)))
        config = {"delivery": delivery, "drain_timeout_ms": "60s"}
        slow = self.start_worker(self.config(**config, **ENDLESS), "slow")
        self.wait_for_log("was assigned", "slow")
        quick = self.start_worker(self.config(**config), "quick")
        self.wait_for_results()  # of the newcomer
        self.assertGreater(lag(self.servers, self.topics), 0, "the slow member has none left that a stop could end")
        self.stop_well(slow)  # within its drain_timeout_ms, though its arrays would take minutes
        self.wait_for_no_lag()
        self.stop_well(quick)
        results = self.committed_results()
        self.assertEqual(set(results), {f"array-{n}" for n in range(PARTITIONS)})
        for result in results.values():
            numpy.testing.assert_array_equal(gw.arrays(result)["y"].ravel(), expected(COUNT))
        self.assertEqual(self.letters(), [])
        self.assertIn("done: 0 jobs ok, 0 failed", self.log_of("slow"))
        self.assertRegex(self.log_of("slow"), "returned .* with [1-9] unfinished messages")

    def test_an_array_whose_partition_moves_is_answered_once_by_its_next_owner(self):
        self.assert_others_answer("at_least_once")

    def test_the_same_in_transactions(self):
        self.assert_others_answer("exactly_once")

    # --- poisonous instances, in transactions ---

    def start_once(self, name, batch_bytes=1_000_000, **more):
        config = self.config(
            delivery="exactly_once", state={"dir": str(self.folder / "state")}, suspend={"convictions": 0}, **more)
        config["kafka"] |= {"instance_id": self.topics.group, "consumer": {"session.timeout.ms": 6000},
                            "producer": {"batch.size": batch_bytes}}
        return self.start_worker(config, name)

    def count_sent(self):
        """Results, also of transactions that are open or were aborted."""
        return len(read_all(self.servers, self.topics.results, "read_uncommitted"))

    def assert_partial(self, result, count, culprits):
        self.assertEqual(result["status"], "partial", result.get("error"))
        self.assertEqual([one["instance"] for one in result["failed"]], culprits)
        with self.assertRaises(gw.JobFailed) as caught:
            gw.arrays(result)
        numpy.testing.assert_array_equal(caught.exception.arrays()["y"].ravel(), expected(count, culprits))

    def test_a_partial_result_and_its_dead_letter_come_once_also_after_a_transaction_that_was_not_committed(self):
        count, culprits = 8, [2, 7]  # of more instances, more executors die until the culprits are found
        self.produce_arrays(population("array", count, culprits))
        first = self.start_once("first", commit_interval_ms="60s")
        self.wait_until(self.count_sent, "a result that is not committed yet")
        first.kill()
        self.assertEqual((self.committed_results(), self.letters()), ({}, []))
        second = self.start_once("second", commit_interval_ms="100ms")
        self.wait_for_no_lag()
        self.stop_well(second)
        results = self.committed_results()
        self.assert_partial(results.pop("array"), count, culprits)
        self.assertEqual(results, {})
        self.assertEqual(self.letters(), [("array", "instances_failed")])

    # --- brokers that take less ---

    def test_a_result_that_its_topic_does_not_take_becomes_a_small_error_in_the_same_transaction(self):
        """Whether instances have failed or not."""
        narrow = admin.ConfigResource("topic", self.topics.results, incremental_configs=[admin.ConfigEntry(
            "max.message.bytes", "10000", incremental_operation=admin.AlterConfigOpType.SET)])
        for future in admin_of(self.servers).incremental_alter_configs([narrow]).values():
            future.result(PATIENCE_S)
        self.produce_arrays(population("large", COUNT), population("partial", COUNT, [3]), population("small", 100))
        worker = self.start_once("worker", batch_bytes=10_000)  # else the others share its batch, and its fate
        self.wait_for_no_lag()
        self.stop_well(worker)
        results = self.committed_results()
        self.assertEqual({id: result["status"] for id, result in results.items()},
                         {"large": "error", "partial": "error", "small": "ok"})
        for id in ("large", "partial"):
            self.assertEqual((results[id]["error"]["code"], results[id]["outputs"]), ("publish_refused", []))
            self.assertNotIn("failed", results[id])
        self.assertEqual(self.letters(), [("large", "publish_refused"), ("partial", "instances_failed")])


if __name__ == "__main__":
    unittest.main(verbosity=2)
