"""Senders whose jobs end executors again and again are refused for a while, with a real Apache Kafka and both
deliveries; everybody else goes on, and gpu-worker resume ends it.
usage: suspended_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA"""

import os
import pathlib
import re
import signal
import sys
import unittest
import urllib.request

import msgpack
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "containment"))
from worker_environment import for_faults
from worker_flow import BUILD, KafkaFlowTest, Topics, reserve_address, saxpy

import gpu_worker as gw
from containment_test import SLAB, link_programs
from poison import poisonous

CONVICTIONS = 3


def harmless(id):
    """A job of the same program as the poisonous ones, which does no harm."""
    return gw.job(id, buffers={"y": gw.upload(numpy.full(1, 1, "<u4"))}, outputs=["y"],
                  steps=[gw.step("poison", ["y"], entry="endless", grid=[1])])


class SuspendedTest(KafkaFlowTest):
    def setUp(self):
        super().setUp()
        self.use_environment(for_faults())
        self.topics = Topics(self.servers, partitions=1)  # one by one: who is convicted first is counted first
        self.http = reserve_address(self)
        self.sent = 0

    def start(self, **more):
        self.settings = self.config(
            programs={"dir": str(link_programs(BUILD, self.folder / "programs"))}, http={"listen": self.http},
            lane_slab_bytes=SLAB, state={"dir": str(self.folder / "state")},
            suspend={"convictions": CONVICTIONS, "for_ms": "1h"}, **more)
        return self.start_worker(self.settings)

    def send(self, key, *jobs):
        self.produce(*map(msgpack.packb, jobs), key=key)

    def answers(self, *ids):
        """What became of each, once all of them are answered: ok, or the error's code."""
        def found():
            self.found = {result["id"]: result for result in self.results()}
            return set(ids) <= set(self.found)
        self.wait_until(found, f"{ids} are answered")
        return [self.found[id].get("error", {"code": "ok"})["code"] for id in ids]

    def suspended(self, kind):
        with urllib.request.urlopen(f"http://{self.http}/metrics", timeout=240) as page:
            values = re.findall(rf'gpu_worker_suspended_{kind}s{{.*}} (\d+)', page.read().decode())
        return sum(map(int, values))

    def resume(self, *options):
        ended = self.run_to_end(self.settings, "resume", *options)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout

    def test_a_key_is_suspended_and_others_go_on(self):
        self.assert_key_is_suspended("at_least_once")

    def test_a_key_is_suspended_where_each_is_answered_exactly_once(self):
        self.assert_key_is_suspended("exactly_once")

    def assert_key_is_suspended(self, delivery):
        self.send("hostile", *[poisonous(f"bad-{n}", "bad_address") for n in range(6)])
        self.send("good", *[saxpy(n) for n in range(8)], harmless("good-before"))
        worker = self.start(delivery=delivery)
        codes = self.answers(*[f"bad-{n}" for n in range(6)])
        self.assertEqual(codes, ["worker_crash"] * CONVICTIONS + ["suspended"] * (6 - CONVICTIONS))
        self.assertEqual(set(self.answers("good-before", *[f"job-{n}" for n in range(8)])), {"ok"})
        error = self.found["bad-5"]["error"]
        self.assertEqual(error["retry"], "sender")
        self.assertIn("gpu-worker resume --key", error["fix"])
        self.assertEqual((self.suspended("key"), self.suspended("program")), (1, 0))
        self.assertIn("\tkey\thostile\t", self.resume())

        killed = worker.executors()
        os.kill(killed[0], signal.SIGKILL)
        self.wait_until(lambda: worker.executors() not in ([], killed), "another executor")
        self.send("hostile", harmless("hostile-again"))
        self.send("good", harmless("good-again"))
        self.assertEqual(self.answers("hostile-again", "good-again"), ["suspended", "ok"])

        self.assertIn("ended 1\n", self.resume("--key", "hostile"))
        self.assertEqual(self.resume(), "")
        self.send("hostile", harmless("hostile-resumed"))
        self.assertEqual(self.answers("hostile-resumed"), ["ok"])
        self.assertEqual(self.suspended("key"), 0)
        self.stop_well(worker)

    def test_a_program_is_suspended_for_newcomers_alone(self):
        self.assert_program_is_suspended("at_least_once")

    def test_a_program_is_suspended_where_each_is_answered_exactly_once(self):
        self.assert_program_is_suspended("exactly_once")

    def assert_program_is_suspended(self, delivery):
        self.send("regular", harmless("regular-before"))
        worker = self.start(delivery=delivery)
        self.assertEqual(self.answers("regular-before"), ["ok"])
        for n in range(5):
            self.send(f"fresh-{n}", poisonous(f"bad-{n}", "bad_address"))
        codes = self.answers(*[f"bad-{n}" for n in range(5)])
        self.assertEqual(codes, ["worker_crash"] * CONVICTIONS + ["suspended"] * (5 - CONVICTIONS))
        self.send("regular", harmless("regular-after"))
        self.send("newcomer", harmless("newcomer"), saxpy(1))
        self.send(None, harmless("keyless"), saxpy(2))
        self.assertEqual(self.answers("regular-after", "newcomer", "keyless", "job-1", "job-2"),
                         ["ok", "suspended", "suspended", "ok", "ok"])
        self.assertIn("gpu-worker resume --program", self.found["newcomer"]["error"]["fix"])
        self.assertEqual((self.suspended("key"), self.suspended("program")), (0, 1))
        self.assertIn("\tprogram\tpoison\t", self.resume())
        self.resume("--program", "poison")
        self.send("newcomer", harmless("newcomer-resumed"))
        self.assertEqual(self.answers("newcomer-resumed"), ["ok"])
        self.stop_well(worker)

    def test_a_conviction_counts_once_however_often_its_message_comes_again(self):
        self.send("unlucky", *[poisonous(f"bad-{n}", "bad_address") for n in range(CONVICTIONS - 1)])
        worker = self.start(commit_interval_ms="1m", ordering="key")
        for life in range(3):
            self.send("unlucky", harmless(f"life-{life}"))
            self.assertEqual(self.answers(f"life-{life}"), ["ok"])
            killed = worker.executors()
            os.kill(killed[0], signal.SIGKILL)
            self.wait_until(lambda: worker.executors() not in ([], killed), "another executor")
        self.send("unlucky", harmless("last"))
        self.assertEqual(self.answers("last"), ["ok"])
        log = (self.folder / "worker.log").read_text()
        self.assertEqual(log.count("convicted, and not run again"), CONVICTIONS - 1)
        self.assertEqual(self.suspended("key"), 0)
        self.stop_well(worker)


if __name__ == "__main__":
    unittest.main(verbosity=2)
