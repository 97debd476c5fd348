"""Jobs that flow through workers of one group while something fails, and the account of what became of them."""

import collections
import contextlib
import struct
import threading
import time

from hanging_transactions import Hanging
from worker_flow import BUILD, QUIET, SOON, Topics, headers_of, lag, read_all, unpack

import confluent_kafka
import gpu_worker as gw
import msgpack
import numpy
import worker_process

LANES = 2
JOBS_IN_FLIGHT = 64
LOOK_S = 1  # between two questions to the brokers whether a transaction hangs
UNDECODABLE, REFUSED = 7, 13  # of each fifty jobs; the others are right


def make_job(number):
    """What is sent as this number: y = 3 x + 1, for two of each fifty something that must fail."""
    if number % 50 == UNDECODABLE:
        return b"\xc1"
    arguments = ["x"] if number % 50 == REFUSED else ["x", "y"]
    return msgpack.packb(gw.job(
        str(number),
        buffers={"x": gw.upload(numpy.array([number], "<u4")), "y": gw.zeros([1], "<u4")},
        steps=[gw.step("ledger", arguments, elements=1)],
        outputs=["y"],
    ))


def is_right(number, result):
    if number % 50 == UNDECODABLE:
        return False
    if number % 50 == REFUSED:
        return result["status"] == "error"
    return result["status"] == "ok" and result["outputs"][0]["data"] == struct.pack("<I", 3 * number + 1)


def needs_dead_letter(number):
    return number % 50 in (UNDECODABLE, REFUSED)


Account = collections.namedtuple("Account", "fault mode jobs lost duplicated recomputed wrong")


class Flow:
    """Sends the jobs of these numbers: a quarter at once, half of them steadily, the last quarter once the fault is
    over. So a fault that begins while a tenth of the results is there is always in the middle."""

    def __init__(self, test, cluster, mode, numbers, proxied=False, producer=None, seconds=10):
        """`seconds`: how long the middle half is being sent, and about what two workers need for all."""
        self.mode = mode
        self._seconds = seconds
        self.slow_ms = max(1, round(2 * LANES * seconds * 1000 / len(numbers)))  # of the workers that start from now on
        self.count = len(numbers)
        self.numbers = numbers
        self.sent = 0
        self._hurried = 0  # jobs below it do not wait for their turn
        self.fault_is_over = threading.Event()
        self._test = test
        self._cluster = cluster
        self._producer = SOON | (producer or {})  # settings of the workers'
        self._servers = f"127.0.0.1:{cluster.proxy_port}" if proxied else cluster.servers
        self.topics = Topics(cluster.servers, replicas=cluster.brokers)
        self._hanging = Hanging(cluster.servers, (self.topics.jobs, self.topics.results, self.topics.dead_letters), 4)
        self._next_look = 0
        self._workers = {}
        self._answered = set()
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._send, self._watch)]
        for thread in self._threads:
            thread.start()

    # the workers

    def _config(self, name):
        return self.topics.config(
            self._servers, lanes=LANES, delivery=self.mode, limits={"jobs_in_flight": JOBS_IN_FLIGHT},
            programs={"dir": str(BUILD / "tests/flow")},
            cpu_driver={"faults": f"cuLaunchKernel:slow={self.slow_ms}ms@*"},
            kafka={"bootstrap_servers": self._servers, "group": self.topics.group,
                   "instance_id": f"{self.topics.group}-{name}", "producer": self._producer, "consumer": SOON})

    def start(self, *names):
        for name in names:
            self._workers[name] = self._test.start_worker(self._config(name), f"{self.mode}-{name}")

    def kill(self, name):
        self._workers.pop(name).kill()

    def stop(self, *names):
        for name in names:
            self._test.stop_well(self._workers.pop(name))

    def check(self):
        for worker in self._workers.values():
            try:
                worker.check()
            except worker_process.Failure:
                worker.print_log()
                raise

    # the jobs

    def _wait_for_turn(self, index, started):
        quarter = self.count // 4
        due = started + (index - quarter) * self._seconds / (2 * quarter)
        while index >= self._hurried and not self._is_over.is_set():
            if time.monotonic() >= due and (index < 3 * quarter or self.fault_is_over.is_set()):
                return
            time.sleep(0.01)

    def _send(self):
        producer = confluent_kafka.Producer(
            QUIET | {"bootstrap.servers": self._cluster.servers, "enable.idempotence": True, "linger.ms": 5})
        started = time.monotonic()
        for index, number in enumerate(self.numbers):
            self._wait_for_turn(index, started)
            if self._is_over.is_set():
                return
            producer.produce(self.topics.jobs, make_job(number), headers={"number": str(number)})
            producer.poll(0)
            self.sent = index + 1
        producer.flush()

    def _watch(self):
        consumer = confluent_kafka.Consumer(
            QUIET | {"bootstrap.servers": self._cluster.servers, "group.id": "watch", "enable.auto.commit": False,
                     "isolation.level": "read_committed"})
        consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0)
                         for topic in (self.topics.results, self.topics.dead_letters) for partition in range(4)])
        while not self._is_over.is_set():
            for message in consumer.consume(1000, 0.1):
                if message.error() is None:
                    self._answered.add(self._number_of(message))
        consumer.close()

    def _number_of(self, message):
        if message.topic() == self.topics.dead_letters:
            return int(headers_of(message)["number"])
        return int(headers_of(message)["gpu-worker-job-id"])

    def seen(self):
        return len(self._answered)

    def _wait_until(self, look, what, is_met):
        def look_again():
            self.check()
            return look()
        self._test.wait_until(look_again, f"{self.mode}: {what}", is_met=is_met)

    def wait_for_share(self, share):
        self._wait_until(self.seen, f"{share:.0%} of {self.count} jobs are answered", lambda seen: seen >= share * self.count)

    def put_under_way(self):
        """However quick the workers are, the fault that follows strikes them at work."""
        some = self.count // 20

        def under_way():
            if self.sent - self.seen() < some:
                self._hurried = min(self.sent + some, self.count)
            return self.sent - self.seen()
        self._wait_until(under_way, "jobs are under way", lambda found: found >= some)

    # the account

    def clear_hanging(self):
        self._hanging.clear()

    def _end_hanging(self):
        """A broker that was away may have left transactions hanging, behind which nobody reads. They are ended as whoever
        runs such brokers would end them."""
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + LOOK_S
        with contextlib.suppress(OSError):  # a broker that is just starting is asked again
            if self._hanging.look() > 0:
                print(f"{self.mode}: {self._hanging.ended} transactions ended that the broker had left hanging", flush=True)

    def _wait_for_end(self, look, what, is_met):
        def look_again():
            self._end_hanging()
            return look()
        self._wait_until(look_again, what, is_met)

    def finish(self, fault, ran):
        """Waits until all is answered and committed, stops the workers, and counts; `ran()` are the numbers that
        kernels ran for, once a run."""
        self.fault_is_over.set()
        with contextlib.suppress(AssertionError):  # what is lost stands in the account
            self._wait_for_end(self.seen, f"all {self.count} jobs are answered", lambda seen: seen >= self.count)
        self._wait_for_end(lambda: lag(self._cluster.servers, self.topics), "the group's lag reaches 0", lambda left: left == 0)
        self.stop(*list(self._workers))
        self.close()
        results, letters = (
            read_all(self._cluster.servers, topic) for topic in (self.topics.results, self.topics.dead_letters))
        answers = collections.Counter(map(self._number_of, results))
        refusals = collections.Counter(map(self._number_of, letters))
        runs = collections.Counter(number for number in ran() if number in self.numbers)
        expected = {number for number in self.numbers if number % 50 != UNDECODABLE}
        refused = {number for number in self.numbers if needs_dead_letter(number)}
        return Account(
            fault=fault, mode=self.mode, jobs=self.count,
            lost=len((expected - answers.keys()) | (refused - refusals.keys())),
            duplicated=answers.total() - len(answers) + refusals.total() - len(refusals),
            recomputed=runs.total() - len(runs),
            wrong=sum(not is_right(self._number_of(message), unpack(message)) for message in results)
            + len(refusals.keys() - refused))

    def close(self):
        self._is_over.set()
        self.fault_is_over.set()
        for thread in self._threads:
            thread.join()
