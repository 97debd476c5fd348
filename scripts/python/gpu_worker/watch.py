"""What long jobs show of themselves while they run, for whoever follows them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import dataclasses
import threading
import weakref
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Optional, Protocol

import numpy

from .datatypes import Array


@dataclasses.dataclass(frozen=True, eq=False)
class Progress:
    """How far a long job is. `rounds` have run in this `attempt`, and `live` instances are not done (of a single job 0
    or 1). `arrays` are the outputs that the job asked to show, by name, as in its result; `shown["loss"]` is one of
    them."""

    attempt: int
    rounds: int
    live: int
    arrays: dict[str, Array]

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]


class Newest:
    """The newest that a job has shown. An older one that nobody has read is forgotten."""

    def __init__(self) -> None:
        self.shown: Optional[Progress] = None
        self._id = ""
        self._lock = threading.Lock()
        self._followers: weakref.WeakSet[Following] = weakref.WeakSet()

    def after_fork(self) -> None:
        """Threads that the child lacks may have held the locks."""
        self._lock = threading.Lock()
        for follower in list(self._followers):
            follower.after_fork()

    def put(self, id: str, shown: Progress) -> None:
        """What its message of this id shows. A worker that has lost the job may still show what is older."""
        last = self.shown
        is_old = last is not None and self._id == id and (shown.attempt, shown.rounds) <= (last.attempt, last.rounds)
        if not is_old:
            self.shown, self._id = shown, id
            self.tell()

    def tell(self) -> None:
        """Wakes who follows it."""
        with self._lock:
            followers = list(self._followers)
        for follower in followers:
            follower.wake()

    def add(self, follower: Following) -> None:
        with self._lock:
            self._followers.add(follower)


class Followed(Protocol):
    """A message that somebody follows: of so many rows of a map, 0 for a single job of it, None outside of a map."""

    @property
    def newest(self) -> Newest: ...

    @property
    def rows(self) -> Optional[int]: ...

    def done(self) -> bool: ...


class Following(Iterator[Progress], AsyncIterator[Progress]):
    """Waits for what is newer than what it gave last, and ends when all is answered: `for`, and `async for`. A thread
    or a task has one of its own."""

    def __init__(self, messages: Sequence[Followed], timeout: Optional[float]) -> None:
        self._messages = messages
        self._timeout = timeout
        self._last: list[tuple[Optional[Progress], bool]] = [(None, False)] * len(messages)
        self._news = threading.Event()
        self._waiter: Optional[asyncio.Future[None]] = None
        for message in messages:
            message.newest.add(self)

    def after_fork(self) -> None:
        self._news, self._waiter = threading.Event(), None

    def wake(self) -> None:
        """From any thread."""
        self._news.set()
        waiter = self._waiter
        if waiter is not None:
            with contextlib.suppress(RuntimeError):  # its loop was closed
                waiter.get_loop().call_soon_threadsafe(_end, waiter)

    def _look(self) -> Optional[Progress]:
        """What is new. An answered message counts as news only beside others that are not."""
        now = [(message.done(), message.newest.shown) for message in self._messages]
        found = [(shown, is_done) for is_done, shown in now]
        is_over = all(is_done for _, is_done in found)
        is_new = any(shown is not last for (shown, _), (last, _) in zip(found, self._last))
        is_new |= not is_over and found != self._last
        self._last = found
        return self._sum(found) if is_new and any(shown is not None for shown, _ in found) else None

    def _is_over(self) -> bool:
        return all(is_done for _, is_done in self._last)

    def _sum(self, found: Sequence[tuple[Optional[Progress], bool]]) -> Progress:
        first = found[0][0]
        if self._messages[0].rows is None and first is not None:
            return first
        live = sum(0 if is_done else message.rows or 1 if shown is None else shown.live
                   for message, (shown, is_done) in zip(self._messages, found))
        have = [shown for shown, _ in found if shown is not None]
        return Progress(max(shown.attempt for shown in have), max(shown.rounds for shown in have), live,
                        self._stack(have) if len(have) == len(found) else {})

    def _stack(self, have: Sequence[Progress]) -> dict[str, Array]:
        """The rows of all messages."""
        parts = [{name: array if message.rows else array[numpy.newaxis] for name, array in shown.arrays.items()}
                 for message, shown in zip(self._messages, have)]
        return {name: numpy.concatenate([part[name] for part in parts]) for name in parts[0]}

    def __iter__(self) -> Following:
        return self

    def __next__(self) -> Progress:
        while True:
            self._news.clear()
            shown = self._look()
            if shown is not None:
                return shown
            if self._is_over():
                raise StopIteration
            if not self._news.wait(self._timeout):
                raise concurrent.futures.TimeoutError

    def __aiter__(self) -> Following:
        return self

    async def __anext__(self) -> Progress:
        while True:
            self._waiter = waiter = asyncio.get_running_loop().create_future()
            shown = self._look()
            if shown is not None:
                return shown
            if self._is_over():
                raise StopAsyncIteration
            await asyncio.wait_for(waiter, self._timeout)


def _end(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
