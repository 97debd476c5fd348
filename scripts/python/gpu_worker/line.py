"""The jobs of one key that use residents."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from .handles import Static
from .ticket import ATTEMPTS_MAX, Ticket, code_of

WAIT_S = 0.1


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
