"""What the flow tests share: real workers as processes, jobs whose results are easily checked, and clients
that this project did not write."""

import contextlib
import http.client
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import urllib.error
import urllib.request

import confluent_kafka
import msgpack
import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/python"), str(ROOT / "schemas")]
import gpu_worker as gw
import worker_process
import waiting
from kafka_topics import Reader, Topics, headers_of, lag, read_all
from waiting import PATIENCE_S

BUILD = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path("build/dev")
BINARY = BUILD / "bin/gpu-worker"
LOG_LINES_SHOWN = 40
SOON = {"reconnect.backoff.max.ms": 500}  # a broker that is back is found without ten seconds of patience
QUIET = {"log_level": 2}  # a broker that is away is what some tests are about
# Workers so slow, and with so little in hand, that no machine is done before a test has done its worst.
SLOW = {"batch": {"jobs": 1}, "limits": {"jobs_in_flight": 64}, "cpu_driver": {"faults": "cuLaunchKernel:slow=20ms@*"}}
SLOWER = SLOW | {"cpu_driver": {"faults": "cuLaunchKernel:slow=200ms@*"}}  # about ten jobs a second


def saxpy(number, size=4):
    """y = 2x + y over x = number, y = 1: every element of the result is 2 number + 1."""
    return gw.job(
        f"job-{number}",
        buffers={
            "x": gw.upload(numpy.full(size, number, "<f4")),
            "y": gw.upload(numpy.ones(size, "<f4")),
        },
        steps=[gw.step("saxpy", [gw.f32(2), "x", "y", gw.u32(size)], elements=size)],
        outputs=["y"],
    )


def is_saxpy(result, number):
    return bool(numpy.all(gw.arrays(result)["y"] == 2 * number + 1))


def reserve_address(test):
    """One of this machine that nobody listens at, and that nobody else is given before the test is over. A worker may
    listen there."""
    held = socket.socket()
    test.addCleanup(held.close)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as those who listen do; it does not listen itself
    held.bind(("127.0.0.1", 0))
    return "{}:{}".format(*held.getsockname())


def write_aside(path, text):
    """Whoever reads the file meanwhile finds what stood there before, or all of this."""
    aside = path.with_name(f".{path.name}.aside")
    aside.write_text(text)
    aside.replace(path)


def ask(address, page, headers=None):
    """What a worker's HTTP answers: status, text and headers; (0, "", {}) while nobody listens, or somebody who ends."""
    try:
        with urllib.request.urlopen(
                urllib.request.Request(f"http://{address}{page}", headers=headers or {}), timeout=PATIENCE_S) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as answer:
        return answer.code, answer.read().decode(), answer.headers
    except (OSError, http.client.HTTPException):
        return 0, "", {}


def metric(address, name):
    """The sum of its samples; 0 while there is none."""
    return sum(float(line.split()[-1]) for line in ask(address, "/metrics")[1].splitlines() if line.startswith(f"{name}{{"))


class FlowTest(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="gpu-worker-flow-")
        self.addCleanup(self._folder.cleanup)
        self.folder = pathlib.Path(self._folder.name)

    def wait_until(self, look, what, timeout_s=PATIENCE_S, is_met=bool):
        """Looks until `is_met` of what it sees, and returns that. Where it gives up, the failure says what it saw last, and
        how the logs end."""
        try:
            return waiting.wait_until(look, what, timeout_s, is_met)
        except AssertionError as late:
            self.fail(f"{late}{self.tell_logs()}")

    def log_of(self, name="worker"):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def wait_for_log(self, text, name="worker", count=1):
        """Until the worker's log has the text so often; the log then."""
        self.wait_until(lambda: self.log_of(name).count(text), f"{name}.log says {count} times: {text}",
                        is_met=lambda found: found >= count)
        return self.log_of(name)

    def wait_for_end(self, worker):
        """Until it ends by itself; its exit status."""
        return self.wait_until(worker.status, "the worker ends", is_met=lambda status: status is not None)

    def tell_logs(self):
        told = []
        for log in sorted(self.folder.glob("*log")):
            told += [f"the end of {log.name}:", *log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]]
        return "\n  ".join(["", *told])

    def use_environment(self, environment):
        """For the workers that the test starts from now on."""
        patch = unittest.mock.patch.dict(os.environ, environment)
        patch.start()
        self.addCleanup(patch.stop)

    def start_worker(self, config, name="worker", *options):
        path = self.folder / f"{name}.yaml"
        worker_process.write_config(path, config)
        worker = worker_process.Worker(BINARY, path, self.folder / f"{name}.log", *options)
        self.addCleanup(worker.stop)
        return worker

    def run_to_end(self, config, *command):
        """One that ends by itself."""
        path = self.folder / "command.yaml"
        worker_process.write_config(path, config)
        try:
            return subprocess.run(
                [BINARY, *command, "--config", path], timeout=PATIENCE_S, capture_output=True, text=True,
                env=os.environ | {"XDG_STATE_HOME": str(self.folder / "state")})
        except subprocess.TimeoutExpired as late:
            self.fail(f"{late}; it said: {(late.stderr or b'').decode()}")

    def stop_well(self, worker):
        status = worker.stop()
        if status != 0:
            worker.print_log()
        self.assertEqual(status, 0)


class KafkaFlowTest(FlowTest):
    """With the real Kafka at GPU_WORKER_TEST_KAFKA, and topics of its own."""

    def setUp(self):
        super().setUp()
        self.servers = os.environ["GPU_WORKER_TEST_KAFKA"]
        self.topics = Topics(self.servers)

    def config(self, **more):
        return self.topics.config(self.servers, **more)

    @contextlib.contextmanager
    def producing(self):
        """A function that sends to the job topic, with what confluent_kafka's produce() takes besides; at the end the broker
        has it all."""
        producer = confluent_kafka.Producer({"bootstrap.servers": self.servers, "linger.ms": 5})

        def send(value, **more):
            while True:
                try:
                    producer.produce(self.topics.jobs, value, **more)
                    return
                except BufferError:
                    producer.poll(0.1)
        yield send
        self.assertEqual(producer.flush(PATIENCE_S), 0)

    def produce(self, *values, key=None, headers=None):
        with self.producing() as send:
            for value in values:
                send(value, key=key, headers=headers)

    def produce_to_each_partition(self, values):
        with self.producing() as send:
            for number, value in enumerate(values):
                send(value, partition=number % self.topics.partitions)

    def wait_for_no_lag(self, timeout_s=PATIENCE_S):
        self.wait_until(lambda: lag(self.servers, self.topics), "the group's lag reaches 0", timeout_s, lambda left: left == 0)

    def results(self):
        return list(map(unpack, read_all(self.servers, self.topics.results)))

    def wait_for_results(self, count=1):
        """Until so many results are committed; how many there are then."""
        reader = Reader(self.servers, self.topics.results, self.topics.partitions)
        self.addCleanup(reader.close)
        found = []

        def look():
            found.extend(reader.read())
            return len(found)
        return self.wait_until(look, f"{count} results", is_met=lambda seen: seen >= count)


def unpack(message):
    return msgpack.unpackb(message.value())
