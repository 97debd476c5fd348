"""A worker beside the program that uses it, for notebooks, tests and laptops."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import weakref
from collections.abc import Mapping
from typing import Any, Optional, Union

from .client import Client
from .program import Listing, read_listing

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
LOG_LINES = 20
# The worker ends when its standard input ends: after close(), when nobody has the client, or when the process that started it
# ends in any way. Then the folder ($1) goes too, where it has a name; where the worker ends by itself its log is still read.
GUARD = """exec 3<&0
folder=$1; shift
"$@" </dev/null 3<&- & worker=$!
trap 'kill "$worker"; wait "$worker"; status=$?; rm -rf -- ${folder:+"$folder"}; exit "$status"' TERM
(trap - TERM; cat <&3 >/dev/null; kill "$$") 2>/dev/null & watch=$!
wait "$worker"; status=$?
kill "$watch"
exit "$status"
"""

Path = Union[str, "os.PathLike[str]"]


class Worker:
    """A worker, with its configuration, log and blobs in a folder."""

    def __init__(self, binary: Path, config: Mapping[str, Any], servers: Optional[str], folder: Optional[Path]) -> None:
        found = shutil.which(binary)
        if found is None:
            raise FileNotFoundError(f"there is no {binary}: build the worker, and put it on the path or name it (`binary`)")
        self._is_kept = folder is not None
        self._owner = os.getpid()
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="gpu-worker-local-")).absolute()
        self._log = self.folder / "worker.log"
        self._servers = servers
        self._address = self.folder / "broker.address"
        self.config = self.folder / "worker.yaml"
        whole = {"blobs": {"dir": str(self.folder / "blobs")}, **config, **self._broker(config)}
        self.blobs = whole["blobs"].get("dir")
        (self.folder / "blobs").mkdir(parents=True, exist_ok=True)
        _write_yaml(self.config, whole)
        self._binary = found
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", GUARD, "sh", "" if self._is_kept else str(self.folder), found, "run", "--config", str(self.config)],
                stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, "XDG_STATE_HOME": str(self.folder / "state")})
        assert self._process.stdin is not None
        # Nobody has it any more. Popen alone keeps itself, and with it the standard input, until the process has ended.
        weakref.finalize(self, self._process.stdin.close)
        _workers.add(self)

    def _broker(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._servers is None:
            return {"broker": "embedded", "embedded": {"address_file": str(self._address)}}
        kafka = {"group": "local", **config.get("kafka", {}), "bootstrap_servers": self._servers}
        return {"broker": "kafka", "kafka": kafka}

    def address(self) -> str:
        """Waits until its broker listens, and returns the address."""
        if self._servers is not None:
            return self._servers
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._address.exists() or not self._address.read_text().strip():
            self.check()
            if time.monotonic() > deadline:
                raise ConnectionError(f"the worker did not start within {START_TIMEOUT_S} s{self._end_of_log()}")
            time.sleep(0.01)
        return self._address.read_text().strip()

    def programs(self) -> Listing:
        """The programs that it can run."""
        return read_listing(None, [self._binary, "programs", "--json", "--config", str(self.config)])

    def check(self) -> None:
        """Raises if the worker has ended."""
        if os.getpid() != self._owner:
            self._check_from_child()
            return
        status = self._process.poll()
        if status is not None:
            raise ConnectionError(f"the worker ended with status {status}{self._end_of_log()}")

    def _check_from_child(self) -> None:
        """Only the process that started the worker learns how it ended."""
        try:
            os.kill(self._process.pid, 0)
        except ProcessLookupError:
            raise ConnectionError("the worker has ended: it ends with the process that started it, or with its client") from None

    def _end_of_log(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        return "\n  ".join(["; it said:", *lines]) if lines else ""

    def leave_to_parent(self) -> None:
        """In a forked child, which would otherwise keep the worker's standard input open."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def stop(self) -> None:
        if os.getpid() != self._owner:  # a forked child leaves it to its parent
            return
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)  # a session of its own: the guard, and all that the worker started
            self._process.wait()
        if not self._is_kept:
            shutil.rmtree(self.folder, ignore_errors=True)


_workers: weakref.WeakSet[Worker] = weakref.WeakSet()


def _leave_to_parents() -> None:
    for worker in list(_workers):
        worker.leave_to_parent()


os.register_at_fork(after_in_child=_leave_to_parents)


def _write_yaml(path: pathlib.Path, config: Mapping[str, Any]) -> None:
    """Writes one key on each line. JSON values are YAML values, too."""
    lines = ["# Written by gpu_worker.local(). config/README.md has every key."]
    path.write_text("\n".join(lines + [f"{key}: {json.dumps(value)}" for key, value in config.items()]) + "\n")


class LocalClient(Client):
    """A client with a worker of its own, which ends with it."""

    def __init__(self, worker: Worker, **options: Any) -> None:
        self.worker = worker
        super().__init__(worker.address(), **{"blobs": worker.blobs, **options})

    def _list_programs(self) -> Listing:
        return self.worker.programs()

    def check_worker(self) -> None:
        self.worker.check()

    def close(self, wait: bool = True) -> None:
        super().close(wait)
        self.worker.stop()


def local(
    driver: str = "cpu", *, binary: Optional[Path] = None, programs: Optional[Path] = None,
    config: Optional[Mapping[str, Any]] = None, servers: Optional[str] = None, folder: Optional[Path] = None,
    **options: Any,
) -> LocalClient:
    """Starts a worker beside this process, with a broker inside it, and gives a client of it. The worker ends with the
    client, or with this process.

    `driver`    cpu or cuda
    `binary`    the worker; without it the environment's GPU_WORKER, or `gpu-worker` on the path
    `programs`  a folder of programs; without it, those that came with the worker
    `config`    more of the worker's configuration, as config/README.md has it, such as {"ordering": "key"}
    `servers`   a Kafka, for the worker and the client to meet at
    `folder`    where its configuration, log and blobs are left; without it, they go with the worker
    Other options are those of Client.
    """
    whole: dict[str, Any] = {"driver": driver, **(config or {})}
    if programs is not None:
        whole["programs"] = {"dir": str(pathlib.Path(programs).absolute())}
    worker = Worker(binary or os.environ.get("GPU_WORKER", "gpu-worker"), whole, servers, folder)
    try:
        return LocalClient(worker, **options)
    except BaseException:
        worker.stop()
        raise
