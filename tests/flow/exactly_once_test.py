"""`delivery: exactly_once` against a real Apache Kafka: whoever reads committed messages alone sees one result a job.
usage: exactly_once_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA."""

import collections
import os
import unittest

from job_client import JobClient
from worker_flow import PATIENCE_S, SLOW, FlowTest, Topics, headers_of, is_saxpy, lag, read_all, saxpy, unpack

import confluent_kafka
import gpu_worker as gw
import msgpack

SERVERS = os.environ["GPU_WORKER_TEST_KAFKA"]


class ExactlyOnceTest(FlowTest):
    def setUp(self):
        super().setUp()
        self.topics = Topics(SERVERS)

    def start(self, name, *options, instance=None, **more):
        config = self.topics.config(SERVERS, delivery="exactly_once", commit_interval_ms="100ms", **more)
        config["kafka"] |= {"instance_id": f"{self.topics.group}-{instance or name}", "consumer": {"session.timeout.ms": 6000}}
        return self.start_worker(config, name, *options)

    def submit(self, count):
        client = JobClient(SERVERS, self.topics.jobs, self.topics.results)
        self.addCleanup(client.close)
        client.submit([saxpy(n) for n in range(count)])

    def results(self):
        return list(map(unpack, read_all(SERVERS, self.topics.results)))

    def wait_for_results(self, count):
        self.wait_until(lambda: len(self.results()) >= count, f"{count} results")

    def wait_for_end(self):
        self.wait_until(lambda: lag(SERVERS, self.topics) == 0, "the group's lag reaches 0")

    def assert_exactly_once(self, count):
        results = self.results()
        times = collections.Counter(result["id"] for result in results)
        self.assertEqual([job for job, n in times.items() if n > 1], [], "duplicated")
        self.assertEqual({f"job-{n}" for n in range(count)} - set(times), set(), "lost")
        for result in results:
            self.assertTrue(is_saxpy(result, int(result["id"].removeprefix("job-"))), result)

    def test_every_job_has_one_result_and_every_dead_letter_comes_once(self):
        count = 2000
        self.submit(count)
        producer = confluent_kafka.Producer({"bootstrap.servers": SERVERS})
        producer.produce(self.topics.jobs, b"\xc1", key=b"hostile")
        broken = saxpy(1) | {"id": "job-broken", "steps": [gw.step("nope", [], grid=[1])]}
        self.assertEqual(producer.flush(30), 0)
        worker = self.start("worker")
        self.wait_for_end()
        self.stop_well(worker)
        self.assert_exactly_once(count)
        (letter,) = read_all(SERVERS, self.topics.dead_letters)
        self.assertEqual(headers_of(letter)["dlq.error.code"], "bad_message")
        self.assertEqual(lag(SERVERS, self.topics), 0)

    def test_a_stop_in_the_middle_repeats_nothing(self):
        count = 4000
        self.submit(count)
        first = self.start("first", **SLOW)
        self.wait_for_results(count // 20)
        self.stop_well(first)
        self.assertLess(len(self.results()), count, "the stop came too late to show anything")
        second = self.start("second")
        self.wait_for_end()
        self.stop_well(second)
        self.assert_exactly_once(count)

    def test_kills_stops_and_newcomers_repeat_nothing(self):
        count = 8000
        self.submit(count)
        first, second = self.start("first", **SLOW), self.start("second", **SLOW)
        self.wait_for_results(count // 20)
        first.kill()
        first = self.start("first", **SLOW)
        self.wait_for_results(count // 10)
        third = self.start("third", **SLOW)
        self.stop_well(second)
        self.wait_for_results(count // 5)
        third.kill()
        first.kill()
        self.assertLess(len(self.results()), count, "the kills came too late to show anything")
        last = self.start("first")
        self.wait_for_end()
        self.stop_well(last)
        self.wait_for_results(count)  # not visible before the broker gives up the third's open transaction
        self.assert_exactly_once(count)

    def test_of_two_workers_of_one_name_the_first_ends_with_a_clear_error(self):
        self.submit(2000)
        first = self.start("first", "--no-supervisor", instance="same", **SLOW)
        self.wait_for_results(100)
        second = self.start("second", "--no-supervisor", instance="same")
        self.assertEqual(first.wait(PATIENCE_S), 5)
        self.assertIn("give each worker", (self.folder / "first.log").read_text())
        self.wait_for_end()
        self.stop_well(second)
        self.assert_exactly_once(2000)


if __name__ == "__main__":
    unittest.main(verbosity=2)
