"""Futures of jobs: a concurrent.futures.Future whose result is the job's arrays."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Optional, Union

import numpy

from .datatypes import Array
from .result import Ends, JobFailed, ends
from .watch import Following, Newest

Arrays = dict[str, Array]

LOGGER = logging.getLogger("gpu_worker")
FORKED = "the job was sent before a fork, and the parent gets its answer: send it in the child"


def bare(failure: BaseException) -> BaseException:
    """The error of a future, without tracebacks, which the logger gets. Their frames have the client: who keeps the error
    would keep its threads and connections."""
    LOGGER.debug("%s", failure, exc_info=failure)
    found, left = set(), [failure]
    while left:
        one = left.pop()
        found.add(id(one))
        one.__traceback__ = None
        left += [other for other in (one.__cause__, one.__context__) if other is not None and id(other) not in found]
    return failure


class _Ours(concurrent.futures.Future[Arrays]):
    """A future that fails in a forked child, because the answer goes to the parent: whoever waits there would wait for ever."""

    def __init__(self) -> None:
        super().__init__()
        _futures.add(self)

    def _after_fork(self) -> None:
        """Threads that the child lacks may have held the lock, or wait. What is called when it is done is the parent's."""
        self._condition = threading.Condition()
        self._waiters.clear()
        self._done_callbacks: list[Any] = []
        if self._state in ("PENDING", "RUNNING"):
            self._exception = RuntimeError(FORKED)
            self._state = "FINISHED"


_futures: weakref.WeakSet[_Ours] = weakref.WeakSet()


def _leave_to_parents() -> None:
    for future in list(_futures):
        future._after_fork()


os.register_at_fork(after_in_child=_leave_to_parents)


class Future(_Ours):
    """One job. `name` is the sender's, and `id` the one that the client drew for the message. When it is done, `answer`
    is the whole result, with telemetry and worker. If the client has a control topic, `cancel()` also tells the
    workers, and `stop()` ends a long job."""

    def __init__(self, name: str, teller: Callable[[], Optional[Callable[[Future, str], bool]]] = lambda: None) -> None:
        super().__init__()
        self.name = name
        self.id = ""
        self.answer: Optional[dict[str, Any]] = None
        self._teller = teller  # a weak reference: who keeps an answer does not keep the client
        self._newest: Optional[Newest] = None  # what it shows, where anybody hears of it
        self._array: Optional[Future] = None  # whose row it is
        self._instance: Optional[int] = None  # of that array

    def _after_fork(self) -> None:
        super()._after_fork()
        if self._newest is not None:
            self._newest.after_fork()

    def watch(self) -> None:
        """For the client: the job shows how far it is."""
        newest = self._newest = Newest()
        self.add_done_callback(lambda _: newest.tell())

    def progress(self, timeout: Optional[float] = None) -> Following:
        """Yields what the long job shows of itself while it runs: each time what is newest, once it is newer than the
        last. Ends when the job is answered; result() says how. With `async for` it waits in a coroutine. Raises
        TimeoutError if nothing newer comes in time, and ValueError if the job asks for no progress, or its client has
        no topic of it."""
        return Following([_Message(self, None)], timeout)

    def cancel(self) -> bool:
        was_cancelled = self.cancelled()
        is_cancelled = super().cancel()
        if is_cancelled and not was_cancelled:
            self._tell("cancel")
        return is_cancelled

    def stop(self) -> bool:
        """Tells the workers to end the long job: it is answered with the outputs that it has after its rounds under
        way. If it has not begun, it fails with `cancelled`. False, and nothing is told, if it is answered or not sent
        yet, and of one row of an array. Raises ValueError if the client has no control topic."""
        return not self.done() and self._tell("stop")

    def _tell(self, action: str) -> bool:
        tell = self._teller()
        return tell is not None and tell(self, action)

    def _ends(self) -> Optional[Ends]:
        return None if self.answer is None else ends(self.answer, self._instance)

    @property
    def rounds(self) -> Union[None, int, Array]:
        """The round after which the long job ended; of an array job that of each instance. None of any other job, of
        one that failed, and while there is no answer."""
        found = self._ends()
        return None if found is None else found.rounds

    @property
    def ended(self) -> Union[None, str, Array]:
        """What ended the long job: `until`, `repeat`, `time` or `stop`; otherwise as `rounds`."""
        found = self._ends()
        return None if found is None else found.ended


@dataclasses.dataclass(frozen=True)
class _Message:
    """One that somebody follows."""

    future: Future
    rows: Optional[int]

    @property
    def newest(self) -> Newest:
        if self.future._newest is None:
            why = "it is one row of an array: follow the map" if self.future._array is not None else (
                "it takes a job with `progress`, and a client with `progress`, the workers' topics.progress")
            raise ValueError(f"{self.future.name} shows nothing: {why}")
        return self.future._newest

    def done(self) -> bool:
        return self.future.done()


@dataclasses.dataclass(frozen=True)
class Sent:
    """A job of a map(): of one row, or an array whose instances are rows with these names."""

    future: Future
    names: Optional[Sequence[str]] = None

    def rows(self) -> list[Future]:
        """A future for each row, which is done when the job is."""
        if self.names is None:
            return [self.future]
        rows = [Future(name) for name in self.names]
        for instance, row in enumerate(rows):
            row._array, row._instance = self.future, instance
        self.future.add_done_callback(lambda _: self._settle(rows))
        return rows

    def _settle(self, rows: list[Future]) -> None:
        is_cancelled = self.future.cancelled()
        failure = None if is_cancelled else self.future.exception()
        arrays = {} if is_cancelled or failure is not None else self.future.result()
        for instance, row in enumerate(rows):
            row.id, row.answer = self.future.id, self.future.answer
            if is_cancelled:
                row.cancel()
            if not row.set_running_or_notify_cancel():
                continue
            if isinstance(failure, JobFailed):
                row.set_exception(failure.of(row.name))
            elif failure is not None:
                row.set_exception(failure)
            else:
                row.set_result({name: array[instance, ...] for name, array in arrays.items()})

    def stacked(self) -> Arrays:
        """The rows of its result. If the job failed, the error has the job's name."""
        result = self.future.result()
        return result if self.names is not None else {name: array[numpy.newaxis] for name, array in result.items()}


class MapFuture(_Ours):
    """All rows of a map(). Its result has each output of all rows, stacked in order. If jobs fail, it fails when all are
    done, with the error of the first."""

    def __init__(self, sent: Sequence[Sent], on_done: Callable[[MapFuture], None]) -> None:
        super().__init__()
        self._sent = sent
        self._on_done: Optional[Callable[[MapFuture], None]] = on_done  # until then: who keeps it does not keep the client
        self._open = len(sent)
        self._rows_lock = threading.Lock()
        self._rows: Optional[list[Future]] = None
        for one in sent:
            one.future.add_done_callback(self._count)

    def _after_fork(self) -> None:
        super()._after_fork()
        self._rows_lock = threading.Lock()

    @property
    def futures(self) -> list[Future]:
        """A future for each row, in order. The rows of an array are done, or fail, together; each has the array's `answer`."""
        with self._rows_lock:
            if self._rows is None:
                self._rows = [row for one in self._sent for row in one.rows()]
            return self._rows

    @property
    def messages(self) -> list[Future]:
        """A future for each message, in order: of many rows of an array, or of one row."""
        return [one.future for one in self._sent]

    @property
    def answers(self) -> list[Optional[dict[str, Any]]]:
        """The whole result of each message, with telemetry; None while there is none."""
        return [one.future.answer for one in self._sent]

    def progress(self, timeout: Optional[float] = None) -> Following:
        """As Future.progress(), of all rows: `live` counts those that are not done, and `rounds` is the greatest. Once
        each message has shown something, `arrays` has what each showed last, stacked; until then it is empty."""
        return Following([_Message(one.future, len(one.names or [])) for one in self._sent], timeout)

    def _ends(self) -> Optional[list[Ends]]:
        found = [one.future._ends() for one in self._sent]
        whole = [one for one in found if one is not None]
        return whole if len(whole) == len(found) else None

    @property
    def rounds(self) -> Optional[Array]:
        """The round after which each row ended, if they are long jobs. None until all are answered well."""
        found = self._ends()
        return None if found is None else numpy.concatenate(
            [numpy.atleast_1d(numpy.asarray(one.rounds, "<u4")) for one in found])

    @property
    def ended(self) -> Optional[Array]:
        """What ended each row: `until`, `repeat`, `time` or `stop`; otherwise as `rounds`."""
        found = self._ends()
        return None if found is None else numpy.concatenate([numpy.atleast_1d(one.ended) for one in found])

    def _count(self, _: Any) -> None:
        with self._condition:
            self._open -= 1
            if self._open > 0:
                return
            on_done, self._on_done = self._on_done, None
        if on_done is not None:
            on_done(self)

    def stack(self) -> None:
        """Sets the result, when all jobs are done. Large results take long."""
        self.set_running_or_notify_cancel()
        try:
            parts = [one.stacked() for one in self._sent]
            self.set_result(parts[0] if len(parts) == 1 else {
                name: numpy.concatenate([part[name] for part in parts]) for name in parts[0]})
        except BaseException as failure:
            self.set_exception(bare(failure))

    def cancel(self) -> bool:
        """Cancels the jobs that are not answered yet. True if all jobs were cancelled."""
        return all([one.future.cancel() for one in self._sent])

    def stop(self) -> bool:
        """Stops the jobs that are not answered yet. False if there is none."""
        return any([one.future.stop() for one in self._sent])


class _Progress:
    """Shows progress: on a terminal a line that changes, elsewhere a line for each tenth."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._failed = 0
        self._started = time.monotonic()
        self._is_terminal = sys.stderr.isatty()

    def count(self, future: concurrent.futures.Future[Arrays]) -> None:
        self._done += 1
        self._failed += future.cancelled() or future.exception() is not None
        is_tenth = self._done * 10 // self._total > (self._done - 1) * 10 // self._total
        if not self._is_terminal and not is_tenth:
            return
        rate = self._done / max(time.monotonic() - self._started, 1e-9)
        failed = f", {self._failed} failed" if self._failed else ""
        line = f"{self._done} of {self._total} jobs answered{failed}, {rate:.0f}/s"
        is_last = self._done == self._total
        print(f"\r{line}" if self._is_terminal else line, end="" if self._is_terminal and not is_last else "\n",
              file=sys.stderr, flush=True)


def as_completed(
    futures: Iterable[Future], timeout: Optional[float] = None, progress: bool = False
) -> Iterator[Future]:
    """Yields each future when it is done, in the order of the answers. If you stop early, the other jobs still run. With
    `progress` it says on standard error how many are answered. Raises TimeoutError if not all are done in time.
    """
    wanted: dict[concurrent.futures.Future[Arrays], list[Future]] = {}  # to wait for a message costs what a row costs
    for future in dict.fromkeys(futures):
        wanted.setdefault(future._array or future, []).append(future)
    shown = _Progress(sum(map(len, wanted.values()))) if progress and wanted else None
    for message in concurrent.futures.as_completed(wanted, timeout):
        for done in wanted[message]:
            if not done.done():  # it is about to be
                concurrent.futures.wait([done])
            if shown is not None:
                shown.count(done)
            yield done
