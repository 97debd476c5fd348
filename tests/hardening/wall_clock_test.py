"""The wall clock jumps, by as much as a day, while a worker has jobs and while it has none.
usage: wall_clock_test.py BUILD_FOLDER WALL_CLOCK"""

import pathlib
import struct
import sys
import unittest

from worker_environment import for_faults
from worker_flow import KafkaFlowTest, is_saxpy, saxpy

import confluent_kafka
import msgpack

WALL_CLOCK = pathlib.Path(sys.argv.pop(1))
DAY_S = 86400
COUNT = 60
JUMPS_S = (-DAY_S, 0, 1800)  # Kafka refuses messages from more than an hour ahead


class WallClockTest(KafkaFlowTest):
    def setUp(self):
        super().setUp()
        self.reader = confluent_kafka.Consumer({"bootstrap.servers": self.servers, "group.id": "reader"})
        self.addCleanup(self.reader.close)
        self.clock = self.folder / "clock"
        self.set_clock(0)
        self.use_environment(for_faults(WALL_CLOCK, WALL_CLOCK=str(self.clock)))

    def set_clock(self, seconds):
        """Written in one piece, into the file that stays."""
        with open(self.clock, "r+b" if self.clock.exists() else "wb", buffering=0) as file:
            file.write(struct.pack("=q", seconds))

    def answered(self):
        return {result["id"]: result for result in self.results()}

    def reports(self):
        """So many messages of the worker itself; more come all the time."""
        return sum(
            self.reader.get_watermark_offsets(confluent_kafka.TopicPartition(self.topics.telemetry, number), 30)[1]
            for number in range(4))

    def run_through_jumps(self, delivery):
        worker = self.start_worker(self.config(delivery=delivery, telemetry={"interval_ms": 200}))
        for round_number, jump_s in enumerate(JUMPS_S):
            jobs = range(round_number * COUNT, (round_number + 1) * COUNT)
            self.produce(*(msgpack.packb(saxpy(number)) for number in jobs[:COUNT // 2]))
            self.set_clock(jump_s)
            self.produce(*(msgpack.packb(saxpy(number)) for number in jobs[COUNT // 2:]))
            self.wait_until(lambda: len(self.answered()) == jobs[-1] + 1, f"all are answered after {jump_s} s")
            reports = self.reports()
            self.wait_until(lambda: self.reports() > reports, f"telemetry goes on after {jump_s} s")
        self.set_clock(-DAY_S)  # while it has nothing to do but wait
        self.stop_well(worker)
        answered = self.answered()
        for number in range(len(JUMPS_S) * COUNT):
            self.assertTrue(is_saxpy(answered[f"job-{number}"], number))

    def test_jobs_and_stops_go_on_at_least_once(self):
        self.run_through_jumps("at_least_once")

    def test_jobs_and_stops_go_on_exactly_once(self):
        self.run_through_jumps("exactly_once")


if __name__ == "__main__":
    unittest.main(verbosity=2)
