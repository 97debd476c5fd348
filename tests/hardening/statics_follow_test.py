"""Thousands of jobs that name statics by digest alone, behind the first of each digest, which brings the data: none is
told that a static is missing, whichever thread decodes which message first.
usage: statics_follow_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA."""

import unittest

from worker_flow import KafkaFlowTest, gw, read_all

import confluent_kafka
import msgpack
import numpy

DIGESTS, FOLLOWERS, PARTITIONS = 200, 24, 4


def make_job(number, follower):
    """y = 2x + y over a static of 64 numbers that no other digest has; the first brings it."""
    x = numpy.full(64, number, "<f4")
    return gw.job(
        f"{number}-{follower}",
        buffers={"x": gw.static(x, with_data=follower == 0), "y": gw.upload(numpy.ones(64, "<f4"))},
        steps=[gw.step("saxpy", [gw.f32(2), "x", "y", gw.u32(64)], elements=64)],
        outputs=["y"],
    )


class StaticsFollowTest(KafkaFlowTest):
    def send_all(self):
        """Families side by side in each partition, so that many first ones are decoded at once."""
        producer = confluent_kafka.Producer({"bootstrap.servers": self.servers, "linger.ms": 50})
        for group in range(0, DIGESTS, 8):
            for follower in range(FOLLOWERS + 1):
                for number in range(group, group + 8):
                    producer.produce(
                        self.topics.jobs, msgpack.packb(make_job(number, follower)), partition=number % PARTITIONS)
            producer.poll(0)
        self.assertEqual(producer.flush(60), 0)

    def check(self, delivery):
        self.send_all()  # before the worker starts: it takes them as fast as it can
        worker = self.start_worker(self.config(delivery=delivery))
        self.wait_for_no_lag()
        self.stop_well(worker)
        wrong = [result for result in self.results() if result["status"] != "ok"]
        self.assertEqual([(result["id"], result["error"]["code"]) for result in wrong], [])
        answers = {result["id"]: result for result in self.results()}
        self.assertEqual(len(answers), DIGESTS * (FOLLOWERS + 1))
        for name, result in answers.items():
            self.assertTrue(numpy.all(gw.arrays(result)["y"] == 2 * int(name.split("-")[0]) + 1), name)
        self.assertEqual(read_all(self.servers, self.topics.dead_letters), [])

    def test_at_least_once_no_follower_misses_what_the_first_brought(self):
        self.check("at_least_once")

    def test_exactly_once_no_follower_misses_what_the_first_brought(self):
        self.check("exactly_once")


if __name__ == "__main__":
    unittest.main(verbosity=2)
