"""Jobs under way, residents, and the lines in which the jobs of one key that use these keep their order."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Optional, Protocol

import numpy
import numpy.typing

from .answer import Expected
from .datatypes import little_endian
from .futures import Future
from .handles import Kept, Static
from .job import Buffer, Job, describe_array

WAIT_S = 0.1
ATTEMPTS_MAX = 5  # sends of one job after `static_missing` or `resident_gone`


class Resident(Kept):
    """A buffer on the device that jobs change, for the jobs of one key; as a `with` block it ends when they are answered.

    After a worker has lost it, the client makes it again where it knows what it held: what it was made from while no job
    has changed it, or what the last job that changed it gave back as a whole. Else its jobs fail with `resident_gone`,
    and `seed()` says what the next one begins from. Made by `Client.resident()`.
    """

    def __init__(self, line: Line, label: str, array: numpy.typing.ArrayLike, each: bool = False) -> None:
        super().__init__(array)
        self._sent: Buffer = self.described
        if each:  # array jobs name the part of one instance
            self._sent = {**describe_array(numpy.asarray(array)[0]), "each": True}
        self._label = label
        self._line = line
        self._renew()

    def _renew(self) -> None:
        self.name = f"{self._label}.{self._line.draw()}"
        self._generation = 0  # after the last of its jobs that was answered well
        self._content_generation = 0  # when it held `_content`
        self._is_sown = False  # a job that makes it is on its way, or was answered

    @property
    def line(self) -> Line:
        return self._line

    @property
    def sent(self) -> Buffer:
        return dict(self._sent)

    def seed(self, array: numpy.typing.ArrayLike) -> None:
        """The next job begins with this array. Raises RuntimeError while jobs are under way."""
        if describe_array(array) != self._described:
            raise ValueError(f"resident {self._label} is {self._described}, and not {describe_array(array)}")
        with self._line.idle():
            self._content = little_endian(array).tobytes()
            self._renew()

    def __enter__(self) -> Resident:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self._line.wait()

    # The line calls these, under its lock.

    def is_known(self) -> bool:
        return self._content_generation == self._generation

    def lose(self) -> None:
        """The next job creates it again."""
        self._is_sown = False

    def buffer(self) -> Buffer:
        named = {**self._sent, "resident": self.name}
        if self._is_sown:
            return named
        self._is_sown = True
        return {**named, "init": {"data": self._content}}

    def note(self, generation: int, whole: Optional[bytes]) -> None:
        """A job succeeded. It left this generation; `whole` is the content, if the job read all of it back."""
        if generation < self._generation:
            return
        self._generation = generation
        if whole is not None:
            self._content, self._content_generation = whole, generation


@dataclasses.dataclass(eq=False)
class Ticket:
    """One job under way, from the call that sends it to its answer."""

    future: Future
    job: Job  # with handles among its buffers
    key: Optional[bytes]
    expected: Expected
    size: int  # about what it holds in memory, in bytes
    line: Optional[Line] = None
    partition: Optional[int] = None  # None: the brokers' partitioner decides
    source: Optional[str] = None  # "topic/partition/offset" of its message; None until the brokers have said it
    place: int = 0  # in its line
    attempts: int = 0

    @property
    def source_partition(self) -> int:
        return int((self.source or "").split("/")[-2])

    def handles(self, kind: type[Any]) -> list[Any]:
        return [buffer for buffer in self.job["buffers"].values() if isinstance(buffer, kind)]

    @property
    def statics(self) -> list[Static]:
        return self.handles(Static)

    @property
    def residents(self) -> list[Resident]:
        return list(dict.fromkeys(self.handles(Resident)))

    def note_residents(self, result: Mapping[str, Any]) -> None:
        """What a good answer says of them."""
        outputs = {output["name"]: output for output in result["outputs"]}
        for name, resident in self.job["buffers"].items():
            if not isinstance(resident, Resident) or resident.name not in result.get("residents", {}):
                continue
            whole = next((outputs[output.get("as", name)].get("data") for output in self.job["outputs"]
                          if output["buffer"] == name and not {"offset", "bytes"} & output.keys()), None)
            resident.note(result["residents"][resident.name], whole)


def code_of(result: Mapping[str, Any]) -> str:
    """The error's; "" where there is none."""
    code: str = result["error"]["code"] if "error" in result else ""
    return code


class Sender(Protocol):
    """What a line needs from its client."""

    def draw(self) -> str: ...

    def dispatch(self, ticket: Ticket) -> None: ...

    def finish(self, ticket: Ticket, result: Mapping[str, Any]) -> None: ...

    def fail(self, ticket: Ticket, failure: BaseException) -> None: ...

    def check(self) -> None: ...


class Line:
    """Jobs that a worker runs in the order in which they were sent. When residents of theirs are gone, those on their way
    are waited for, and the ones that found them gone are sent again before any new one: the order stays.

    Threads: any; the client's reader alone calls answered() and dropped()."""

    def __init__(self, client: Sender, key: bytes) -> None:
        self.key = key
        self._client = client
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._is_idle = threading.Condition(self._lock)
        self._places = itertools.count()
        self._in_flight = 0
        self._gone: list[tuple[Ticket, Mapping[str, Any]]] = []
        self._held: deque[Ticket] = deque()
        self._brought: set[str] = set()  # digests of statics whose bytes a job of this line has brought
        self.draw: Callable[[], str] = client.draw

    def brings(self, static: Static) -> bool:
        """Whether the job must carry the static's bytes. A job of a line cannot be sent again alone."""
        is_first = static.digest not in self._brought
        self._brought.add(static.digest)
        return is_first

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise RuntimeError("residents belong to the process that made them: make others in the child")

    def submit(self, ticket: Ticket) -> None:
        self._check_process()
        with self._lock:
            ticket.place = next(self._places)
            if self._gone:
                self._held.append(ticket)
            else:
                self._send(ticket)

    def _send(self, ticket: Ticket) -> None:
        self._client.dispatch(ticket)
        self._in_flight += 1

    def _send_again(self, ticket: Ticket) -> None:
        """What cannot be sent, because it is too large now, fails alone."""
        try:
            self._send(ticket)
        except Exception as failure:
            self._client.fail(ticket, failure)

    def answered(self, ticket: Ticket, result: Mapping[str, Any]) -> None:
        with self._lock:
            self._in_flight -= 1
            if code_of(result) == "resident_gone" and ticket.attempts < ATTEMPTS_MAX:
                self._gone.append((ticket, result))
            else:
                if result["status"] == "ok":
                    ticket.note_residents(result)
                self._client.finish(ticket, result)
            self._go_on()

    def dropped(self) -> None:
        """One of its jobs gets no answer."""
        with self._lock:
            self._in_flight -= 1
            self._go_on()

    def _go_on(self) -> None:
        if self._gone and self._in_flight == 0:
            self._recover()
        if self._in_flight == 0 and not self._held:
            self._is_idle.notify_all()

    def _recover(self) -> None:
        """Sends the jobs again that found their residents gone. Jobs whose residents nobody can seed fail."""
        gone, self._gone = sorted(self._gone, key=lambda one: one[0].place), []  # answers may come in another order
        self._brought.clear()
        for resident in {resident: None for ticket, _ in gone for resident in ticket.residents}:
            if resident.is_known():
                resident.lose()
        for ticket, result in gone:
            if any(resident.is_known() for resident in ticket.residents):
                self._send_again(ticket)
            else:
                self._client.finish(ticket, result)
        while self._held:
            self._send_again(self._held.popleft())

    @contextlib.contextmanager
    def idle(self) -> Iterator[None]:
        """While the block runs, no job is under way and none is sent."""
        self._check_process()
        with self._lock:
            if self._in_flight or self._held:
                raise RuntimeError("jobs of its key are under way: wait for their results first")
            yield

    def wait(self) -> None:
        """Waits until all of its jobs are answered. In a forked child none is its own."""
        if os.getpid() != self._process:
            return
        with self._lock:
            while self._in_flight or self._held:
                self._is_idle.wait(WAIT_S)
                self._client.check()
