"""The client: sends jobs through Kafka and brings their answers back as futures."""

from __future__ import annotations

import concurrent.futures
import os
import secrets
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Optional, Union

import confluent_kafka
import numpy
import numpy.typing

from .answer import Expected, read_shown
from .blobs import Store, open_store
from .datatypes import little_endian, name_of
from .feed import Feed
from .futures import Future, MapFuture, Sent, bare
from .handles import Kept, Static
from .job import Buffer, Job, blob, check, encode, upload
from .line import ATTEMPTS_MAX, Line, Resident, Ticket, code_of
from .link import LOGGER, Link, POLL_S, ResultsLost
from .program import Listing, Program, read_listing
from .result import arrays_of, warn_unless_done

NAME_BYTES_MAX = 200  # an id has 256 at most
JOB_OVERHEAD_BYTES = 1024
INLINE_BYTES = 1024 * 1024  # of an output; a larger one goes to the blob store, for no message has room for it
BLOB_THREADS = 4
NO_PLACE = "the brokers did not say where it stands: leave `acks` as it is"
CLOSED = "the client was closed before the answer came"
IN_FLIGHT_BYTES = 256 * 1024 * 1024
# The broker inside a worker keeps the last 5 MiB of each partition. If more were under way, some of it would be lost.
IN_FLIGHT_BYTES_EMBEDDED = 4 * 1024 * 1024

Key = Union[None, str, bytes]

_clients: weakref.WeakSet[Client] = weakref.WeakSet()
_awaited: set[Client] = set()  # those with unanswered jobs, which nobody else may have any more


class Client:
    """Sends jobs to the workers that read `jobs`, and reads `results`. Any number of clients may share both topics: each
    takes only answers to the messages that it sent. All methods may be called from any thread.

    `servers`      host:port of brokers, by commas
    `results`      the workers' `topics.results`; with `reply_to=True` a topic that the workers have in `topics.reply_to`,
                   which the jobs then name
    `control`      the workers' `topics.control`: cancelling a future also tells the workers, and stopping one does
    `progress`     the workers' `topics.progress`: a future shows how far its long job is
    `kafka`        any settings of confluent_kafka, such as security.protocol; `producer` and `consumer` for one of both
    `blobs`        the workers' blob store: a folder, a URL, or an object with get() and put(). Arrays of more than
                   `inline_bytes` go there
    `programs`     what `gpu-worker programs --json` printed, as a file or as read; without it, `binary` is asked
    `in_flight`    most unanswered jobs, and `in_flight_bytes` the most bytes in them and their answers: a sender of more
                   waits. Without it, 256 MiB, and 4 MiB with the broker inside a worker
    """

    def __init__(
        self, servers: str, jobs: str = "gpu-jobs", results: str = "gpu-results", *, reply_to: bool = False,
        control: Optional[str] = None, progress: Optional[str] = None, kafka: Optional[Mapping[str, Any]] = None,
        producer: Optional[Mapping[str, Any]] = None, consumer: Optional[Mapping[str, Any]] = None,
        blobs: Union[None, str, os.PathLike[str], Store] = None, inline_bytes: int = 256 * 1024,
        programs: Union[None, str, os.PathLike[str], Listing] = None, binary: str = "gpu-worker",
        in_flight: int = 10_000, in_flight_bytes: Optional[int] = None,
    ) -> None:
        self.store = open_store(blobs)
        self._jobs, self._results, self._control, self._progress = jobs, results, control, progress
        self._reply_to = {"reply_to": results} if reply_to else {}
        self._options = (servers, results, kafka or {}, producer or {}, consumer or {})
        self._inline_bytes = inline_bytes
        self._programs, self._binary = programs, binary
        self._listing: Optional[Listing] = None
        self._in_flight, self._in_flight_bytes = in_flight, in_flight_bytes
        self._teller = weakref.WeakMethod(self._tell)
        self._start()
        self._run_reader()
        _clients.add(self)

    def _start(self) -> None:
        """Sets what a forked child must start again."""
        self._pending: dict[str, Ticket] = {}
        self._refused: deque[tuple[str, str]] = deque()
        self._lines: weakref.WeakValueDictionary[bytes, Line] = weakref.WeakValueDictionary()  # which have the client
        self._unanswered: dict[Ticket, None] = {}  # what is in _pending, and what lines hold
        self._unanswered_bytes = 0
        self._room = threading.Condition()
        self._send_lock = threading.RLock()  # who brings a static's bytes is sent before who does not
        self._failure: Optional[BaseException] = None
        self._is_closed = self._is_given_up = False
        self._helpers = concurrent.futures.ThreadPoolExecutor(BLOB_THREADS, "gpu-worker-blobs")

    def _run_reader(self) -> None:
        self._link = Link(*self._options)
        most = IN_FLIGHT_BYTES_EMBEDDED if self._link.is_embedded else IN_FLIGHT_BYTES
        self._in_flight_most = most if self._in_flight_bytes is None else self._in_flight_bytes
        self._watcher = self._open_feed()
        self._reader: Optional[threading.Thread] = threading.Thread(
            target=_read, args=(weakref.ref(self), self._link), name="gpu-worker-results", daemon=True)
        self._reader.start()

    def _open_feed(self) -> Optional[threading.Thread]:
        """The thread that reads what jobs show; it alone has the feed. None without a topic."""
        if self._progress is None:
            return None
        servers, _, kafka, _, consumer = self._options
        feed = Feed(servers, self._progress, kafka, consumer, self._link.is_embedded)
        thread = threading.Thread(
            target=_watch, args=(weakref.ref(self), feed), name="gpu-worker-progress", daemon=True)
        thread.start()
        return thread

    def _after_fork(self) -> None:
        was_closed = self._is_closed
        self._start()
        self._is_closed = was_closed
        self._reader = None  # the next submit() opens a link of the child's own

    # --- what jobs are made of ---

    def program(self, name: str, entry: str = "") -> Program:
        """A program of the workers. Call it with the arguments of its manifest."""
        if self._listing is None:
            self._listing = self._list_programs()
        return Program(self, self._listing, name, entry)

    def _list_programs(self) -> Listing:
        return read_listing(self._programs, [self._binary, "programs", "--json"])

    def static(self, array: numpy.typing.ArrayLike) -> Static:
        """An input that many jobs share and no job changes. If there is a blob store, it goes there. Otherwise the first
        job carries it; a job that a worker answers with `static_missing` is sent again with it."""
        static = Static(array)
        if self.store is not None:
            self.store.put(static.array())
        return static

    def resident(
        self, name: str, shape: Iterable[int] = (), dtype: numpy.typing.DTypeLike = "<f4", *, key: Union[str, bytes],
        init: Optional[numpy.typing.ArrayLike] = None, each: bool = False,
    ) -> Resident:
        """A buffer that stays on the device for the jobs of `key`, which run in order. It starts as zeros of `shape`, or as
        `init`. With `each` the first axis has a part for each instance of the array jobs that name it. The workers need
        `ordering: key`."""
        content = numpy.zeros(tuple(shape), dtype) if init is None else numpy.asarray(init)
        whole = key.encode() if isinstance(key, str) else key
        with self._room:
            line = self._lines.setdefault(whole, Line(self, whole))
        return Resident(line, name, content, each)

    def _buffer(self, name: str, value: Any) -> Any:
        """Makes a buffer of an array. Handles, and buffers as in job.schema.json, stay as they are."""
        if isinstance(value, (Kept, Mapping)):
            return value
        if name_of(numpy.asarray(value).dtype) is None:
            raise TypeError(f"buffer '{name}' has elements of type {numpy.asarray(value).dtype}, which no buffer can hold")
        array = little_endian(value)
        if self.store is None or array.nbytes <= self._inline_bytes:
            return upload(array)
        self.store.put(array)
        return blob(array)

    # --- sending ---

    def submit(self, job: Mapping[str, Any], key: Key = None, name: Optional[str] = None) -> Future:
        """Sends a job, which may have arrays, statics and residents among its buffers. Its id becomes the future's name;
        the message has one that the client draws. Waits while too many jobs are unanswered."""
        check(job)
        buffers = {buffer: self._buffer(buffer, value) for buffer, value in job["buffers"].items()}
        future = Future(str(name or job["id"]), self._teller)
        whole: Job = {**job, **self._reply_to, "buffers": buffers}
        expected = Expected.of(whole)
        size = 2 * JOB_OVERHEAD_BYTES + sum(map(_size_of, buffers.values()))
        size += sum(min(output, INLINE_BYTES) for output in expected.sizes) + expected.ends_bytes
        if expected.showing is not None and self._progress is not None:
            future.watch()
            size += expected.showing.bytes
        ticket = Ticket(future, whole, _bytes_of(key), expected, size)
        lines = {resident.line for resident in ticket.residents}
        if len(lines) > 1 or any(key is not None and line.key != ticket.key for line in lines):
            raise ValueError("a job has the key of all its residents")
        self._reopen()
        self._take_room(ticket)
        try:
            self.check()  # once its end sees the ticket, or is seen here
            for line in lines:
                ticket.line, ticket.key = line, line.key
                line.submit(ticket)
            if not lines:
                self.dispatch(ticket)
        except BaseException:
            self._give_room(ticket)
            raise
        return future

    def map(self, jobs: Iterable[Mapping[str, Any]], key: Key = None) -> MapFuture:
        """Sends jobs with outputs of the same names and shapes; the future has them stacked."""
        return self.gather([Sent(self.submit(job, key)) for job in jobs])

    def gather(self, sent: Sequence[Sent]) -> MapFuture:
        """One future of several jobs."""
        if not sent:
            raise ValueError("there is no job to send")
        return MapFuture(sent, self._stack)

    def _stack(self, whole: MapFuture) -> None:
        try:
            self._helpers.submit(whole.stack)
        except RuntimeError:  # they have ended with the client
            whole.stack()

    def _reopen(self) -> None:
        if self._reader is None:
            with self._send_lock:
                if self._reader is None:
                    self._run_reader()
        self.check()

    def check(self) -> None:
        """Raises if no more answers can come."""
        if self._is_closed:
            raise RuntimeError("the client is closed")
        if self._failure is not None:
            raise ConnectionError(str(self._failure)) from self._failure

    def _take_room(self, ticket: Ticket) -> None:
        is_reader = threading.current_thread() is self._reader  # which makes room, and cannot wait for it
        with self._room:
            while not is_reader and self._unanswered and (
                len(self._unanswered) >= self._in_flight or self._unanswered_bytes + ticket.size > self._in_flight_most
            ):
                self._room.wait(POLL_S)
                self.check()
            self._unanswered[ticket] = None
            _awaited.add(self)
            self._unanswered_bytes += ticket.size

    def _give_room(self, ticket: Ticket) -> bool:
        """False if the job was answered before."""
        with self._room:
            if ticket not in self._unanswered:
                return False
            del self._unanswered[ticket]
            self._unanswered_bytes -= ticket.size
            if not self._unanswered:
                _awaited.discard(self)
            self._room.notify_all()
        return True

    def draw(self) -> str:
        """A name that no other client uses, and nobody can guess."""
        return secrets.token_hex(12)

    def dispatch(self, ticket: Ticket) -> None:
        """Sends the job, for the first time or again. Each time it has a new id."""
        ticket.attempts += 1
        name = ticket.future.name.replace("\0", " ").encode()[:NAME_BYTES_MAX].decode(errors="ignore")
        id = f"{name}:{self.draw()}"
        with self._send_lock:
            buffers = {buffer: self._spell(value, ticket, id) for buffer, value in ticket.job["buffers"].items()}
            message = encode({**ticket.job, "id": id, "buffers": buffers})
            ticket.future.id, ticket.source = id, None
            self._pending[id] = ticket
            try:
                self._link.send(self._jobs, message, ticket.key, ticket.partition, _Delivery(self._refused, id, ticket))
            except BaseException as failure:
                del self._pending[id]
                self._settle_statics(ticket, id, False)
                if isinstance(failure, confluent_kafka.KafkaException):
                    raise ConnectionError(f"{name} was not sent: {_advice(failure.args[0])}") from failure
                raise

    def _spell(self, value: Any, ticket: Ticket, id: str) -> Buffer:
        if isinstance(value, Static):
            return value.buffer(self.store is None and self._brings(value, ticket, id))
        if isinstance(value, Resident):
            return value.buffer()
        spelled: Buffer = value
        return spelled

    def _brings(self, static: Static, ticket: Ticket, id: str) -> bool:
        """Whether this job must carry the static's bytes. Jobs behind it in the same partition need not."""
        if ticket.line is not None:
            return ticket.line.brings(static)
        if static.is_seeded() and ticket.attempts == 1:
            return False
        if ticket.partition is None:
            if ticket.key is not None:  # the partitioner knows where to
                return True
            ticket.partition = static.seeded_partition()
        if ticket.partition is None:
            ticket.partition = secrets.randbelow(self._link.partition_count(self._jobs))
        return static.claim(ticket.partition, id)

    @staticmethod
    def _settle_statics(ticket: Ticket, id: str, is_ok: bool) -> None:
        for static in ticket.statics:
            static.settle(id, is_ok)

    def cancel(self, ids: Iterable[str]) -> None:
        """Tells all workers not to run the jobs of these ids. Jobs that still wait are answered with `cancelled`. A
        future's cancel() does the same for its job."""
        self._send_control("cancel", ids)

    def stop(self, ids: Iterable[str]) -> None:
        """Tells all workers to end the long jobs of these ids, which are answered with the outputs that they have. Jobs
        that still wait are answered with `cancelled`. A future's stop() does the same for its job."""
        self._send_control("stop", ids)

    def _send_control(self, action: str, ids: Iterable[str]) -> None:
        if self._control is None:
            raise ValueError(f"a client without `control` cannot {action}")
        self._reopen()
        for id in ids:
            message = encode({"v": 1, "id": id, "action": action})
            self._link.send(self._control, message, None, None, _Delivery(self._refused, ""))

    def _tell(self, future: Future, action: str) -> bool:
        """Whether the workers are told. Without a control topic a cancel still ends the future, and a stop nothing."""
        if not future.id or self._is_closed or (self._control is None and action == "cancel"):
            return False
        self._send_control(action, [future.id])
        return True

    # --- answers: the reader's thread ---

    def read(self) -> bool:
        """A round of the reader's thread. False if there is none after it."""
        try:
            for id, source, message in self._link.read():
                self._take(id, source, message)
            while self._refused:
                self._drop(*self._refused.popleft())
            self.check_worker()
        except ResultsLost as lost:
            self._lose_sent(lost)
        except BaseException as failure:
            self._fail_all(failure)
        return not self._is_closed and self._failure is None

    def check_worker(self) -> None:
        """Raises if the worker that answers is known to have ended."""

    def _take(self, id: str, source: str, message: bytes) -> None:
        ticket = self._pending.get(id)
        if ticket is None:
            return  # somebody else's, or one that was answered twice
        while ticket.source is None and not self._is_closed:  # a result may come before the brokers' word on its job
            self._link.serve()
        if source != ticket.source:
            return  # it answers another message with the same id
        del self._pending[id]
        try:
            result = ticket.expected.read(message)
        except Exception as failure:
            self._lose(ticket, id, failure)
            return
        try:
            self._answer(ticket, id, result)
        except Exception as failure:
            self.fail(ticket, failure)

    def _answer(self, ticket: Ticket, id: str, result: dict[str, Any]) -> None:
        with self._send_lock:
            self._settle_statics(ticket, id, result["status"] == "ok")
        if ticket.line is not None:
            ticket.line.answered(ticket, result)
        elif code_of(result) == "static_missing" and ticket.statics and ticket.attempts < ATTEMPTS_MAX:
            ticket.partition = ticket.source_partition
            if self.store is not None:
                for static in ticket.statics:
                    self.store.put(static.array())
            self.dispatch(ticket)
        else:
            self.finish(ticket, result)

    def finish(self, ticket: Ticket, result: Mapping[str, Any]) -> None:
        self._give_room(ticket)
        ticket.future.answer = {**result}
        if any("blob" in output for output in result["outputs"]):
            self._helpers.submit(self._resolve, ticket, result)
        else:
            self._resolve(ticket, result)

    def _resolve(self, ticket: Ticket, result: Mapping[str, Any]) -> None:
        future = ticket.future
        if not future.set_running_or_notify_cancel():
            return
        try:
            if self._is_given_up:
                raise ConnectionError(CLOSED)
            found = arrays_of(result, self.store, future.name, ticket.expected.sizes)
            if ticket.expected.has_until:
                warn_unless_done(result, future.name)
        except Exception as failure:
            future.set_exception(bare(failure))
        else:
            future.set_result(found)

    def _drop(self, id: str, why: str) -> None:
        ticket = self._pending.pop(id, None)
        if ticket is not None:
            self._lose(ticket, id, ConnectionError(f"{ticket.future.name} was not sent: {why}"))

    def _lose(self, ticket: Ticket, id: str, failure: BaseException) -> None:
        """No answer comes that could be used."""
        with self._send_lock:
            self._settle_statics(ticket, id, False)
        if ticket.line is not None:
            ticket.line.dropped()
        self.fail(ticket, failure)

    def _lose_sent(self, failure: BaseException) -> None:
        """Nobody can know whose answers are lost: every job that was sent fails, unless it was answered before."""
        with self._send_lock:
            sent = list(self._pending.items())
            self._pending.clear()
        for id, ticket in sent:
            self._lose(ticket, id, failure)

    def fail(self, ticket: Ticket, failure: BaseException) -> None:
        """Ends a job, unless it was answered before."""
        if self._give_room(ticket) and ticket.future.set_running_or_notify_cancel():
            ticket.future.set_exception(bare(failure))

    def _fail_all(self, failure: BaseException) -> None:
        self._failure = bare(failure)
        self._pending.clear()
        for ticket in list(self._unanswered):
            self.fail(ticket, failure)

    # --- progress: the watcher's thread ---

    def show(self, messages: Iterable[bytes]) -> bool:
        """What the topic of progress has brought. False if there is nothing after it."""
        for message in messages:
            found = read_shown(message)
            ticket = None if found is None else self._pending.get(found["id"])
            if found is not None and ticket is not None:
                self._show(ticket, found)
        return not self._is_closed and self._failure is None

    def _show(self, ticket: Ticket, found: Mapping[str, Any]) -> None:
        source, newest = found["source"], ticket.future._newest
        where = f"{source['topic']}/{source['partition']}/{source['offset']}"
        while ticket.source is None and not self._is_closed and self._failure is None:
            self._link.serve()
        if where != ticket.source or newest is None or ticket.expected.showing is None:
            return
        try:
            newest.put(found["id"], ticket.expected.showing.progress(found))
        except Exception as failure:  # somebody else wrote it: the worker's own comes in time
            LOGGER.debug("%s: %s", ticket.future.name, failure)

    # --- the end ---

    def close(self, wait: bool = True) -> None:
        """Ends the client. With `wait` it first waits for all answers; otherwise unanswered jobs fail."""
        if self._is_closed or self._reader is None:
            self._is_closed = True
            return
        with self._room:
            while wait and self._unanswered and self._failure is None:
                self._room.wait(POLL_S)
        unsent = self._link.flush() if self._failure is None else 0
        self._is_closed, self._is_given_up = True, not wait
        self._reader.join()
        if self._watcher is not None:
            self._watcher.join()
        _clients.discard(self)  # from here on a forked child has nothing to start again
        del self._link  # its connections end here, not when the garbage is collected
        self._fail_all(ConnectionError(CLOSED))
        self._helpers.shutdown()
        if unsent and wait:
            raise ConnectionError(f"{unsent} messages were not sent")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self.close(wait=kind is None)


def _read(reference: weakref.ref[Client], link: Link) -> None:
    """Reads until the client is closed, or nobody has it and its jobs are answered."""
    process = os.getpid()
    while True:
        client = reference()
        if client is None or not client.read():
            break
        del client  # nobody may have it any more
        if os.getpid() != process:  # a callback has forked: the link is the parent's
            return
    link.close()


def _watch(reference: weakref.ref[Client], feed: Feed) -> None:
    """As _read(), of what jobs show. Meanwhile it keeps nobody's client."""
    while True:
        messages = feed.read()
        client = reference()
        if client is None or not client.show(messages):
            break
        del client
    feed.close()


class _Delivery:
    """Notes where the brokers have put a job, and the messages that they refuse; the reader's thread handles those."""

    __slots__ = ("_refused", "_id", "_ticket")

    def __init__(self, refused: deque[tuple[str, str]], id: str, ticket: Optional[Ticket] = None) -> None:
        self._refused, self._id, self._ticket = refused, id, ticket

    def __call__(self, error: Optional[confluent_kafka.KafkaError], message: confluent_kafka.Message) -> None:
        offset = message.offset()
        is_placed = error is None and offset is not None and offset >= 0
        if self._ticket is not None:
            self._ticket.source = f"{message.topic()}/{message.partition()}/{offset}" if is_placed else ""
        if not is_placed:
            self._refused.append((self._id, NO_PLACE if error is None else _advice(error)))


def _advice(error: confluent_kafka.KafkaError) -> str:
    if error.code() == confluent_kafka.KafkaError.MSG_SIZE_TOO_LARGE:
        return f"{error.str()}: give the client a blob store (`blobs`), or raise message.max.bytes"
    return error.str()


def _bytes_of(key: Key) -> Optional[bytes]:
    return key.encode() if isinstance(key, str) else key


def _size_of(buffer: Any) -> int:
    return len(buffer.get("data", b"")) if isinstance(buffer, Mapping) else 0


def _forget_parents() -> None:
    _awaited.clear()
    for client in list(_clients):
        client._after_fork()


os.register_at_fork(after_in_child=_forget_parents)
