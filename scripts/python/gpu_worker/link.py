"""A client's connection to Kafka: a producer of jobs and a reader of results, which is in no consumer group."""

from __future__ import annotations

import ctypes
import logging
import operator
import os
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Optional, Protocol

import confluent_kafka
import confluent_kafka.admin

POLL_S = 0.1
START_TIMEOUT_S = 30.0
REQUEST_TIMEOUT_S = 5.0
FLUSH_TIMEOUT_S = 60.0
QUIET = 2  # a log level: only what is critical
REFRESH_S = 30.0  # a topic may get more partitions, or be created anew
RETRY_S = 1.0  # where the brokers did not answer
BATCH = 1000
JOB_ID, SOURCE = "gpu-worker-job-id", "gpu-worker-source"
ANY_PARTITION = -1
# librdkafka's own partitioner scatters an empty key as it does no key. Workers send it where `consistent` puts it: here.
EMPTY_KEY_PARTITION = 0
# While a fetch waits, the broker inside a worker does not look for new messages: fetches must wait only briefly.
EMBEDDED, EMBEDDED_WAIT_MS = "mockCluster", 2
PRODUCER = {
    "client.id": "gpu-worker-client", "allow.auto.create.topics": True, "enable.idempotence": True, "linger.ms": 1,
    "queue.buffering.max.kbytes": 65536,
}
CONSUMER = {
    "client.id": "gpu-worker-client", "allow.auto.create.topics": True, "group.id": "gpu-worker-client",
    "enable.auto.commit": False, "isolation.level": "read_committed", "auto.offset.reset": "error",
    "queued.max.messages.kbytes": 65536,
}

# What librdkafka says goes to whoever listens to this logger, and not to standard error.
LOGGER = logging.getLogger("gpu_worker")
LOGGER.addHandler(logging.NullHandler())

# For a header name that is no UTF-8, confluent_kafka returns a list with a null pointer in it, and sets an error beside it. Code that
# calls headers() often skips the check for that (Python 3.11 and newer), and garbage collected at this moment clears the error
# (3.12, 3.13): reading the list then ends the process. A call from C is always checked, and raises SystemError. It must be the
# only one for a message: a second call would return the same list, without the error.
_headers_once = operator.methodcaller("headers")

OnDelivery = Callable[[Optional[confluent_kafka.KafkaError], confluent_kafka.Message], None]


class ResultsLost(ConnectionError):
    """Results were deleted before this client read them; answers to its jobs may have been among them."""


class _Trouble:
    """Keeps librdkafka's last error that names a broker. A method of the link would make a cycle of references."""

    def __init__(self) -> None:
        self.text = ""

    def __call__(self, error: confluent_kafka.KafkaError) -> None:
        if not self.text or error.code() != confluent_kafka.KafkaError._ALL_BROKERS_DOWN:
            self.text = error.str()


class _IdQuestion:
    """Asks the brokers for the id that they gave a topic. Only an admin client can ask. It has threads and connections of its own:
    it lives as long as the question."""

    def __init__(self, settings: dict[str, Any], topic: str) -> None:
        self._admin = confluent_kafka.admin.AdminClient(settings)
        topics = confluent_kafka.TopicCollection([topic])
        self._asked = self._admin.describe_topics(topics, request_timeout=REQUEST_TIMEOUT_S)[topic]

    def is_over(self) -> bool:
        return bool(self._asked.done())

    def answer(self, last: str) -> str:
        """Waits for it. The last id where the brokers do not say one."""
        # Raised here, the error would hold this frame, and with it the admin client, in a cycle.
        return last if self._asked.exception() else str(self._asked.result().topic_id)


class Link:
    """Reads results from the end that the topic has when the link is opened. Answers to later jobs come behind it.

    Threads: read() from one; the others from any."""

    def __init__(
        self, servers: str, results: str, kafka: Mapping[str, Any], producer: Mapping[str, Any],
        consumer: Mapping[str, Any],
    ) -> None:
        self._results = results
        self._trouble = _Trouble()
        common = {"bootstrap.servers": servers, "error_cb": self._trouble, "logger": LOGGER, **kafka}
        # While no broker answers, librdkafka prints 20 lines a second. The exception says it once.
        self._asking = {**PRODUCER, "log_level": QUIET, **common, **producer}
        self.is_embedded = self._meets_embedded()
        self._producer = confluent_kafka.Producer({**PRODUCER, **common, **producer})
        is_chosen = "partitioner" in {**common, **producer}
        self._empty_key_place = ANY_PARTITION if is_chosen else EMPTY_KEY_PARTITION
        waits = {"fetch.wait.max.ms": EMBEDDED_WAIT_MS} if self.is_embedded else {}
        self._consumer = confluent_kafka.Consumer({**CONSUMER, **waits, **common, **consumer})
        self._question = self._ask_id()  # one that has no answer yet
        self._id = "" if self._question is None else self._question.answer("")
        self._question = None
        self._next = self._wait_for_ends()
        self._astray: set[int] = set()  # partitions that do not have what would come next
        self._refresh_at = time.monotonic() + REFRESH_S
        self._assign()
        keep_from_children(self)

    def _meets_embedded(self) -> bool:
        """Whether the broker is that inside a worker."""
        probe = confluent_kafka.Producer(self._asking)
        try:
            metadata = probe.list_topics(self._results, timeout=START_TIMEOUT_S)
        except confluent_kafka.KafkaException as failure:
            probe.poll(0)
            why = self._trouble.text or failure.args[0].str()
            raise ConnectionError(f"the brokers cannot be reached: {why}") from failure
        return str(metadata.cluster_id).startswith(EMBEDDED)

    def _wait_for_ends(self) -> dict[int, int]:
        """Waits for a new topic, whose partitions have no leader for a moment."""
        deadline = time.monotonic() + START_TIMEOUT_S
        trouble = "it did not come into being"
        while time.monotonic() < deadline:
            try:
                ends = {partition: self._range(partition)[1] for partition in self._partitions()}
            except confluent_kafka.KafkaException as failure:
                trouble, ends = failure.args[0].str(), {}
            if ends:
                return ends
            time.sleep(POLL_S)
        raise ConnectionError(f"topic {self._results}: {trouble}")

    def _partitions(self) -> list[int]:
        topic = self._consumer.list_topics(self._results, timeout=REQUEST_TIMEOUT_S).topics[self._results]
        if topic.error is not None:
            raise confluent_kafka.KafkaException(topic.error)
        return list(topic.partitions)

    def _range(self, partition: int) -> tuple[int, int]:
        """The first offset of a partition and its end now. When the first fetch asks, a result may have come already."""
        place = confluent_kafka.TopicPartition(self._results, partition)
        low, high = self._consumer.get_watermark_offsets(place, timeout=REQUEST_TIMEOUT_S)
        return int(low), int(high)

    def _ask_id(self) -> Optional[_IdQuestion]:
        """None with a broker that deletes no topic."""
        return None if self.is_embedded else _IdQuestion(self._asking, self._results)

    def _places(self, offsets: Mapping[int, int]) -> list[confluent_kafka.TopicPartition]:
        return [confluent_kafka.TopicPartition(self._results, partition, offset) for partition, offset in offsets.items()]

    def _assign(self) -> None:
        self._consumer.assign(self._places(self._next))

    def _move(self, offsets: Mapping[int, int]) -> None:
        """Reads these partitions from there on, and others as before."""
        known = {partition: offset for partition, offset in offsets.items() if partition in self._next}
        self._next.update(offsets)
        self._consumer.incremental_unassign(self._places(known))
        self._consumer.incremental_assign(self._places(offsets))

    def _look_after_topic(self) -> None:
        """Asks for its id from time to time, reads on until the answer has come, and then refreshes. What calls for another look
        meanwhile gets one, with a question of its own."""
        if self._question is None:
            if time.monotonic() <= self._refresh_at:
                return
            self._refresh_at = time.monotonic() + REFRESH_S
            self._question = self._ask_id()
        id = self._id
        if self._question is not None:
            if not self._question.is_over():
                return
            id, self._question = self._question.answer(self._id), None
        self._refresh(id)

    def _refresh(self, id: str) -> None:
        """Reads a topic that was created anew, partitions that were added, and those that lack what would come next, from
        their beginning."""
        try:
            partitions = set(self._partitions())
            starts = {partition: self._range(partition)[0] for partition in self._astray & partitions}
        except confluent_kafka.KafkaException:
            self._refresh_at = min(self._refresh_at, time.monotonic() + RETRY_S)
            return
        is_another = (self._id and id != self._id) or not self._next.keys() <= partitions
        self._id = id
        self._astray.clear()
        if is_another:
            LOGGER.warning("topic %s was created anew: it is read from its start", self._results)
            self._next = dict.fromkeys(partitions, 0)
            self._assign()
            return
        lost = sum(max(start - self._next[partition], 0) for partition, start in starts.items())
        new = dict.fromkeys(partitions - self._next.keys(), 0)
        if starts or new:
            self._move({**starts, **new})
        if lost:
            self._tell_lost(lost)

    def _tell_lost(self, count: int) -> None:
        keeps = "the broker inside a worker keeps the last 5 MiB of a partition: send less at once (in_flight_bytes)"
        why = keeps if self.is_embedded else "let the topic keep them for longer (retention.ms, retention.bytes)"
        text = f"{self._results}: {count} offsets of results were deleted before they were read; {why}"
        LOGGER.warning(text)
        raise ResultsLost(f"{text}. The answer may have been among them, and the job may have run")

    def partition_count(self, topic: str) -> int:
        partitions = self._producer.list_topics(topic, timeout=START_TIMEOUT_S).topics[topic].partitions
        return max(len(partitions), 1)

    def send(
        self, topic: str, value: bytes, key: Optional[bytes], partition: Optional[int], on_delivery: OnDelivery
    ) -> None:
        """Waits while the queue of unsent messages is full."""
        place = partition
        if place is None:
            place = self._empty_key_place if key == b"" else ANY_PARTITION
        while True:
            try:
                self._producer.produce(topic, value, key, place, on_delivery=on_delivery)
                self._producer.poll(0)
                return
            except BufferError:
                self._producer.poll(POLL_S)

    def serve(self) -> None:
        """Waits a moment for the brokers to say what has become of messages."""
        self._producer.poll(POLL_S)

    def read(self) -> list[tuple[str, str, bytes]]:
        """(job's id, where it stands, result) of what has come, or [] when nothing came for a moment. ResultsLost where some
        will never come, which is said once; ConnectionError where the brokers refuse to go on."""
        self._producer.poll(0)
        self._look_after_topic()
        # consume() alone would wait until a whole batch has come.
        first = self._consumer.poll(POLL_S)
        if first is None:
            return []
        return [found for message in [first, *self._consumer.consume(BATCH, 0)] for found in self._take(message)]

    def _take(self, message: confluent_kafka.Message) -> list[tuple[str, str, bytes]]:
        error = message.error()
        if error is not None:
            if error.retriable() or error.code() in (
                confluent_kafka.KafkaError._ALL_BROKERS_DOWN, confluent_kafka.KafkaError._TRANSPORT
            ):
                return []  # librdkafka goes on by itself
            partition = message.partition()
            if error.code() == confluent_kafka.KafkaError._AUTO_OFFSET_RESET and partition is not None:
                self._astray.add(partition)
                self._refresh_at = 0
                return []
            if error.code() == confluent_kafka.KafkaError._UNKNOWN_PARTITION:  # there are fewer than there were
                self._refresh_at = 0
                return []
            raise ConnectionError(f"reading {self._results}: {error.str()}")
        partition, offset, value = message.partition(), message.offset(), message.value()
        if partition is not None and offset is not None:
            self._next[partition] = offset + 1
        try:
            headers: Any = dict(_headers_once(message) or [])
        except Exception:  # a name that is no UTF-8: no worker sends it
            return []
        id, source = (str(headers.get(name) or b"", errors="replace") for name in (JOB_ID, SOURCE))
        return [(id, source, bytes(value))] if value is not None else []

    def flush(self) -> int:
        """Waits until the brokers have all messages. Returns how many they do not have."""
        return int(self._producer.flush(FLUSH_TIMEOUT_S))

    def close(self) -> None:
        self._question = None
        self._producer.purge()
        self._consumer.close()

    def kept(self) -> list[Any]:
        """What a forked child must not destroy."""
        return [self._producer, self._consumer, self._question]


class Parents(Protocol):
    """What has clients of librdkafka."""

    def kept(self) -> list[Any]: ...


_parents: weakref.WeakSet[Parents] = weakref.WeakSet()  # also those whose client is gone, or just being closed


def keep_from_children(one: Parents) -> None:
    """Only the parent has librdkafka's threads: destroying its clients in a forked child would hang."""
    _parents.add(one)


def _abandon_parents() -> None:
    for one in list(_parents):
        for kept in one.kept():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))


os.register_at_fork(after_in_child=_abandon_parents)
