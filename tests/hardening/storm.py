"""Two workers, a real Apache Kafka, good and hostile messages, and faults at random; afterwards every message has
what it must have: its right result, its one error, or its dead letter."""

import argparse
import collections
import dataclasses
import functools
import http.server
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("tests/flow", "tests/containment", "scripts/python", "schemas")]
arguments_of_this = sys.argv[1:]
sys.argv[1:] = []  # worker_flow takes its build folder from there
from hanging_transactions import Hanging
from kafka_cluster import BRIEF, KafkaCluster
from kafka_topics import ANSWER_S
from worker_environment import for_faults
from worker_flow import lag

import confluent_kafka
import confluent_kafka.admin

from storm_account import Account
from storm_faults import SESSION_TIMEOUT_S, Brokers, Faults, Memory, Worker
from storm_messages import BOMB_BYTES, KINDS, RESULT_BYTES_MAX, Messages, blobs
from storm_topics import PARTITIONS, PARTITIONS_MAX, Forger, JobTopic

MIB = 1 << 20
DELIVERIES = ("at_least_once", "exactly_once")
ROUNDS, ROUND_S = 4, 30  # so many at least, of so many seconds of faults at most; after each everything must settle
SETTLE_S = 240
FAULT_EVERY_S = (0.3, 2.5)
MESSAGES_PER_S = 100
DISK_BYTES = 24 * MIB
LANES, LANE_DEPTH, SLAB, DEVICES, DEVICE, IN_FLIGHT = 2, 2, 1 * MIB, 2, 128 * MIB, 48 * MIB
# What config/README.md says of memory, with the device, which is the process's own here, and what a partition's bomb inflates to.
BASE_BYTES = 30 * MIB
MEMORY_BYTES = (BASE_BYTES + IN_FLIGHT * 3 // 2 + LANES * LANE_DEPTH * 2 * SLAB + DEVICE + PARTITIONS_MAX * BOMB_BYTES)
INSIDE = "GPU_WORKER_STORM_MOUNTS"  # set where this process may mount what nobody else sees
PROGRESS_S = 10
STORED_MAX = 20_000  # blobs; some 16 KiB each


@dataclasses.dataclass
class Topics:
    jobs: str = "storm-jobs"
    results: str = "storm-results"
    dead_letters: str = "storm-dead-letters"
    replies: str = "storm-replies"
    telemetry: str = "storm-telemetry"
    missing: str = "storm-missing"  # on the list of reply topics, and nowhere else


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="tests/hardening/storm", description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev", help="the build folder")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32),
                        help="of the messages and of the faults' order; when each strikes depends on the machine")
    parser.add_argument("--seconds", type=int, default=60, help="how long faults come for, with each delivery")
    parser.add_argument("--delivery", choices=DELIVERIES, help="this one alone; both in turn where it is left out")
    parser.add_argument("--brokers", type=int, default=1, choices=(1, 3), help="nodes of the Apache Kafka")
    parser.add_argument("--rate", type=int, default=MESSAGES_PER_S, help="messages a second")
    parser.add_argument("--without", action="append", default=[], choices=KINDS, metavar="KIND",
                        help="no messages of this kind; several may be named, of " + ", ".join(KINDS))
    parser.add_argument("--no-faults", action="store_true", help="messages alone")
    parser.add_argument("--keep", type=pathlib.Path, help="a new folder for logs and states, to look at afterwards; where the storm "
                        "finds problems, with what the brokers had")
    return parser.parse_args(arguments_of_this)


def say(*words, sep=" "):
    print("storm:", *words, sep=sep, flush=True)


def enter_mounts():
    """With mounts of its own, so that a small disk can be made to fill; True where this machine allows that."""
    if os.environ.get(INSIDE):
        return True
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        say("the disk is not filled: this machine does not let us mount (unshare --mount)")
        return False
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", "--mount", sys.executable, "-B", __file__, *arguments_of_this])


class BlobStore(http.server.ThreadingHTTPServer):
    """What blobs.url asks: GET of what is there, and room for what workers put there."""

    request_queue_size = 128  # four executors ask at once, and those that die leave questions behind

    def __init__(self):
        held = blobs()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                data = held.get(self.path.rpartition("/")[2])
                self.send_response(404 if data is None else 200)
                self.send_header("Content-Length", str(len(data or b"")))
                self.end_headers()
                self.wfile.write(data or b"")

            def do_PUT(self):
                size = int(self.headers["Content-Length"])
                data = self.rfile.read(size)
                is_whole = len(data) == size  # whoever sends it may die on the way
                if is_whole and len(held) < STORED_MAX:
                    held[self.path.rpartition("/")[2]] = data
                self.send_response(201)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *words):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        """Whoever asked has died meanwhile."""


class Sender(threading.Thread):
    """Sends messages steadily until it is told to pause; each comes into the topic once."""

    def __init__(self, servers, topic, messages, rate):
        super().__init__(daemon=True)
        # One request at a time: a new partition takes whichever comes first, and calls the one before it a duplicate.
        self._options = {"log_level": 2, "bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 5,
                         "max.in.flight.requests.per.connection": 1, "topic.metadata.refresh.interval.ms": 1000,
                         "message.max.bytes": BOMB_BYTES + MIB, "message.timeout.ms": 0}
        self.begin_anew()
        self._topic, self._messages, self._rate = topic, messages, rate
        self._may_send, self._is_over = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self.sent = 0
        self.delivered = set()  # numbers of messages
        self.refused = 0

    def begin_anew(self):
        """With producers that know nothing of the topic: another of the same name may be there."""
        self._plain = confluent_kafka.Producer(self._options)
        self._packed = confluent_kafka.Producer(self._options | {"compression.type": "gzip"})

    def _delivered(self, number, error):
        if error is None:
            self.delivered.add(number)
        else:  # the broker's limit, or a broker that died of it: it may be in the topic or not
            self.refused += 1

    def run(self):
        while not self._is_over.is_set():
            self._may_send.wait()
            with self._lock:
                if self._is_over.is_set():
                    return
                message = self._messages.make(self.sent)
                producer = self._packed if message.is_bomb else self._plain
                while True:
                    try:
                        producer.produce(self._topic, message.value, message.key, headers=message.headers,
                                         on_delivery=lambda error, _, number=self.sent: self._delivered(number, error))
                        break
                    except BufferError:
                        producer.poll(0.1)
                self.sent += 1
                producer.poll(0)
            time.sleep(1 / self._rate)

    def resume(self):
        self._may_send.set()

    def pause(self):
        """Returns once everything is in the topic."""
        self._may_send.clear()
        with self._lock:
            for producer in self._plain, self._packed:
                producer.flush()

    def stop(self):
        self._is_over.set()
        self._may_send.set()
        self.join()


class Storm:
    def __init__(self, arguments, delivery, folder, may_mount):
        self.arguments, self.delivery, self.folder = arguments, delivery, folder
        self.chance = random.Random(f"{arguments.seed}/{delivery}")
        self.topics = Topics()
        self.problems = []
        self.sanitizer = sanitizer_of(arguments.build)
        self.disk = folder / "disk"
        self.disk.mkdir()
        if may_mount:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "storm", self.disk], check=True)
        self.clock = folder / "clock"
        self.clock.write_bytes(struct.pack("@q", 0))
        os.environ["KAFKA_AUTO_CREATE"] = "false"
        self.cluster = KafkaCluster(arguments.brokers, BRIEF)
        self.store = BlobStore()
        self._create_topics()
        self.jobs = JobTopic(self.cluster.servers, self.topics.jobs, "storm", arguments.brokers)
        self.brokers = Brokers(self.cluster, self.hanging)
        messages = Messages(arguments.seed, self.topics, arguments.without)
        self.workers = [self._start_worker(name) for name in ("first", "second")]
        self.account = Account(self.cluster.servers, self.topics, PARTITIONS, messages, delivery)
        self.sender = Sender(self.cluster.servers, self.topics.jobs, messages, arguments.rate)
        self.memory = Memory(self.workers)
        self.faults = Faults(
            self.chance, self.brokers, self.workers, self.disk if may_mount else None, self.clock, self.jobs,
            Forger(self.cluster.servers, self.topics.results), self.problems)
        self._changes = []
        self.sender.start()
        self.memory.start()

    def _create_topics(self):
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": self.cluster.servers})
        names = [value for name, value in dataclasses.asdict(self.topics).items() if name != "missing"]
        self.hanging = Hanging(self.cluster.servers, names, PARTITIONS_MAX)
        limits = {self.topics.results: {"max.message.bytes": str(RESULT_BYTES_MAX)}}
        new = [confluent_kafka.admin.NewTopic(name, PARTITIONS, self.arguments.brokers, config=limits.get(name, {}))
               for name in names if name != self.topics.jobs]
        for future in admin.create_topics(new).values():
            future.result(60)

    def _start_worker(self, name):
        programs = self.folder / "programs"
        if not programs.exists():
            programs.mkdir()
            for program in ("tests/containment/poison", "share/gpu-worker/programs/saxpy"):
                (programs / pathlib.Path(program).name).symlink_to((self.arguments.build / program).resolve())
        config = {
            "driver": "cpu", "lanes": LANES, "lane_depth": LANE_DEPTH, "lane_slab_bytes": SLAB, "delivery": self.delivery,
            "ordering": self.chance.choice(["none", "key"]) if name == "first" else self.ordering,
            "cpu_driver": {"devices": DEVICES, "memory_bytes": DEVICE},
            "commit_interval_ms": "200ms", "programs": {"dir": str(programs)}, "state": {"dir": str(self.disk / f"{name}-state")},
            "blobs": {"url": f"http://127.0.0.1:{self.store.server_port}/", "cache_dir": str(self.disk / f"{name}-blobs"),
                      "cache_bytes": "512KiB"},
            "kafka": {"bootstrap_servers": self.brokers.servers, "group": "storm", "instance_id": name,
                      "consumer": {"session.timeout.ms": SESSION_TIMEOUT_S * 1000, "topic.metadata.refresh.interval.ms": 1000}},
            "topics": {"jobs": [self.topics.jobs], "results": self.topics.results, "telemetry": self.topics.telemetry,
                       "dead_letters": self.topics.dead_letters, "reply_to": [self.topics.replies, self.topics.missing]},
            "executors": {"deaths_max": 1000}, "retry": {"base_ms": "10ms", "max_ms": "1s"},
            "limits": {"bytes_in_flight": IN_FLIGHT, "jobs_in_flight": 256, "timeout_ms": "20s", "launches_per_job": 1000,
                       "job_bytes": "16MiB"},
            "residents": {"idle_timeout_ms": "1s"}, "suspend": {"for_ms": "2s", "window_ms": "10s"},
        }
        self.ordering = config["ordering"]
        (self.disk / f"{name}-blobs").mkdir()
        path = self.folder / f"{name}.yaml"
        path.write_text(json.dumps(config, indent=2))
        return Worker(name, self.arguments.build / "bin/gpu-worker", path, DEVICES, self.folder / f"{name}.log",
                      for_faults(self.arguments.build / "tests/wall_clock.so", WALL_CLOCK=str(self.clock)))

    def run(self):
        rounds = max(ROUNDS, -(-self.arguments.seconds // ROUND_S))
        for number in range(rounds):
            if number > 0 and not self.arguments.no_faults:
                self._change_in_calm()
            if not self.problems:
                self._run_round(self.arguments.seconds / rounds)
            if self.problems:
                break
        self._finish()
        return not self.problems

    def _change_in_calm(self):
        """What would take unanswered messages along, or is only to be done while no worker runs."""
        if not self._changes:
            self._changes = [self._create_topic_anew, self._move_offsets_back]
            self.chance.shuffle(self._changes)
        change = self._changes.pop()
        self.faults.counts[change.__name__.strip("_").replace("_", " ")] += 1
        change()

    def _create_topic_anew(self):
        self.jobs.create_anew(self.chance)
        self.account.begin_anew(self.jobs.partitions)
        self.sender.begin_anew()

    def _move_offsets_back(self):
        for worker in self.workers:
            self.faults.judge_end(worker, worker.stop(), (0,), "was asked to stop in calm and ended")
        for partition, first, end in self.jobs.move_offsets_back(self.chance):
            self.account.ask_again(partition, first, end)
        for worker in self.workers:
            worker.start()

    def _run_round(self, seconds):
        ends = time.monotonic() + seconds
        self.sender.resume()
        while time.monotonic() < ends and not self.problems:
            if not self.arguments.no_faults:
                self.faults.strike()
            time.sleep(self.chance.uniform(*FAULT_EVERY_S))
            self._look_at_workers()
        self.sender.pause()
        self.faults.end()
        self._settle()

    def _settle(self):
        """Everything that was sent is answered and committed."""
        deadline, told = time.monotonic() + SETTLE_S, time.monotonic()
        self.account.reopen(self.jobs.partitions)
        while True:
            self._end_hanging()
            unanswered = self.account.unanswered(self.sender.delivered)
            if unanswered == 0 and self._lag() == 0:
                break
            self._look_at_workers()
            if self.problems:
                return
            if time.monotonic() > deadline:
                self.problems.append(f"{unanswered} messages without an answer, {self._lag()} not committed, "
                                     f"{SETTLE_S} s after the last fault")
                break
            if time.monotonic() > told + PROGRESS_S:
                told = time.monotonic()
                say(f"{self.delivery}: settling, {unanswered} messages to be answered, {self._lag()} not committed")
            time.sleep(1)
        self.account.settle()
        self.problems += self.account.problems
        self._look_at_memory()
        say(f"{self.delivery}: {self.sender.sent} messages, {self.faults.counts.total()} faults, "
            f"{sum(worker.deaths().total() for worker in self.workers)} deaths, {self.account.counts['duplicates']} "
            f"duplicates, {self.memory.peak_bytes // MIB} MiB, {len(self.problems)} problems")

    def _lag(self):
        """Messages that are not committed; None where the brokers do not say."""
        try:
            return lag(self.cluster.servers, self._group(), ANSWER_S)
        except (confluent_kafka.KafkaException, AssertionError) as why:
            say(f"{self.delivery}: the brokers do not say what is committed: {why}")
            return None

    def _end_hanging(self):
        """Whoever runs such brokers does so. Where one is just starting, it is asked later."""
        try:
            ended = self.hanging.look()
        except OSError as why:
            say(f"{self.delivery}: a broker does not say what hangs: {why}")
            return
        if ended:
            say(f"{self.delivery}: {ended} transactions ended that the brokers had left hanging")

    def _group(self):
        return GroupOf(self.topics.jobs, "storm")

    def _look_at_workers(self):
        for worker in self.workers:
            self.faults.look_at(worker)
            if b"is unhealthy" in worker.log.read_bytes():
                self.problems.append(f"{worker.name} holds a device for unhealthy")

    def _look_at_memory(self):
        if not self.sanitizer and self.memory.peak_bytes > MEMORY_BYTES:
            self.problems.append(f"an executor had {self.memory.peak_bytes // MIB} MiB; the configuration comes to "
                                 f"{MEMORY_BYTES // MIB}")

    def _look_at_deaths(self, deaths):
        """Crashes and hangs are those of the poison and of mutants that launch for ever; they were convicted. The rest
        is what was injected, and what brokers do to transactions. After other problems some messages were not counted."""
        crashes = sum(count for cause, count in deaths.items() if re.match(r"signal (4|5|6|7|8|11) ", cause))
        poison = sum(count for kind, count in self.account.counts.items() if kind.startswith("poison"))
        if crashes and not poison and not self.problems:
            self.problems.append(f"{crashes} crashes, and no message that may crash a worker")
        strange = {cause for cause in deaths if re.match(r"it ended with code (?!5)", cause) or "internal" in cause}
        if strange:
            self.problems.append(f"executors ended by themselves: {sorted(strange)}")

    def _finish(self):
        self.sender.stop()
        self.faults.end()
        for worker in self.workers:
            status = worker.stop()
            if not self.problems:
                self.faults.judge_end(worker, status, (0,), "was asked to stop in calm and ended")
        self.memory.stop()
        self.account.close()
        if self.problems and self.arguments.keep:
            self.cluster.keep(self.folder / "brokers")
        self.brokers.close()
        self.cluster.down()
        self.store.shutdown()
        deaths = sum((worker.deaths() for worker in self.workers), collections.Counter())
        self._look_at_deaths(deaths)
        counts = self.account.counts
        outcomes = ("ok", "errors", "letters alone", "duplicates")
        say(f"{self.delivery}, ordering {self.ordering}: {self.sender.sent} messages, {self.sender.refused} of them refused by "
            f"the brokers; " + ", ".join(f"{counts[name]} {name}" for name in outcomes) + f", {self.faults.refused_starts} starts refused by the full disk, "
            f"{self.hanging.ended} hanging transactions ended")
        for title, table in (("messages", {kind: n for kind, n in counts.items() if kind not in outcomes}),
                             ("faults", self.faults.counts), ("deaths", deaths)):
            say(f"  {title}: " + (", ".join(f"{n} {name}" for name, n in sorted(table.items())) or "none"))
        say(f"  memory: {self.memory.peak_bytes // MIB} MiB at most, of {MEMORY_BYTES // MIB}")


GroupOf = collections.namedtuple("GroupOf", "jobs group")


@functools.cache
def sanitizer_of(build):
    """The sanitizers that the worker was built with, as its cache says."""
    found = re.search(r"^GPU_WORKER_SANITIZE:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M)
    return found[1] if found else ""


def run_storm(arguments, delivery, may_mount):
    with tempfile.TemporaryDirectory(prefix="gpu-worker-storm-") as name:
        folder = pathlib.Path(name)
        if arguments.keep:
            folder = arguments.keep / delivery
            folder.mkdir(parents=True)
        storm = Storm(arguments, delivery, folder, may_mount)
        try:
            if storm.run():
                return True
            report(arguments, storm)
            return False
        finally:
            for worker in storm.workers:
                worker.kill()
            storm.cluster.down()
            if may_mount:
                subprocess.run(["umount", "--lazy", storm.disk], check=True)


def report(arguments, storm):
    for worker in storm.workers:
        lines = worker.log.read_text(errors="replace").splitlines()[-40:]
        print(f"the end of {worker.name}'s log:", *lines, sep="\n  ")
    shown = storm.problems[:20]
    say(f"{len(storm.problems)} problems", *shown, *(["..."] if len(shown) < len(storm.problems) else []), sep="\n  ")
    options = [f"--seed {arguments.seed}", f"--seconds {arguments.seconds}", f"--delivery {storm.delivery}",
               f"--brokers {arguments.brokers}", f"--rate {arguments.rate}", f"--build {arguments.build}"]
    options += [f"--without '{kind}'" for kind in arguments.without]
    say("again:", "tests/hardening/storm", *options)


def main():
    arguments = parse_arguments()
    may_mount = enter_mounts()
    if sanitizer_of(arguments.build):
        say("memory is not bounded: a sanitizer watches this build")
    deliveries = [arguments.delivery] if arguments.delivery else DELIVERIES
    say(f"seed {arguments.seed}, {arguments.seconds} s of faults for each of {', '.join(deliveries)}")
    return 0 if all([run_storm(arguments, delivery, may_mount) for delivery in deliveries]) else 1


if __name__ == "__main__":
    sys.exit(main())
