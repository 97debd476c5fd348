"""A client's connection to Kafka: a producer of jobs and a reader of results, which is in no consumer group."""

from __future__ import annotations

import ctypes
import logging
import operator
import time
from collections.abc import Callable, Mapping
from typing import Any, Optional

import confluent_kafka

POLL_S = 0.1
START_TIMEOUT_S = 30.0
REQUEST_TIMEOUT_S = 5.0
FLUSH_TIMEOUT_S = 60.0
QUIET = 2  # a log level: only what is critical
REFRESH_S = 30.0  # a topic may get more partitions
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
    "enable.auto.commit": False, "isolation.level": "read_committed", "auto.offset.reset": "earliest",
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


class _Trouble:
    """Keeps librdkafka's last error that names a broker. A method of the link would make a cycle of references."""

    def __init__(self) -> None:
        self.text = ""

    def __call__(self, error: confluent_kafka.KafkaError) -> None:
        if not self.text or error.code() != confluent_kafka.KafkaError._ALL_BROKERS_DOWN:
            self.text = error.str()


class Link:
    """Reads results from the end that the topic has when the link is opened. Answers to later jobs come behind it.

    Threads: send() and partition_count() from any; read() from one."""

    def __init__(
        self, servers: str, results: str, kafka: Mapping[str, Any], producer: Mapping[str, Any],
        consumer: Mapping[str, Any],
    ) -> None:
        self._results = results
        self._trouble = _Trouble()
        common = {"bootstrap.servers": servers, "error_cb": self._trouble, "logger": LOGGER, **kafka}
        # While no broker answers, librdkafka prints 20 lines a second. The exception says it once.
        self.is_embedded = self._meets_embedded({**PRODUCER, "log_level": QUIET, **common, **producer})
        self._producer = confluent_kafka.Producer({**PRODUCER, **common, **producer})
        is_chosen = "partitioner" in {**common, **producer}
        self._empty_key_place = ANY_PARTITION if is_chosen else EMPTY_KEY_PARTITION
        waits = {"fetch.wait.max.ms": EMBEDDED_WAIT_MS} if self.is_embedded else {}
        self._consumer = confluent_kafka.Consumer({**CONSUMER, **waits, **common, **consumer})
        self._partition_counts: dict[str, int] = {}
        self._next = self._wait_for_ends()
        self._refresh_at = time.monotonic() + REFRESH_S
        self._assign()

    def _meets_embedded(self, settings: Mapping[str, Any]) -> bool:
        """Whether the broker is that inside a worker."""
        probe = confluent_kafka.Producer(dict(settings))
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
                ends = {partition: self._end(partition) for partition in self._partitions()}
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

    def _end(self, partition: int) -> int:
        """The end at this moment. When the first fetch asks, a result may have come already."""
        place = confluent_kafka.TopicPartition(self._results, partition)
        _, high = self._consumer.get_watermark_offsets(place, timeout=REQUEST_TIMEOUT_S)
        return int(high)

    def _assign(self) -> None:
        self._consumer.assign(
            [confluent_kafka.TopicPartition(self._results, partition, offset) for partition, offset in self._next.items()])

    def _refresh(self) -> None:
        """Reads partitions that were added to the topic, from their beginning."""
        self._refresh_at = time.monotonic() + REFRESH_S
        try:
            new = set(self._partitions()) - self._next.keys()
        except confluent_kafka.KafkaException:
            return  # until the next time
        if new:
            self._next.update(dict.fromkeys(new, 0))
            self._assign()

    def partition_count(self, topic: str) -> int:
        if topic not in self._partition_counts:
            partitions = self._producer.list_topics(topic, timeout=START_TIMEOUT_S).topics[topic].partitions
            self._partition_counts[topic] = max(len(partitions), 1)
        return self._partition_counts[topic]

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
        """(job's id, where it stands, result) of what has come, or [] when nothing came for a moment. ConnectionError where
        the brokers refuse to go on."""
        self._producer.poll(0)
        if time.monotonic() > self._refresh_at:
            self._refresh()
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
        self._producer.purge()
        self._consumer.close()

    def abandon(self) -> None:
        """For a forked child: only the parent has librdkafka's threads, and destroying the clients here would hang."""
        for client in (self._producer, self._consumer):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(client))
