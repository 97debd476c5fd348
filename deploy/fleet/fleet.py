"""Pods of a fleet on this machine, and what a controller does with them: as many as are wanted, all of one revision."""

import dataclasses
import pathlib
import random
import shutil
import socket
import threading
import time
import urllib.request

import worker_process

STEP_S = 0.1
PROBE_TIMEOUT_S = 1
RESCHEDULE_S = 2  # from the loss of a pod to the start of the next one


@dataclasses.dataclass(frozen=True)
class Revision:
    """What an upgrade changes: a configuration, which names the folder of programs."""

    number: int
    config: pathlib.Path


def reserve_port():
    """A socket at a port where one pod may listen; nobody else is given the port while the socket is open."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


class Pod:
    """A worker with a name, a disk of its own that goes with it, and an address for its probes."""

    def __init__(self, name, slot, revision, binary, folder):
        self.name, self.slot, self.revision = name, slot, revision
        self._state = folder / f"{name}.state"
        self._port = reserve_port()
        self._http = "{}:{}".format(*self._port.getsockname())
        log = folder / f"{name}.{time.monotonic_ns()}.log"
        self._worker = worker_process.Worker(binary, revision.config, log, environment={
            "POD_NAME": name, "POD_STATE": str(self._state), "POD_HTTP": self._http})
        self.started_s = time.monotonic()
        self.ready_s = self.asked_s = None

    def is_ready(self):
        """As its readiness probe sees it."""
        try:
            with urllib.request.urlopen(f"http://{self._http}/readyz", timeout=PROBE_TIMEOUT_S):
                return True
        except OSError:  # it does not listen yet, or is not ready
            return False

    def status(self):
        return self._worker.status()

    def ask_to_stop(self):
        self.asked_s = time.monotonic()
        self._worker.ask_to_stop()

    def lose(self):
        """Ends it as the loss of its machine does: every process at once, and its disk is gone."""
        self._worker.kill_with_executors()
        shutil.rmtree(self._state, ignore_errors=True)

    def print_log(self):
        self._worker.print_log()


class Fleet(threading.Thread):
    """Starts and stops pods until they are what is wanted: `replicas` pods of `revision`. An upgrade takes one pod at a
    time, stops it before it starts its successor (maxSurge 0), and goes on when all are ready. With `stable_names` pods
    have a place each, as in a StatefulSet, and the last ones go first; otherwise each has a new name, as in a
    Deployment, and nobody chooses which go. A pod that is lost is replaced by one of its revision."""

    def __init__(self, make_pod, revision, stable_names, grace_s, say, seed):
        """`make_pod(name, slot, revision)` starts one."""
        super().__init__(daemon=True)
        self._make_pod, self._stable_names, self._grace_s, self._say = make_pod, stable_names, grace_s, say
        self._chance = random.Random(seed)
        self._revisions = {}  # of the places that are kept for one that is not the newest
        self._not_before_s = {}  # places whose pod was lost
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self.pods = {}  # by their place, 0 to replicas - 1
        self.replicas = 0
        self.revision = revision
        self.problems = []
        self.stops_s = []  # how long each took, of those that were asked to
        self.upgrades = []  # (name, seconds to stop, seconds until its successor was ready)
        self._upgrading = None  # (place, name, when it was asked, when it had stopped)

    # for others

    def ready_count(self, revision=None):
        with self._lock:
            return sum(self._serves(pod) and revision in (None, pod.revision) for pod in self.pods.values())

    def is_settled(self):
        """Nothing starts or stops."""
        with self._lock:
            return len(self.pods) == self.replicas and all(map(self._serves, self.pods.values()))

    def lose_one_of(self, names):
        """A pod of these that serves, chosen at random, ends without a warning; its name, or None where none serves."""
        with self._lock:
            serving = [pod for pod in self.pods.values() if self._serves(pod) and pod.name in names]
            if not serving:
                return None
            pod = self._chance.choice(serving)
            pod.lose()
            del self.pods[pod.slot]
            self._revisions[pod.slot] = pod.revision
            self._not_before_s[pod.slot] = time.monotonic() + RESCHEDULE_S
            return pod.name

    def end(self):
        """Ends all pods at once."""
        self._is_over.set()
        if self.is_alive():
            self.join()
        for pod in self.pods.values():
            pod.lose()

    # the controller

    @staticmethod
    def _serves(pod):
        return pod.ready_s is not None and pod.asked_s is None

    def run(self):
        try:
            while not self._is_over.wait(STEP_S):
                with self._lock:
                    self._step()
        except Exception as failure:
            self.problems.append(f"the controller failed: {failure!r}")

    def _step(self):
        for pod in list(self.pods.values()):
            self._look_at(pod)
        for slot in range(self.replicas):
            is_due = time.monotonic() >= self._not_before_s.get(slot, 0)
            if is_due and slot not in self.pods and len(self.pods) < self.replicas:
                self._start(slot)
        serving = [pod for pod in self.pods.values() if pod.asked_s is None]
        if len(serving) > self.replicas:
            self._shrink(serving)
        elif len(serving) == self.replicas and all(pod.ready_s for pod in serving):
            self._upgrade(serving)

    def _look_at(self, pod):
        now_s = time.monotonic()
        status = pod.status()
        if status is not None:
            self._note_end(pod, status)
        elif pod.asked_s is not None and now_s > pod.asked_s + self._grace_s:
            self.problems.append(f"{pod.name} did not stop within its grace period of {self._grace_s} s")
            pod.lose()
        elif pod.ready_s is None and pod.is_ready():
            pod.ready_s = now_s
            self._say(f"{pod.name} (revision {pod.revision.number}) is ready, {now_s - pod.started_s:.1f} s after its start")
            self._note_upgraded(pod)

    def _note_end(self, pod, status):
        if pod.asked_s is None or status != 0:
            self.problems.append(f"{pod.name} ended with status {status}, "
                                 f"{'which nobody asked for' if pod.asked_s is None else 'when it was asked to'}")
            pod.print_log()
        if pod.asked_s is not None:
            took_s = time.monotonic() - pod.asked_s
            self.stops_s.append(took_s)
            self._say(f"{pod.name} (revision {pod.revision.number}) has stopped, {took_s:.1f} s after SIGTERM")
            if self._upgrading and self._upgrading[0] == pod.slot:
                self._upgrading += (took_s, time.monotonic())
        del self.pods[pod.slot]

    def _note_upgraded(self, pod):
        if self._upgrading and self._upgrading[0] == pod.slot:
            _, name, stop_s, stopped_s = self._upgrading
            self.upgrades.append((name, stop_s, pod.ready_s - stopped_s))
            self._upgrading = None

    def _start(self, slot):
        name = f"pod-{slot}" if self._stable_names else f"pod-{self._chance.randrange(16**5):05x}"
        revision = self._revisions.pop(slot, self.revision)
        self.pods[slot] = self._make_pod(name, slot, revision)

    def _shrink(self, serving):
        last_first = sorted(serving, key=lambda pod: -pod.slot)
        if not self._stable_names:
            self._chance.shuffle(last_first)
        for pod in last_first[:len(serving) - self.replicas]:
            pod.ask_to_stop()

    def _upgrade(self, serving):
        old = [pod for pod in serving if pod.revision != self.revision]
        if old and len(self.pods) == self.replicas:
            pod = max(old, key=lambda pod: pod.slot)
            self._upgrading = (pod.slot, pod.name)
            pod.ask_to_stop()
