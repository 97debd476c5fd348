"""What stands for a job that was sent: a concurrent.futures.Future of its arrays."""

from __future__ import annotations

import concurrent.futures
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Optional

import numpy

from .datatypes import Array

Arrays = dict[str, Array]


class _Ours(concurrent.futures.Future[Arrays]):
    """A future that a forked child does not wait for: the answer goes to its parent."""

    def __init__(self) -> None:
        super().__init__()
        self._process = os.getpid()

    def _check_process(self) -> None:
        if not self.done() and os.getpid() != self._process:
            raise RuntimeError("the job was sent before a fork, and the parent gets its answer: send it in the child")

    def result(self, timeout: Optional[float] = None) -> Arrays:
        """{output name: array} once the job is answered; JobFailed where it failed."""
        self._check_process()
        return super().result(timeout)

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        self._check_process()
        return super().exception(timeout)


class Future(_Ours):
    """One job. `name` is its sender's own, `id` the one that the client drew for the message. Once it is done, `answer`
    is the whole result, with telemetry and worker. `cancel()` also tells the workers, where the client has a control
    topic."""

    def __init__(self, name: str, on_cancel: Callable[[Future], None]) -> None:
        super().__init__()
        self.name = name
        self.id = ""
        self.answer: Optional[dict[str, Any]] = None
        self._on_cancel = on_cancel

    def cancel(self) -> bool:
        was_cancelled = self.cancelled()
        is_cancelled = super().cancel()
        if is_cancelled and not was_cancelled:
            self._on_cancel(self)
        return is_cancelled


class MapFuture(_Ours):
    """The jobs of a map(): its result has each output of all of them, stacked in order. `futures` are the jobs'. It fails
    with the first of them that does, once all are done."""

    def __init__(self, futures: list[Future], on_done: Callable[[MapFuture], None]) -> None:
        super().__init__()
        self.futures = futures
        self._on_done = on_done
        self._open = len(futures)
        for future in futures:
            future.add_done_callback(self._count)

    def _count(self, _: Any) -> None:
        with self._condition:
            self._open -= 1
            is_last = self._open == 0
        if is_last:
            self._on_done(self)

    def stack(self) -> None:
        """Once all are done: sets the result. Takes long where it is large."""
        self.set_running_or_notify_cancel()
        try:
            results = [future.result() for future in self.futures]
            self.set_result({name: numpy.stack([result[name] for result in results]) for name in results[0]})
        except BaseException as failure:
            self.set_exception(failure)

    def cancel(self) -> bool:
        """Cancels what is not answered yet; True where all of it was."""
        return all([future.cancel() for future in self.futures])


class _Progress:
    """A line that grows on a terminal, a line for each tenth elsewhere."""

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
    """Yields each future once it is done, in the order of the answers. Who stops early loses nothing: the others go on.
    With `progress` it says on standard error how many are answered. TimeoutError where they are not all done in time.
    """
    wanted: dict[concurrent.futures.Future[Arrays], Future] = {future: future for future in futures}
    for future in wanted.values():
        future._check_process()
    shown = _Progress(len(wanted)) if progress and wanted else None
    for done in concurrent.futures.as_completed(wanted, timeout):
        if shown is not None:
            shown.count(done)
        yield wanted[done]
