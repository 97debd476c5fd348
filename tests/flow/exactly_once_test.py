"""`delivery: exactly_once` against a real Apache Kafka: whoever reads committed messages alone sees one result a job.
usage: exactly_once_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA."""

import collections
import unittest

from worker_flow import SLOWER, KafkaFlowTest, headers_of, is_saxpy, lag, read_all, saxpy

import msgpack


class ExactlyOnceTest(KafkaFlowTest):
    def start(self, name, **more):
        config = self.config(delivery="exactly_once", commit_interval_ms="100ms", **more)
        config["kafka"] |= {"instance_id": f"{self.topics.group}-{name}", "consumer": {"session.timeout.ms": 6000}}
        return self.start_worker(config, name)

    def submit(self, count):
        self.produce(*(msgpack.packb(saxpy(number)) for number in range(count)))

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
        self.produce(b"\xc1", key=b"hostile")
        worker = self.start("worker")
        self.wait_for_no_lag()
        self.stop_well(worker)
        self.assert_exactly_once(count)
        (letter,) = read_all(self.servers, self.topics.dead_letters)
        self.assertEqual(headers_of(letter)["dlq.error.code"], "bad_message")
        self.assertEqual(lag(self.servers, self.topics), 0)

    def test_kills_stops_and_newcomers_repeat_nothing(self):
        count = 8000
        self.submit(count)
        first, second = self.start("first", **SLOWER), self.start("second", **SLOWER)
        self.wait_for_results(20)
        first.kill()
        first = self.start("first", **SLOWER)
        self.wait_for_results(40)
        third = self.start("third", **SLOWER)
        self.stop_well(second)
        self.wait_for_results(60)
        third.kill()
        first.kill()
        self.assertLess(len(self.results()), count, "the kills came too late to show anything")
        last = self.start("first")
        self.wait_for_no_lag()
        self.stop_well(last)
        self.wait_for_results(count)  # not visible before the broker gives up the third's open transaction
        self.assert_exactly_once(count)


if __name__ == "__main__":
    unittest.main(verbosity=2)
