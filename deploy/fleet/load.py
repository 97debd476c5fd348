"""Jobs for a fleet: steady, and in bursts."""

import threading
import time

import confluent_kafka
import gpu_worker as gw
import msgpack
import numpy

STEP_S = 0.02


def make_job(number, work_ms):
    """Takes a lane `work_ms`, and answers 3 number + 1 beside the program's revision."""
    return msgpack.packb(gw.job(
        f"job-{number}",
        buffers={"x": gw.upload(numpy.array([number], "<u4")), "y": gw.zeros([2], "<u4")},
        steps=[gw.step("stamp", ["x", "y", gw.u32(work_ms)], elements=1)],
        outputs=["y"]))


class Load(threading.Thread):
    """Sends `rate` jobs a second, and more where fewer than `backlog` of them are without an answer; each comes into
    the topic once."""

    def __init__(self, servers, topic, work_ms, answered):
        super().__init__(daemon=True)
        self._producer = confluent_kafka.Producer(
            {"log_level": 2, "bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 5})
        self._topic, self._work_ms, self._answered = topic, work_ms, answered
        self._is_over = threading.Event()
        self.rate = 0
        self.backlog = 0
        self.sent_at = {}  # by the number of the job; seconds since 1970, as messages are dated
        self.problems = []

    def _on_delivery(self, error, message):
        if error is not None:
            self.problems.append(f"a job was not taken by the brokers: {error}")

    def _send(self):
        number = len(self.sent_at)
        self.sent_at[number] = time.time()
        self._producer.produce(
            self._topic, make_job(number, self._work_ms), key=f"job-{number}", on_delivery=self._on_delivery)

    def run(self):
        due, before_s = 0.0, time.monotonic()
        while not self._is_over.wait(STEP_S):
            now_s = time.monotonic()
            due += (now_s - before_s) * self.rate
            before_s = now_s
            count = max(int(due), self.backlog - (len(self.sent_at) - self._answered()))
            due -= min(int(due), count)
            for _ in range(count):
                self._send()
            self._producer.poll(0)

    def set(self, rate, backlog=0):
        self.rate, self.backlog = rate, backlog

    def end(self):
        """Returns once every job is in the topic."""
        self._is_over.set()
        if self.is_alive():
            self.join()
        self._producer.flush(60)
