"""exactly_once holds where a run fails: what it had published and what it had committed agree.
usage: failed_runs_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA."""

import collections
import unittest

from worker_flow import SLOW, KafkaFlowTest, is_saxpy, lag, saxpy

from confluent_kafka import admin
import msgpack

JOBS = 600


class FailedRunsTest(KafkaFlowTest):
    def set_most(self, topic, size):
        """The largest record that the topic takes."""
        entry = admin.ConfigEntry("max.message.bytes", str(size), incremental_operation=admin.AlterConfigOpType.SET)
        client = admin.AdminClient({"bootstrap.servers": self.servers})
        for future in client.incremental_alter_configs([admin.ConfigResource("topic", topic, incremental_configs=[entry])]).values():
            future.result(30)

    def config(self, **more):
        config = super().config(delivery="exactly_once", commit_interval_ms="20ms", **more)
        config["kafka"] |= {"instance_id": self.topics.group, "consumer": {"session.timeout.ms": 6000}}
        return config

    def test_a_run_that_fails_between_transactions_repeats_nothing_and_loses_nothing(self):
        self.set_most(self.topics.dead_letters, 100)  # not even coordinates: the operator's mistake
        jobs = [msgpack.packb(saxpy(number)) for number in range(JOBS)]
        self.produce(*jobs[:JOBS // 4])
        for attempt in range(2):
            worker = self.start_worker(self.config(**SLOW), f"failing-{attempt}", "--no-supervisor")
            if attempt == 0:
                self.wait_until(lambda: self.results(), "something is published before")
                self.produce(b"\xc1", *jobs[JOBS // 4:])
            self.wait_until(lambda: worker.status() is not None, "the run fails")
            self.assertNotEqual(worker.status(), 0)

        self.set_most(self.topics.dead_letters, 1_000_000)
        worker = self.start_worker(self.config(), "good", "--no-supervisor")
        self.wait_until(lambda: worker.status() is not None or lag(self.servers, self.topics) == 0, "all is answered")
        self.stop_well(worker)
        results = self.results()
        times = collections.Counter(result["id"] for result in results)
        self.assertEqual([job for job, n in times.items() if n > 1], [], "answered twice")
        self.assertEqual(set(times), {f"job-{number}" for number in range(JOBS)})
        self.assertTrue(all(is_saxpy(result, int(result["id"][4:])) for result in results))


if __name__ == "__main__":
    unittest.main(verbosity=2)
