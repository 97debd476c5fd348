"""A client's reader of what long jobs show. Nothing waits for it: what it misses is made up for by what comes next."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import confluent_kafka

from .link import (
    CONSUMER, EMBEDDED_WAIT_MS, LOGGER, POLL_S, QUIET, REFRESH_S, REQUEST_TIMEOUT_S, START_TIMEOUT_S,
    keep_from_children)

BATCH = 100
QUEUE = {"queued.max.messages.kbytes": 4096, "auto.offset.reset": "latest"}


class Feed:
    """Reads a topic of progress from the end that it has when the feed is opened. What was deleted before it was read
    is passed over.

    Threads: one."""

    def __init__(
        self, servers: str, topic: str, kafka: Mapping[str, Any], consumer: Mapping[str, Any], is_embedded: bool
    ) -> None:
        self._topic = topic
        waits = {"fetch.wait.max.ms": EMBEDDED_WAIT_MS} if is_embedded else {}
        # The link says what is wrong with the brokers.
        common = {"bootstrap.servers": servers, "logger": LOGGER, "log_level": QUIET, **kafka}
        self._consumer = confluent_kafka.Consumer({**CONSUMER, **QUEUE, **waits, **common, **consumer})
        keep_from_children(self)
        self._next = self._wait_for_ends()
        self._refresh_at = time.monotonic() + REFRESH_S
        self._assign()

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
        raise ConnectionError(f"topic {self._topic}: {trouble}")

    def _partitions(self) -> list[int]:
        topic = self._consumer.list_topics(self._topic, timeout=REQUEST_TIMEOUT_S).topics[self._topic]
        if topic.error is not None:
            raise confluent_kafka.KafkaException(topic.error)
        return list(topic.partitions)

    def _end(self, partition: int) -> int:
        place = confluent_kafka.TopicPartition(self._topic, partition)
        return int(self._consumer.get_watermark_offsets(place, timeout=REQUEST_TIMEOUT_S)[1])

    def _assign(self) -> None:
        self._consumer.assign([confluent_kafka.TopicPartition(self._topic, partition, offset)
                               for partition, offset in self._next.items()])

    def _refresh(self) -> None:
        """Reads partitions that were added from their beginning."""
        self._refresh_at = time.monotonic() + REFRESH_S
        try:
            partitions = self._partitions()
        except confluent_kafka.KafkaException:
            return
        if partitions and set(partitions) != self._next.keys():
            self._next = {partition: self._next.get(partition, 0) for partition in partitions}
            self._assign()

    def read(self) -> list[bytes]:
        """What has come, or [] when nothing came for a moment."""
        if time.monotonic() > self._refresh_at:
            self._refresh()
        first = self._consumer.poll(POLL_S)
        if first is None:
            return []
        return [value for message in [first, *self._consumer.consume(BATCH, 0)] for value in self._take(message)]

    def _take(self, message: confluent_kafka.Message) -> list[bytes]:
        error = message.error()
        if error is not None:  # the brokers may be away, or the topic: it goes on when they are back
            LOGGER.debug("reading %s: %s", self._topic, error.str())
            return []
        partition, offset, value = message.partition(), message.offset(), message.value()
        if partition is not None and offset is not None:
            self._next[partition] = offset + 1
        return [bytes(value)] if value is not None else []

    def kept(self) -> list[Any]:
        """What a forked child must not destroy."""
        return [self._consumer]

    def close(self) -> None:
        self._consumer.close()
