"""A key with hundreds of slow jobs beside quick jobs of other keys that stand behind them in the same partition: the
quick ones end while the slow key is far from done, and a worker that stops leaves what waits to the next one.
usage: slow_key_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA."""

import collections
import unittest

from worker_flow import KafkaFlowTest, gw, is_saxpy, read_all, saxpy, unpack

import confluent_kafka
import msgpack
import numpy

# Each launch takes 20 ms, also the ten of a graph: with a worker that has them, the slow key would take half a minute.
FAULTS = "cuLaunchKernel:slow=20ms@*;cuGraphLaunch:slow=200ms@*"
SLOW, QUICK, IN_FLIGHT = 200, 50, 40  # of the slow ones alone five times as many as may be in flight
PARTITION = 0


def slow(number):
    """Ten launches, where a quick job has one, and timed, so that no two jobs share them."""
    one = numpy.ones(4, "<f4")
    return gw.job(
        f"slow-{number}", buffers={"x": gw.upload(one), "y": gw.upload(one)}, outputs=["y"],
        steps=[gw.step("saxpy", [gw.f32(0), "x", "y", gw.u32(4)], elements=4, iterations=10)], timing=True)


class SlowKeyTest(KafkaFlowTest):
    def send_all(self):
        producer = confluent_kafka.Producer({"bootstrap.servers": self.servers, "linger.ms": 50})
        for number in range(SLOW):
            producer.produce(self.topics.jobs, msgpack.packb(slow(number)), key="slow", partition=PARTITION)
        for number in range(QUICK):
            producer.produce(self.topics.jobs, msgpack.packb(saxpy(number)), key=f"key-{number}", partition=PARTITION)
        self.assertEqual(producer.flush(60), 0)

    def answered(self, kind):
        return sum(result["id"].startswith(kind) for result in self.results())

    def check(self, **config):
        """The results of the slow key, in the order in which they were written."""
        config = self.config(limits={"jobs_in_flight": IN_FLIGHT}, commit_interval_ms="100ms", **config)
        self.send_all()
        worker = self.start_worker(config | {"cpu_driver": {"faults": FAULTS}})
        self.wait_until(lambda: self.answered("job-") == QUICK, "the quick ones are answered")
        self.stop_well(worker)
        worker = self.start_worker(config, "last")
        self.wait_for_no_lag()
        self.stop_well(worker)
        messages = sorted(read_all(self.servers, self.topics.results), key=lambda message: message.timestamp()[1])
        results = list(map(unpack, messages))
        names = [result["id"] for result in results]
        self.assertEqual([name for name, n in collections.Counter(names).items() if n > 1], [])
        self.assertEqual(len(names), SLOW + QUICK)
        for name, result in zip(names, results):
            self.assertTrue(name.startswith("slow-") or is_saxpy(result, int(name.removeprefix("job-"))), name)
        last_quick = max(index for index, name in enumerate(names) if name.startswith("job-"))
        before = sum(name.startswith("slow-") for name in names[:last_quick])
        print(f"{before} of {SLOW} slow jobs were answered before the last quick one", flush=True)
        self.assertLess(before, SLOW * 3 // 4)
        return [int(name.removeprefix("slow-")) for name in names if name.startswith("slow-")]

    def test_at_least_once(self):
        self.check(delivery="at_least_once")

    def test_exactly_once(self):
        self.check(delivery="exactly_once")

    def test_in_key_order_at_least_once(self):
        self.assertEqual(self.check(delivery="at_least_once", ordering="key"), list(range(SLOW)))

    def test_in_key_order_exactly_once(self):
        self.assertEqual(self.check(delivery="exactly_once", ordering="key"), list(range(SLOW)))


if __name__ == "__main__":
    unittest.main(verbosity=2)
