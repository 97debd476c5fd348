"""Time-outs that senders ask for, with a real Apache Kafka and both deliveries: no job holds a GPU for as long as it
likes, or ends an executor by asking for too little, and a hang among many jobs is found by the largest time-out of them.
usage: timeouts_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA"""

import pathlib
import re
import sys
import unittest

import msgpack
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "containment"))
from worker_flow import BUILD, KafkaFlowTest, is_saxpy, saxpy

import gpu_worker as gw
from containment_test import link_programs

TIMEOUT_MS = 2000  # longer than a machine with much to do keeps a thread waiting that should run
SPAN_MS = 1000
QUICK = 40
KILLING = re.compile(r"longer than the (\d+) ms that its jobs may take: killing")


def waiting(id, go_on):
    """One job of many that look alike; it ends at once where `go_on` is 1, and never where it is 0."""
    return gw.job(
        id, buffers={"y": gw.upload(numpy.full(1, go_on, "<u4"))}, outputs=["y"], timeout_ms=TIMEOUT_MS,
        steps=[gw.step("poison", ["y"], entry="endless", grid=[1])])


class TimeoutsTest(KafkaFlowTest):
    def start(self, delivery, **more):
        return self.start_worker(self.config(
            delivery=delivery, programs={"dir": str(link_programs(BUILD, self.folder / "programs"))}, **more))

    def log(self):
        return (self.folder / "worker.log").read_text()

    def by_id(self):
        return {result["id"]: result for result in self.results()}

    def assert_hang_in_a_batch_is_found_by_the_largest_timeout(self, delivery):
        jobs = [waiting(f"quick-{n}", 1) for n in range(QUICK)]
        jobs.insert(QUICK // 2, waiting("hangs", 0))  # behind some that say how quick all are, and before others
        self.produce(*map(msgpack.packb, jobs), key="k")  # all of one partition, so that this is their order
        worker = self.start(delivery, lanes=1, lane_depth=1, batch={"span_ms": f"{SPAN_MS}ms"},
                            cpu_driver={"faults": "cuLaunchKernel:slow=10ms@*"})
        self.wait_for_no_lag()
        self.stop_well(worker)
        limits = list(map(int, KILLING.findall(self.log())))
        self.assertEqual(limits[0], TIMEOUT_MS + SPAN_MS, "in company: the largest time-out, and what a batch may take")
        self.assertEqual(limits[1:], [TIMEOUT_MS], "alone: its own time-out")
        together = int(re.search(r"(\d+) messages that it had in hand", self.log())[1])
        self.assertGreater(together, 3, "the sum of their time-outs would have been more")
        results = self.by_id()
        self.assertEqual(results.pop("hangs")["error"]["code"], "gpu_hang")
        self.assertEqual({result["status"] for result in results.values()}, {"ok"})
        self.assertEqual(len(results), QUICK)

    def test_a_hang_in_a_batch_is_found_by_its_largest_timeout(self):
        self.assert_hang_in_a_batch_is_found_by_the_largest_timeout("at_least_once")

    def test_the_same_where_each_is_answered_exactly_once(self):
        self.assert_hang_in_a_batch_is_found_by_the_largest_timeout("exactly_once")

    def assert_refused(self, delivery):
        """Each would cost the worker a lane, or an executor; their neighbours notice nothing."""
        asked = {"longest": 2**32 - 1, "long": 20_001, "short": 1999, "shortest": 1}
        for id, timeout_ms in asked.items():
            self.produce(msgpack.packb(waiting(id, 0) | {"timeout_ms": timeout_ms}))
        self.produce(*[msgpack.packb(saxpy(n) | {"timeout_ms": 2000 if n % 2 else 20_000}) for n in range(8)])
        worker = self.start(delivery, limits={"timeout_min_ms": "2s", "timeout_ms": "10s", "timeout_max_ms": "20s"})
        self.wait_for_no_lag()
        self.stop_well(worker)
        self.assertNotIn("the executor died", self.log())
        results = self.by_id()
        codes = {id: results[id]["error"]["code"] for id in asked}
        self.assertEqual(
            codes, {"longest": "too_large", "long": "too_large", "short": "bad_job", "shortest": "bad_job"})
        self.assertIn("limits.timeout_max_ms", results["longest"]["error"]["fix"])
        self.assertIn("limits.timeout_min_ms", results["shortest"]["error"]["fix"])
        self.assertTrue(all(is_saxpy(results[f"job-{n}"], n) for n in range(8)))

    def test_a_job_that_asks_for_too_much_or_too_little_time_is_refused(self):
        self.assert_refused("at_least_once")

    def test_so_it_is_where_each_is_answered_exactly_once(self):
        self.assert_refused("exactly_once")


if __name__ == "__main__":
    unittest.main(verbosity=2)
