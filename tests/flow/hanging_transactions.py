"""Transactions that a broker leaves hanging, and what it should have done about them.

Apache Kafka from 4.0 on (KAFKA-20734) may forget about a transaction that it was killed in. When it is back, and knows
of no leader of a partition yet, it takes the partition for one that was deleted: it notes that the transaction is
complete, and never tells the partition how it has ended. What is open there stays open, whatever clients do and however
often the broker is started again: readers of committed messages wait behind it, and so does whoever asks the group for
its offsets. Worse: if its producer goes on there, the end of its next transaction is taken for the end of both. Then
what was committed is lost to readers, or what was aborted is read. So clients must not come back before what hangs is
ended. It needs a partition without any leader; with replicas that are alive there is none."""

import contextlib
import socket
import struct
import time

import confluent_kafka

from kafka_topics import END_OF_PARTITION, READING
from waiting import PATIENCE_S, wait_until

LIST_TRANSACTIONS, DESCRIBE_PRODUCERS, WRITE_TXN_MARKERS = 66, 61, 27  # the protocol's numbers of requests
INTERNAL = {"__consumer_offsets": 4, "__transaction_state": 4}  # partitions, as scripts/kafka says
COMPLETE = ("Empty", "CompleteCommit", "CompleteAbort")  # to the coordinator nothing is open
PREPARE_COMMIT, PREPARE_ABORT = 2, 3  # states in its log
QUIET_S = 5  # it stays as it is for so long
LOOK_S = 0.5  # between two questions to the brokers


def text(value):
    return bytes([len(value) + 1]) + value.encode()


def array(items):
    return bytes([len(items) + 1]) + b"".join(items)


class Answer:
    def __init__(self, data):
        self._data, self._at = data, 0

    def take(self, form):
        values = struct.unpack_from(">" + form, self._data, self._at)
        self._at += struct.calcsize(">" + form)
        return values if len(values) > 1 else values[0]

    def count(self):
        """Of an array, or of a text's bytes."""
        value = shift = 0
        while True:
            byte = self.take("B")
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return max(0, value - 1)

    def text(self):
        return self.take(f"{self.count()}s").decode()

    def list(self, read):
        return [read() for _ in range(self.count())]

    def end(self, value):
        """Of a structure, where tagged fields would stand."""
        assert self.take("B") == 0
        return value


class Broker:
    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), PATIENCE_S)
        self._file = self._socket.makefile("rb")

    def close(self):
        self._file.close()
        self._socket.close()

    def ask(self, request, version, body):
        message = struct.pack(">hhih5sB", request, version, 0, 5, b"tests", 0) + body + b"\0"
        self._socket.sendall(struct.pack(">i", len(message)) + message)
        size = self._file.read(4)
        if len(size) < 4:
            raise ConnectionError("the broker has gone")
        answer = Answer(self._file.read(struct.unpack(">i", size)[0]))
        answer.end(answer.take("i"))
        return answer

    def complete_producers(self):
        """Lists those of which, to their coordinator, nothing is open."""
        answer = self.ask(LIST_TRANSACTIONS, 0, array([]) + array([]))
        answer.take("ih")
        answer.list(answer.text)
        states = answer.list(lambda: answer.end((answer.text(), answer.take("q"), answer.text())))
        return {producer for _, producer, state in states if state in COMPLETE}

    def open_transactions(self, partitions):
        """{(topic, partition, producer, first offset): (epoch of the producer, epoch of its coordinator)}"""
        asked = [text(topic) + array([struct.pack(">i", n) for n in range(count)]) + b"\0"
                 for topic, count in partitions.items()]
        answer = self.ask(DESCRIBE_PRODUCERS, 0, array(asked))
        answer.take("i")
        found = {}

        def read_partition(topic):
            number, _ = answer.take("ih")
            answer.take(f"{answer.count()}s")
            for producer, epoch, _, _, coordinator, first in answer.list(lambda: answer.end(answer.take("qiiqiq"))):
                if first >= 0:
                    found[topic, number, producer, first] = epoch, coordinator
            answer.end(None)

        def read_topic():
            topic = answer.text()
            answer.list(lambda: read_partition(topic))
            answer.end(None)

        answer.list(read_topic)
        return found

    def end_transaction(self, topic, partition, producer, epochs, is_commit):
        where = array([text(topic) + array([struct.pack(">i", partition)]) + b"\0"])
        marker = struct.pack(">qh?", producer, epochs[0], is_commit) + where + struct.pack(">i", epochs[1]) + b"\0"
        self.ask(WRITE_TXN_MARKERS, 1, array([marker]))


def complete_producers(brokers):
    return set().union(*(broker.complete_producers() for broker in brokers))


def read_end(value):
    """{(topic, partition, producer): whether it is committed} of a record with which the coordinator ends a transaction;
    {} of others."""
    record = Answer(value)
    version, producer, _, _, state = record.take("hqhib")
    if state not in (PREPARE_COMMIT, PREPARE_ABORT):
        return {}
    assert version == 1, f"a record of version {version}"
    topics = record.list(lambda: record.end((record.text(), record.list(lambda: record.take("i")))))
    return {(topic, number, producer): state == PREPARE_COMMIT for topic, numbers in topics for number in numbers}


def outcomes(servers):
    """{(topic, partition, producer): whether the last transaction that was ended there is committed}, as the coordinator
    has noted it. A later transaction of the producer's without that partition says nothing of it."""
    reader = confluent_kafka.Consumer(READING | {"bootstrap.servers": servers, "group.id": "outcomes"})
    topic = "__transaction_state"
    reader.assign([confluent_kafka.TopicPartition(topic, n, 0) for n in range(INTERNAL[topic])])
    found, left = {}, set(range(INTERNAL[topic]))

    def read():
        message = reader.poll(1)
        if message is not None and message.error() is None and message.value():
            found.update(read_end(message.value()))
        elif message is not None and message.error() and message.error().code() == END_OF_PARTITION:
            left.discard(message.partition())
        return left
    wait_until(read, f"{topic} is read to its end", is_met=lambda left: not left, step_s=0)
    reader.close()
    return found


class Hanging:
    """Ends the transactions that brokers have left hanging, as their coordinator has noted their end."""

    def __init__(self, servers, topics, partitions):
        self._servers = servers
        self._partitions = dict.fromkeys(topics, partitions) | {"__consumer_offsets": INTERNAL["__consumer_offsets"]}
        self._seen = {}  # what hangs, and since when
        self.ended = 0

    def look(self):
        """Asks the brokers; how many it has ended now."""
        with contextlib.ExitStack() as connections:
            brokers = [connections.enter_context(contextlib.closing(Broker(address)))
                       for address in self._servers.split(",")]
            ended = self._end_due(brokers)
        self.ended += ended
        return ended

    def clear(self):
        """After a broker was started again, and before clients may reach it: ends what it has left hanging."""
        self._quiet_since = time.monotonic()

        def look():
            """What still hangs, and for how long nothing has."""
            with contextlib.suppress(OSError):  # it is just starting
                self.look()
            if self._seen:
                self._quiet_since = time.monotonic()
            return list(self._seen), time.monotonic() - self._quiet_since
        wait_until(look, "nothing hangs any more", is_met=lambda seen: seen[1] >= QUIET_S, step_s=LOOK_S)

    def _end_due(self, brokers):
        complete = complete_producers(brokers)
        found = {}
        for broker in brokers:  # replicas tell as well
            found |= broker.open_transactions(self._partitions)
        complete &= complete_producers(brokers)
        now = time.monotonic()
        self._seen = {key: self._seen.get(key, now) for key in found if key[2] in complete}
        if not any(now - since >= QUIET_S for since in self._seen.values()):
            return 0
        known = outcomes(self._servers)
        complete &= complete_producers(brokers)  # what one has begun meanwhile is not for us to end
        due = [key for key, since in self._seen.items() if now - since >= QUIET_S and key[2] in complete]
        for topic, partition, producer, first in due:
            for broker in brokers:  # who does not lead the partition refuses
                broker.end_transaction(topic, partition, producer, found[topic, partition, producer, first],
                                       known[topic, partition, producer])
        return len(due)
