"""The workers of a storm, and what befalls them, their brokers, their disk and their clock."""

import collections
import contextlib
import errno
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import threading
import time

from proxy import Proxy
from waiting import wait_until

SESSION_TIMEOUT_S = 6
LONG_FREEZE_S = SESSION_TIMEOUT_S + 2
STOP_TIMEOUT_S = 90
CLOCK_JUMPS_S = (-86400, -3600, -5, 0, 5, 3000)  # brokers refuse what is dated more than an hour ahead
DISK_FULL_S = 3
# 5 and 6: the brokers were away at the end, or for as long as a drain may take; the last: it had just begun.
CLEAN_STOPS = (0, 5, 6, -signal.SIGTERM)
# How a worker ends that is stopped while a job ends its executor, and what the executor says then.
LOST, DEVICE_FAULT = 4, re.compile(r"CUDA_ERROR_")
# How a worker ends that is refused by a full disk (6: its other device had begun), and what a process of it says then.
REFUSED = (1, 6)
NO_ROOM = re.compile(r"No space left on device|the disk of the state file is full")
LAST_WORDS = re.compile(rb"^gpu-worker run: .*", re.M)
NOT_RELOADED, RELOADED = b"not reloaded, nothing has changed", b"the configuration and the programs were read again"
DEATH = re.compile(rb"the executor died: (.*?)(; starting it again.*)?$", re.M)


def executors_of(pid):
    """The executors of a supervisor: its children that have a state file."""
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(child) for child in children if is_executor(int(child))]


def is_executor(pid):
    try:
        return b"--state" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return False


def resident_bytes(pid):
    with contextlib.suppress(OSError, StopIteration):
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) * 1024
    return 0


class Worker:
    """A supervisor that is started again whenever the storm has ended it; all lives write one log."""

    def __init__(self, name, binary, config, devices, log, environment):
        self.name = name
        self._devices = devices
        self.lock = threading.Lock()  # held by the fault that has it
        self.log, self.config = log, config
        self._command = [binary, "run", "--config", config]
        self._environment = environment
        self._process = None
        self._log_begins = 0  # of this life
        self.start()

    def start(self):
        self._log_begins = self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._environment)

    @property
    def pid(self):
        return self._process.pid

    def executors(self):
        return executors_of(self.pid)

    def status(self):
        """None while it runs."""
        return self._process.poll()

    def last_words(self):
        """What the executors of this life said as they ended: the last lines, one for each device. Others may have
        logged since."""
        said = LAST_WORDS.findall(self.log.read_bytes()[self._log_begins:])
        return [line.decode(errors="replace") for line in said[-self._devices:]]

    def kill(self):
        self._process.kill()
        self._process.wait()

    def stop(self):
        self._process.terminate()
        try:
            return self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return f"none within {STOP_TIMEOUT_S} s"

    def count(self, line):
        return self.log.read_bytes().count(line)

    def reload(self, text, line):
        """With another text of the configuration; until there is one more such line."""
        before = self.count(line)
        self.config.write_bytes(text)
        os.kill(self.pid, signal.SIGHUP)
        wait_until(lambda: self.count(line) > before, f"{self.name} says: {line.decode()}")

    def deaths(self):
        """What its executors died of, as the log has it, and how often."""
        causes = (re.sub(rb"\d+ (ms|s)\b", rb"N \1", cause) for cause, _ in DEATH.findall(self.log.read_bytes()))
        return collections.Counter(cause.decode(errors="replace") for cause in causes)


class Memory(threading.Thread):
    """The most memory that an executor has had resident."""

    def __init__(self, workers):
        super().__init__(daemon=True)
        self._workers = workers
        self._is_over = threading.Event()
        self.peak_bytes = 0

    def run(self):
        while not self._is_over.wait(0.1):
            for worker in self._workers:
                self.peak_bytes = max([self.peak_bytes, *map(resident_bytes, worker.executors())])

    def stop(self):
        self._is_over.set()
        self.join()


class Brokers:
    """The nodes, as workers reach them. Where there is one, they do so through a proxy: it lets them in again only once
    what the node's death has left hanging is ended. Where others have replicas, nothing hangs."""

    def __init__(self, cluster, hanging):
        self._cluster, self._hanging = cluster, hanging
        self._proxy = Proxy(cluster.proxy_port, cluster.proxied_port) if cluster.brokers == 1 else None
        self.servers = f"127.0.0.1:{cluster.proxy_port}" if self._proxy else cluster.servers

    def restart(self, chance):
        """Kills one, and starts it again."""
        node = chance.randint(1, self._cluster.brokers)
        self._cluster.kill(node)
        if self._proxy:
            self._proxy.cut()
        time.sleep(chance.uniform(0, 3))
        self._cluster.start(node)
        if self._proxy:
            self._hanging.clear()
            self._proxy.mend()

    def freeze(self, seconds):
        self._cluster.pause()
        time.sleep(seconds)
        self._cluster.resume()

    def close(self):
        if self._proxy:
            self._proxy.close()


class Faults:
    """Deals faults from a shuffled deck, so that each comes before one comes again. What lasts goes on beside the
    next; a worker, the brokers, the disk and the clock suffer one fault at a time."""

    def __init__(self, chance, brokers, workers, disk, clock, jobs, forger, problems):
        self._chance = chance
        self._brokers = brokers
        self._workers = workers
        self._disk = disk  # a small file system to fill; None where there is none
        self._clock = clock  # the file with its seconds off, as wall_clock.c reads it
        self._jobs, self._forger = jobs, forger
        self._brokers_lock, self._disk_lock = threading.Lock(), threading.Lock()
        self._threads = []
        self._deck = []
        self.counts = collections.Counter()
        self.problems = problems  # the storm's
        self.refused_starts = 0  # of workers, by the full disk

    def _cards(self):
        on_worker = [
            self._kill_executor, self._kill_executor, self._kill_supervisor, self._freeze_executor_briefly,
            self._freeze_executor, self._freeze_supervisor, self._freeze_worker, self._stop_worker,
            self._half_write_configuration]
        cards = [(fault, self._chance.choice(self._workers)) for fault in on_worker]
        cards += [(self._kill_broker, None), (self._pause_brokers, None), (self._move_clock, None), (self._add_partitions, None),
                  (self._forge_results, None)]
        cards += [(self._fill_disk, None)] if self._disk else []
        self._chance.shuffle(cards)
        return cards

    def strike(self):
        """One fault; whatever it suffers from is let go later, by itself."""
        if not self._deck:
            self._deck = self._cards()
        fault, worker = self._deck.pop()
        thread = threading.Thread(target=self._suffer, args=(fault, worker, random.Random(self._chance.random())))
        thread.start()
        self._threads.append(thread)

    def _suffer(self, fault, worker, chance):
        self.counts[fault.__name__.strip("_").replace("_", " ")] += 1
        try:
            if worker is None:
                fault(chance)
            else:
                with worker.lock:
                    fault(worker, chance)
        except Exception as failure:  # the storm itself has failed, and must say so
            self.problems.append(f"{fault.__name__}: {failure!r}")

    def end(self):
        """Waits until the last one is over."""
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    # workers

    def look_at(self, worker):
        if not worker.lock.acquire(blocking=False):
            return  # a fault has it
        try:
            self._revive(worker)
        finally:
            worker.lock.release()

    def _revive(self, worker):
        """Nobody ends by themselves, but for whom the full disk refuses: that one is started again, as who runs it does.
        True: an executor of it runs."""
        status = worker.status()
        if status is not None and self.judge_end(worker, status, (), "ended by itself"):
            worker.start()
        return bool(worker.executors())

    def judge_end(self, worker, status, allowed, how):
        """False, and a problem, where a worker that has ended should not have done so."""
        if status in allowed:
            return True
        said = worker.last_words()
        if status in REFUSED and self.counts["fill disk"] and any(map(NO_ROOM.search, said)):
            self.refused_starts += 1
            return True
        self.problems.append(f"{worker.name} {how}, with status {status}, and said: {'; '.join(said) or 'nothing'}")
        return False

    def _kill_executor(self, worker, chance):
        executors = worker.executors()
        if executors:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(executors), signal.SIGKILL)

    def _kill_supervisor(self, worker, chance):
        worker.kill()
        worker.start()

    def _stop_worker(self, worker, chance):
        status = worker.stop()
        has_lost_device = any(map(DEVICE_FAULT.search, worker.last_words()))
        allowed = (*CLEAN_STOPS, LOST) if has_lost_device else CLEAN_STOPS
        self.judge_end(worker, status, allowed, "was asked to stop and ended")
        worker.start()

    def _await_reload(self, worker):
        """Until a life of it has read its configuration again: one that the disk has refused just now ends instead."""
        told, before = None, worker.count(RELOADED)

        def has_reloaded():
            nonlocal told
            if self._revive(worker) and worker.pid != told:  # an executor runs, so that SIGHUP is no end
                told = worker.pid
                os.kill(told, signal.SIGHUP)
            return worker.count(RELOADED) > before

        wait_until(has_reloaded, f"{worker.name} reads its configuration again")

    def _half_write_configuration(self, worker, chance):
        """The half is not taken, and later the whole one is. A full disk would refuse that one, too."""
        whole = worker.config.read_bytes()
        with self._disk_lock:
            self._await_reload(worker)
            worker.reload(whole[:chance.randrange(len(whole))], NOT_RELOADED)
            worker.reload(whole, RELOADED)

    @staticmethod
    def _freeze(pids, seconds):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _freeze_executor_briefly(self, worker, chance):
        self._freeze(worker.executors()[:1], chance.uniform(0.1, 1.5))

    def _freeze_executor(self, worker, chance):
        self._freeze(worker.executors()[-1:], LONG_FREEZE_S)

    def _freeze_supervisor(self, worker, chance):
        self._freeze([worker.pid], chance.uniform(1, LONG_FREEZE_S))

    def _freeze_worker(self, worker, chance):
        self._freeze([worker.pid, *worker.executors()], LONG_FREEZE_S)

    # what they stand on

    def _kill_broker(self, chance):
        with self._brokers_lock:
            self._brokers.restart(chance)

    def _pause_brokers(self, chance):
        with self._brokers_lock:
            self._brokers.freeze(chance.uniform(0.5, SESSION_TIMEOUT_S + 2))

    def _add_partitions(self, chance):
        with self._brokers_lock:
            self._jobs.add_partitions(chance)

    def _forge_results(self, chance):
        self._forger.forge(chance)

    def _fill_disk(self, chance):
        filling = self._disk / "filling"
        with self._disk_lock:
            for _ in range(DISK_FULL_S * 10):  # again and again: what others give back is taken as well
                try:
                    with open(filling, "ab", buffering=0) as file:
                        while True:
                            file.write(b"\0" * 65536)
                except OSError as full:
                    if full.errno != errno.ENOSPC:
                        raise
                time.sleep(0.1)
            filling.unlink()

    def _move_clock(self, chance):
        with open(self._clock, "r+b") as file:
            file.write(struct.pack("@q", chance.choice(CLOCK_JUMPS_S)))
