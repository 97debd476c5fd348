"""How long a device stands still when its executor crashes, with and without a spare, in turns; with --stages also
where the time goes.
usage: take_over.py BUILD_FOLDER [--kafka] [--deaths 10] [--rounds 3] [--driver cpu] [--stages] [--spare true false]"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "flow"))
from worker_flow import BINARY, saxpy

import confluent_kafka
import msgpack
import worker_process
from kafka_cluster import KafkaCluster
from kafka_topics import Topics

JOBS = 200_000  # more than a run gets through
# So slow, and with so little in hand, that the file lasts: a job takes a GPU about as long as its launches do.
SLOW = {"lanes": 2, "batch": {"jobs": 1}, "limits": {"jobs_in_flight": 64},
        "cpu_driver": {"faults": "cuLaunchKernel:slow=1ms@*"}}
LAUNCHES = {"cpu": 1, "cuda": 1000}
WARM_UP_S = 1.0  # between two deaths: a worker at work, and a spare that waits
PATIENCE_S = 60


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kafka", action="store_true", help="from topic to topic, instead of from file to file")
    parser.add_argument("--deaths", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--driver", choices=LAUNCHES, default="cpu")
    parser.add_argument("--stages", action="store_true")
    parser.add_argument("--spare", nargs="+", default=["false", "true"])
    return parser.parse_args()


def messages(driver):
    for number in range(JOBS):
        job = saxpy(number)
        job["steps"][0]["iterations"] = LAUNCHES[driver]
        yield msgpack.packb(job)


class Files:
    def __init__(self, folder, driver):
        self.options = ["--jobs", folder / "jobs", "--results", folder / "results"]
        self.config = {}
        self.results = folder / "results"
        (folder / "jobs").write_bytes(b"".join(messages(driver)))

    def wait_for_result(self, _):
        """The time of the next result."""
        size = self.results.stat().st_size
        while self.results.stat().st_size <= size:
            time.sleep(0.0005)
        return time.time()

    def close(self):
        pass


class Kafka:
    def __init__(self, servers, driver):
        topics = Topics(servers, partitions=1)  # its offset moves between deaths, so none is tried alone
        self.options = []
        self.config = topics.config(servers)
        producer = confluent_kafka.Producer({"bootstrap.servers": servers, "queue.buffering.max.messages": JOBS})
        for message in messages(driver):
            producer.produce(topics.jobs, message)
        producer.flush()
        self.reader = confluent_kafka.Consumer(
            {"bootstrap.servers": servers, "group.id": "reader", "auto.offset.reset": "earliest", "fetch.wait.max.ms": 1})
        self.reader.subscribe([topics.results])

    def wait_for_result(self, since):
        while True:
            for message in self.reader.consume(1000, 0.01):
                if message.timestamp()[1] / 1000 > since:
                    return message.timestamp()[1] / 1000

    def close(self):
        self.reader.close()


class Log(threading.Thread):
    """Lines as they come, with their times."""

    def __init__(self, pipe):
        super().__init__(daemon=True)
        self.pipe, self.lines = pipe, []

    def run(self):
        for line in self.pipe:
            self.lines.append((time.time(), line.rstrip()))


def status_of(address):
    """What the page says of the device; None until it answers."""
    with contextlib.suppress(OSError, ValueError), urllib.request.urlopen(f"http://{address}/status.json") as page:
        return json.load(page)["devices"][0]


def is_gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def kill_one(place, address, log, has_spare):
    """Seconds from the death to the next result, and what the log says meanwhile."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        status = status_of(address)
        if status and status["standing"] == "working" and (not has_spare or status["spare"]["is_ready"]):
            break
        if time.monotonic() > deadline:
            raise TimeoutError(f"no worker at work: {status}")
        time.sleep(0.05)
    place.wait_for_result(time.time())
    time.sleep(WARM_UP_S)
    pid = status["executor"]["pid"]
    os.kill(pid, signal.SIGSEGV)  # a death with a cause: the next executor starts at once
    while not is_gone(pid):
        pass
    death = time.time()
    seconds = place.wait_for_result(death) - death
    lines = [(at - death, line) for at, line in log.lines if at >= death - 0.001]
    return seconds, lines


def run(place, folder, arguments, spare):
    with open(folder / "worker.yaml", "w") as file:
        config = {"driver": arguments.driver, "http": {"listen": "127.0.0.1:19471"}, "log": {"level": "debug"},
                  "executors": {"deaths_max": 1000} | ({"spare": spare} if spare == "true" else {})} | SLOW
        json.dump(config | place.config, file)
    command = [BINARY, "run", "--config", folder / "worker.yaml", *place.options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL) as worker:
        log = Log(worker.stderr)
        log.start()
        try:
            return [kill_one(place, "127.0.0.1:19471", log, spare == "true") for _ in range(arguments.deaths)]
        finally:
            worker.kill()
            log.join()


def print_stages(deaths):
    """When each line came after the death: the median over those deaths that have it."""
    times = {}
    for _, lines in deaths:
        for at, line in lines:
            said = re.sub(r"\d+", "N", line.split(" ", 2)[-1])[:90]
            times.setdefault(said, []).append(at * 1000)
    for said, ats in sorted(times.items(), key=lambda item: statistics.median(item[1])):
        if len(ats) * 2 >= len(deaths):
            print(f"    {statistics.median(ats):8.1f} ms  {said}")


def main():
    arguments = parse_arguments()
    cluster = KafkaCluster(1) if arguments.kafka else None
    found = {spare: [] for spare in arguments.spare}
    for _ in range(arguments.rounds):
        for spare in arguments.spare:
            with tempfile.TemporaryDirectory(prefix="gpu-worker-take-over-") as name:
                folder = pathlib.Path(name)
                os.environ["XDG_STATE_HOME"] = str(folder / "state")
                place = Kafka(cluster.servers, arguments.driver) if cluster else Files(folder, arguments.driver)
                found[spare] += run(place, folder, arguments, spare)
                place.close()
    for spare, deaths in found.items():
        times = sorted(seconds * 1000 for seconds, _ in deaths)
        print(f"spare {spare:<5}  {len(times)} deaths, from a death to the next result: median {statistics.median(times):.0f} ms "
              f"({times[0]:.0f} to {times[-1]:.0f})")
        if arguments.stages:
            print_stages(deaths)


if __name__ == "__main__":
    main()
