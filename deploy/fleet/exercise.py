"""A fleet of workers on this machine, without a cluster: pods are processes (gpu-worker run, on CPU devices), the brokers
are a real Apache Kafka, and a scaler acts on lag as KEDA does.

For each delivery the fleet begins at zero pods with a group that has never committed. Steady jobs wake it, a burst scales it
up, and under full load it is upgraded, one pod at a time, to another program and another configuration. Meanwhile a pod is
killed at random, with all its processes and its disk. Then the load goes back to steady and ends, and the fleet goes to zero.
Every job that was sent is accounted for: answered, rightly, once, and by the program and the configuration that it may
have been answered by. The exit status is 0 where all holds."""

import argparse
import collections
import pathlib
import platform
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("tests/flow", "scripts/python", "schemas")]
import confluent_kafka
import confluent_kafka.admin
import worker_process
from kafka_cluster import BRIEF, KafkaCluster
from kafka_topics import create_topics, lag

from account import Account, Events, Watch
from fleet import RESCHEDULE_S, Fleet, Pod, Revision
from load import Load
from scaler import Scaler

DELIVERIES = ("exactly_once", "at_least_once")
DRAIN_TIMEOUT_S = 25
GRACE_S = DRAIN_TIMEOUT_S + 10
LANES = {1: 2, 2: 3}  # of each revision
LAG_THRESHOLD = 100  # messages that are worth one pod
POLL_S, STABILIZATION_S, COOLDOWN_S = 2, 6, 8  # KEDA's and the autoscaler's own: 30, 300, 300
STEP_TIMEOUT_S = 600  # with what must happen: it ends an exercise that hangs
STEADY_ANSWERS = 50  # before the burst comes

Topics = collections.namedtuple("Topics", "group jobs results_1 results_2 dead_letters telemetry")


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="deploy/exercise", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev", help="the build folder (%(default)s)")
    parser.add_argument("--delivery", choices=DELIVERIES, help="this one alone; both in turn where it is left out")
    parser.add_argument("--pods", type=int, default=6, help="as many as the fleet may have (%(default)s)")
    parser.add_argument("--brokers", type=int, default=3, help="nodes of the Apache Kafka (%(default)s)")
    parser.add_argument("--devices", type=int, default=2, help="CPU devices of each pod (%(default)s)")
    parser.add_argument("--names", choices=("stable", "new"), default="stable",
                        help="stable: a pod that is started again has the name that it had, as in a StatefulSet; new: it has "
                             "another one, as in a Deployment (%(default)s)")
    parser.add_argument("--work-ms", type=int, default=100, help="how long each job keeps a lane (%(default)s)")
    parser.add_argument("--rate", type=int, default=20, help="jobs a second of the steady load (%(default)s)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32),
                        help="of who is killed and when; drawn where it is left out")
    parser.add_argument("--keep", type=pathlib.Path, help="a new folder for logs and states, to look at afterwards")
    arguments = parser.parse_args()
    if arguments.pods < 2:
        parser.error("--pods: a rolling upgrade takes two pods or more")
    if not (arguments.build / "bin/gpu-worker").exists():
        parser.error(f"--build: {arguments.build} has no bin/gpu-worker; build it first, see README.md")
    return arguments


began_s = time.monotonic()


def say(*words):
    print(f"{time.monotonic() - began_s:6.1f} s ", *words, flush=True)


class Failure(Exception):
    """What ends an exercise."""


def build_program(folder, number):
    """The folder of programs of one revision."""
    source = ROOT / "deploy/fleet/stamp"
    programs = folder / f"programs-{number}"
    (programs / "stamp").mkdir(parents=True)
    (programs / "stamp/program.yaml").write_bytes((source / "program.yaml").read_bytes())
    subprocess.run(["cc", "-O2", "-fPIC", "-shared", f"-DREVISION={number}", "-I", ROOT / "config/programs",
                    "-o", programs / "stamp/stamp.so", source / "stamp.c"], check=True)
    return programs


class Exercise:
    """One delivery's."""

    def __init__(self, arguments, servers, folder, delivery):
        self.arguments, self.servers, self.folder, self.delivery = arguments, servers, folder, delivery
        self.chance = random.Random(f"{arguments.seed}/{delivery}")
        self.partitions = arguments.pods * arguments.devices  # more pods would have nothing to do
        self.topics = self._create_topics()
        self.revisions = {number: Revision(number, self._write_config(number)) for number in LANES}
        self.steps = []  # (what was done, how long it took), for the end
        self.watch = Watch(servers, (self.topics.results_1, self.topics.results_2), self.topics.dead_letters, self.partitions)
        self.load = Load(servers, self.topics.jobs, arguments.work_ms, self.watch.answered)
        self.fleet = Fleet(self._make_pod, self.revisions[1], arguments.names == "stable", GRACE_S, say,
                           f"{arguments.seed}/{delivery}")
        self.scaler = threading.Thread(target=self._scale, daemon=True)
        self.is_over = threading.Event()

    def _create_topics(self):
        mark = uuid.uuid4().hex[:8]
        topics = Topics(*(f"{name.replace('_', '-')}-{mark}" for name in Topics._fields))
        create_topics(self.servers, topics[1:], self.partitions, self.arguments.brokers)
        return topics

    def _write_config(self, number):
        """What a ConfigMap would hold: the same for all pods, which differ by their environment."""
        path = self.folder / f"worker-{number}.yaml"
        worker_process.write_config(path, {
            "driver": "cpu", "cpu_driver": {"devices": self.arguments.devices, "memory_bytes": "64MiB"},
            "delivery": self.delivery, "drain_timeout_ms": f"{DRAIN_TIMEOUT_S}s",
            "lanes": LANES[number], "lane_slab_bytes": "256KiB",
            "programs": {"dir": str(build_program(self.folder, number))}, "state": {"dir": "${POD_STATE}"},
            "http": {"listen": "${POD_HTTP}"},
            "limits": {"jobs_in_flight": 32, "job_bytes": "1MiB", "bytes_in_flight": "16MiB"},
            "kafka": {"bootstrap_servers": self.servers, "group": self.topics.group, "instance_id": "${POD_NAME}"},
            "topics": {"jobs": [self.topics.jobs], "results": self.topics[1 + number],
                       "dead_letters": self.topics.dead_letters, "telemetry": self.topics.telemetry},
        })
        return path

    def _make_pod(self, name, slot, revision):
        return Pod(name, slot, revision, self.arguments.build / "bin/gpu-worker", self.folder)

    # the scaler

    def _scale(self):
        scaler = Scaler(LAG_THRESHOLD, self.arguments.pods, STABILIZATION_S, COOLDOWN_S)
        while not self.is_over.wait(POLL_S):
            try:
                messages = lag(self.servers, self.topics)
            except confluent_kafka.KafkaException as why:
                say(f"scaler: the lag is not known: {why}")
                continue
            replicas = scaler.decide(time.monotonic(), messages, self.fleet.replicas)
            if replicas != self.fleet.replicas:
                say(f"scaler: lag {messages}, {self.fleet.replicas} -> {replicas} pods")
                self.fleet.replicas = replicas

    # what all steps are made of

    def _wait_until(self, condition, what):
        deadline_s = time.monotonic() + STEP_TIMEOUT_S
        while not condition():
            if self.fleet.problems or self.load.problems:
                raise Failure(f"while waiting until {what}")
            if time.monotonic() > deadline_s:
                raise Failure(f"not within {STEP_TIMEOUT_S} s: {what}")
            time.sleep(0.05)

    def _note(self, what, seconds):
        self.steps.append((what, seconds))
        say(f"{what}: {seconds:.1f} s")

    # the steps

    def run(self):
        self.watch.start()
        self.load.start()
        self.fleet.start()
        self.scaler.start()
        self._wake()
        self._burst()
        events = self._upgrade()
        self._calm_down()
        self._go_to_zero()
        return self._account(events)

    def _wake(self):
        say(f"{self.delivery}: no pods, a group that has never committed; {self.arguments.rate} jobs a second begin")
        asked_s = time.monotonic()
        self.load.set(self.arguments.rate)
        self._wait_until(self.watch.answered, "the first job is answered")
        self._note("0 to 1: from the first job to the first result", time.monotonic() - asked_s)
        self._wait_until(lambda: self.watch.answered() >= STEADY_ANSWERS, f"{STEADY_ANSWERS} jobs are answered")

    def _burst(self):
        pods = self.arguments.pods
        backlog = LAG_THRESHOLD * pods * 3 // 2
        say(f"a burst: {backlog} jobs wait from now on")
        asked_s = time.monotonic()
        self.load.set(self.arguments.rate, backlog)
        self._wait_until(lambda: self.fleet.ready_count() == pods, f"{pods} pods are ready")
        self._note(f"1 to {pods}: from the burst to {pods} pods that are ready", time.monotonic() - asked_s)
        answered = self.watch.answered()
        self._wait_until(lambda: self.watch.answered() >= answered + pods * 30, "all are at work")

    def _upgrade(self):
        pods = self.arguments.pods
        lose_after = self.chance.randrange(1, pods)
        say(f"upgrade: the program answers 2 instead of 1, lanes {LANES[1]} -> {LANES[2]}, another topic of results; "
            f"after {lose_after} of {pods} pods one will be lost")
        began_s, began_at = time.monotonic(), time.time()
        self.fleet.revision = self.revisions[2]
        self._wait_until(lambda: self.fleet.ready_count(self.revisions[2]) >= lose_after, f"{lose_after} pods are upgraded")
        lost_at, partitions = self._lose_a_pod()
        self._wait_until(lambda: self.fleet.ready_count(self.revisions[2]) == pods, "all pods are upgraded")
        for name, stop_s, start_s in self.fleet.upgrades:
            self.steps.append((f"upgrade of {name}: stop {stop_s:.1f} s, start {start_s:.1f} s", stop_s + start_s))
        self._note(f"upgrade of {pods} pods, one of them lost meanwhile", time.monotonic() - began_s)
        return Events(began_at, time.time(), lost_at, partitions)

    def _partitions_of(self):
        """The partitions of each pod."""
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": self.servers})
        group = admin.describe_consumer_groups([self.topics.group], request_timeout=30)[self.topics.group].result()
        held = collections.defaultdict(set)
        for member in group.members:
            name = member.group_instance_id.rpartition("-gpu")[0]
            held[name] |= {place.partition for place in member.assignment.topic_partitions}
        return held

    def _lose_a_pod(self):
        """One that is at work."""
        held, lost = {}, []

        def is_lost():
            held.clear()
            held.update(self._partitions_of())
            lost_at, lost_s = time.time(), time.monotonic()
            name = self.fleet.lose_one_of({name for name, partitions in held.items() if partitions})
            lost[:] = [name, lost_at, lost_s]
            return name is not None
        self._wait_until(is_lost, "a pod that has partitions is lost")
        name, lost_at, lost_s = lost
        partitions = held[name]
        say(f"{name} is lost: killed with its executors and its disk; it had {len(partitions)} partitions, and the next pod "
            f"starts in {RESCHEDULE_S} s")
        threading.Thread(target=self._time_takeover, args=(name, partitions, lost_at, lost_s), daemon=True).start()
        return lost_at, partitions

    def _time_takeover(self, name, partitions, lost_at, lost_s):
        def is_taken_over():
            return partitions <= {answer.partition for _, answer in self.watch.all() if answer.made_at > lost_at + 0.5}
        while not is_taken_over() and not self.is_over.is_set():
            time.sleep(0.1)
        self._note(f"{name} was lost: until results came from each of its {len(partitions)} partitions",
                   time.monotonic() - lost_s)

    def _calm_down(self):
        pods = self.arguments.pods
        say("the burst is over")
        calm_s = time.monotonic()
        self.load.set(self.arguments.rate)
        self._wait_until(lambda: self.fleet.replicas < pods, "the scaler wants fewer pods")
        began_at = time.time()
        self._wait_until(lambda: self.fleet.replicas == 1 and self.fleet.is_settled(), "one pod is left")
        self._note(f"{pods} to 1: from the end of the burst", time.monotonic() - calm_s)
        sent_until = len(self.load.sent_at)
        self._wait_until(lambda: self.watch.answered() >= sent_until, "the pod that is left answers for all")
        wait_s, number = max((answer.made_at - self.load.sent_at[number], number) for number, answer in self.watch.all()
                             if self.load.sent_at[number] >= began_at)
        say(f"job-{number}, sent at {time.strftime('%H:%M:%S', time.gmtime(self.load.sent_at[number]))}, waited longest")
        self._note(f"{pods} to 1: longest that a job waited for its result meanwhile", wait_s)

    def _go_to_zero(self):
        self.load.end()
        ended_s = time.monotonic()
        say(f"the load ends after {len(self.load.sent_at)} jobs")
        self._wait_until(lambda: self.watch.answered() >= len(self.load.sent_at), "every job is answered")
        self._wait_until(lambda: self.fleet.replicas == 0 and self.fleet.is_settled(), "no pod is left")
        self._note("1 to 0: from the last job", time.monotonic() - ended_s)

    # the account

    def _account(self, events):
        self.watch.end()  # no pod writes any more
        account = Account(self.load.sent_at, self.watch, events, self.delivery == "exactly_once",
                          {1: self.topics.results_1, 2: self.topics.results_2})
        uncommitted = lag(self.servers, self.topics)
        self._print_summary(account, uncommitted)
        return account.problems + ([f"{uncommitted} messages are not committed"] if uncommitted else [])

    def _print_summary(self, account, uncommitted):
        counts = account.counts
        print(f"\n{self.delivery}, {self.arguments.pods} pods of {self.arguments.devices} devices, names {self.arguments.names}")
        print("  " + ", ".join(f"{counts[what]} {what.replace('_', ' ')}" for what in
                               ("sent", "lost", "duplicated", "failed", "dead_letters")) + f", {uncommitted} not committed")
        print(f"  answered by revision 1: {counts['revision 1']}, by revision 2: {counts['revision 2']}")
        print(f"  slowest of {len(self.fleet.stops_s)} stops: {max(self.fleet.stops_s):.1f} s of the {GRACE_S} s of grace")
        width = max(len(what) for what, _ in self.steps)
        for what, seconds in self.steps:
            print(f"  {what:{width}}  {seconds:6.1f} s")
        print(flush=True)

    def end(self):
        self.is_over.set()
        self.load.set(0)
        self.fleet.end()
        self.load.end()
        self.watch.end()


def run_exercise(arguments, servers, folder, delivery):
    """What went wrong; nothing where all went well."""
    exercise = Exercise(arguments, servers, folder, delivery)
    try:
        return exercise.run()
    except Failure as failure:
        for pod in exercise.fleet.pods.values():
            pod.print_log()
        return [str(failure), *exercise.fleet.problems, *exercise.load.problems]
    finally:
        exercise.end()


ENDING_SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP


def on_signal(number, frame):
    """Once: what ends everything must not be interrupted itself."""
    for each in ENDING_SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def main():
    arguments = parse_arguments()
    for number in ENDING_SIGNALS:
        signal.signal(number, on_signal)
    version = subprocess.run([arguments.build / "bin/gpu-worker", "version"], check=True, capture_output=True, text=True)
    say(f"{version.stdout.splitlines()[0]}, {platform.system()} {platform.machine()}, {time.strftime('%Y-%m-%d', time.gmtime())}, "
        f"seed {arguments.seed}")
    cluster, problems = KafkaCluster(arguments.brokers, BRIEF), []
    try:
        for delivery in [arguments.delivery] if arguments.delivery else DELIVERIES:
            with tempfile.TemporaryDirectory(prefix="gpu-worker-fleet-") as name:
                folder = pathlib.Path(name)
                if arguments.keep:
                    folder = arguments.keep / delivery
                    folder.mkdir(parents=True)
                problems += [f"{delivery}: {problem}" for problem in
                             run_exercise(arguments, cluster.servers, folder, delivery)]
    finally:
        cluster.down()
    print(*problems, sep="\n")
    say("no job was lost, duplicated or failed" if not problems else "problems: see above")
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("exercise: interrupted; all that it started has ended")
