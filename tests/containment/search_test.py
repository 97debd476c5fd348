"""What one hostile key costs the others of its partition, with a real Apache Kafka: it sends arrays in which instances
hang, and the others short jobs at a steady rate. Says how long these wait for their answers, alone and beside it, and
holds that against a budget.
usage: search_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA, the driver in
GPU_WORKER_TEST_DRIVER (cpu), the seconds beside the hostile key in GPU_WORKER_TEST_SECONDS (60), and the time-out of
what hangs in GPU_WORKER_TEST_TIMEOUT_MS (300)."""

import os
import pathlib
import re
import statistics
import sys
import threading
import time
import unittest

import msgpack
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "flow"))
from worker_environment import for_faults
from worker_flow import BUILD, KafkaFlowTest, Topics, read_all, saxpy, unpack

import confluent_kafka

import gpu_worker as gw
from containment_test import link_programs

DRIVER = os.environ.get("GPU_WORKER_TEST_DRIVER", "cpu")
SECONDS = float(os.environ.get("GPU_WORKER_TEST_SECONDS", "60"))
TIMEOUT_MS = int(os.environ.get("GPU_WORKER_TEST_TIMEOUT_MS", "300"))
RATE, ALONE_S, OTHERS = 20, 10, 10  # jobs a second of so many keys, and for how long they are alone

# The budget. A search of 25 deaths that nobody runs beside makes all of them wait, half of them for half of its time.
DEATHS_MAX = 8  # within a minute
MEDIAN_TIMES, NOISE_MS = 3, 100  # half of the others notice nothing
HELD_UP_MAX = 0.25  # of all time; after some deaths it is a hundredth

# A step of the search runs a good hundred small slices before the one that hangs, and all count against the array's
# time-out, also where the machine is busy. It takes that long, so fewer deaths must do.
SEARCH_TIMEOUT_MS, CONVICTIONS = max(5000, TIMEOUT_MS), 4


def hanging(id, count, culprits, timeout_ms=TIMEOUT_MS):
    """An array of which these instances never end."""
    health = numpy.ones(count, "<u4")
    health[culprits] = 0
    return gw.job(
        id, count=count, timeout_ms=timeout_ms, outputs=["y"],
        buffers={"y": {"bytes": 4, "each": True, "data": health.tobytes()}},
        steps=[gw.step("poison", ["y"], entry="endless", grid=[1])])


class Others(threading.Thread):
    """Send at a steady rate, whatever becomes of it, and note when."""

    def __init__(self, servers, topic):
        super().__init__(daemon=True)
        self.producer = confluent_kafka.Producer({"bootstrap.servers": servers, "linger.ms": 0})
        self.topic, self.sent_ms, self.phase, self.is_over = topic, {}, "alone", threading.Event()

    def run(self):
        begun = time.monotonic()
        while not self.is_over.wait(max(0, begun + len(self.sent_ms) / RATE - time.monotonic())):
            n = len(self.sent_ms)
            id = f"{self.phase}-{n}"
            self.sent_ms[id] = time.time() * 1000
            self.producer.produce(self.topic, msgpack.packb(saxpy(n) | {"id": id}), key=f"other-{n % OTHERS}")
            self.producer.poll(0)
        self.producer.flush(60)

    def stop(self):
        self.is_over.set()
        self.join()


class SearchTest(KafkaFlowTest):
    def setUp(self):
        super().setUp()
        self.use_environment(for_faults())
        self.topics = Topics(self.servers, partitions=1)

    def start(self, **more):
        config = self.config(
            driver=DRIVER, lanes=2, programs={"dir": str(link_programs(BUILD, self.folder / "programs"))},
            state={"dir": str(self.folder / "state")}, **more)
        config["kafka"]["instance_id"] = self.topics.group  # it is a member again at once
        self.worker = self.start_worker(config)
        self.produce(msgpack.packb(saxpy(0) | {"id": "first"}))
        self.wait_for_results()

    def answers(self):
        """By id: when it was answered (ms), and with which code."""
        found = {}
        for message in read_all(self.servers, self.topics.results):
            result = unpack(message)
            found[result["id"]] = (message.timestamp()[1], result.get("error", {"code": "ok"})["code"])
        return found

    def deaths(self):
        return self.log_of().count("the executor died")

    def run_beside(self, hostile):
        """The waits of the others, alone and beside these jobs, until all are answered or the time is up."""
        others = Others(self.servers, self.topics.jobs)
        self.addCleanup(others.stop)
        others.start()
        time.sleep(ALONE_S)
        self.produce(*map(msgpack.packb, hostile), key="hostile")
        others.phase, end = "beside", time.monotonic() + SECONDS
        ids = {job["id"] for job in hostile}
        while time.monotonic() < end and not ids <= self.answers().keys():
            time.sleep(1)
        deaths = self.deaths()
        others.stop()
        self.wait_until(lambda: others.sent_ms.keys() <= self.answers().keys(), "the others are answered", 300)
        found = self.answers()
        self.assertEqual({found[id][1] for id in others.sent_ms}, {"ok"})
        waits = {phase: sorted(found[id][0] - at for id, at in others.sent_ms.items() if id.startswith(phase))
                 for phase in ("alone", "beside")}
        return waits, deaths, {found[id][1] for id in ids & found.keys()}

    def assert_within_budget(self, what, hostile):
        self.start()
        waits, deaths, codes = self.run_beside(hostile)
        print(f"\n{what}, {DRIVER} driver: {deaths} deaths, {codes or 'not answered yet'}; the others' waits:")
        for phase, times in waits.items():
            parts = ", ".join(f"p{part} {times[len(times) * part // 100]:.0f} ms" for part in (50, 90, 99))
            print(f"  {phase:<7} {len(times)} jobs: {parts}, longest {times[-1]:.0f} ms", flush=True)
        alone, beside = waits["alone"], waits["beside"]
        self.assertLessEqual(deaths, DEATHS_MAX)
        self.assertLessEqual(
            statistics.median(beside), MEDIAN_TIMES * statistics.median(alone) + NOISE_MS)
        usual = MEDIAN_TIMES * alone[len(alone) * 99 // 100] + NOISE_MS
        self.assertLessEqual(sum(wait > usual for wait in beside) / len(beside), HELD_UP_MAX)

    def test_an_array_with_many_culprits_gives_way_to_the_others(self):
        self.assert_within_budget(
            "an array of 4096, of which 8 hang", [hanging("array", 4096, [i * 500 + 7 for i in range(8)])])

    def test_many_arrays_with_a_culprit_each_give_way_to_the_others(self):
        self.assert_within_budget(
            "20 arrays of which an instance hangs", [hanging(f"array-{n}", 64, [n]) for n in range(20)])

    def test_each_death_in_a_search_counts_against_the_key(self):
        """Nobody else is there, so that it goes on without a pause: until the key is suspended."""
        self.start(suspend={"convictions": CONVICTIONS})
        array = hanging("array", 4096, [i * 500 + 7 for i in range(8)], SEARCH_TIMEOUT_MS)
        self.produce(msgpack.packb(array), key="hostile")
        self.wait_until(lambda: "array" in self.answers(), "the array is answered", 300)
        self.assertEqual(self.answers()["array"][1], "suspended", self.tell_logs())
        self.assertEqual(self.deaths(), 1 + CONVICTIONS, "the first in company, and suspend.convictions")
        self.assertRegex(
            self.log_of(), re.compile(f"a key is suspended for .* its jobs have ended executors {CONVICTIONS} times"))
        self.stop_well(self.worker)

    def test_a_culprit_that_is_found_is_known_also_before_the_answer_is_committed(self):
        """Each death that the second array causes has the first one read again."""
        self.start(commit_interval_ms="1m")
        self.produce(*(msgpack.packb(hanging(f"array-{n}", 64, [n], SEARCH_TIMEOUT_MS)) for n in range(2)))
        self.wait_until(lambda: {"array-0", "array-1"} <= self.answers().keys(), "both are answered", 300)
        self.assertEqual({self.answers()[f"array-{n}"][1] for n in range(2)}, {"instances_failed"}, self.tell_logs())
        self.assertLessEqual(self.deaths(), 6, "two in company at most, and two for each culprit")
        self.stop_well(self.worker)


if __name__ == "__main__":
    unittest.main(verbosity=2)
