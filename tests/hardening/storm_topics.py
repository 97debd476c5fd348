"""What befalls the topics of a storm and its group, and forged results."""

import contextlib
import time

import confluent_kafka
import confluent_kafka.admin
import msgpack

from kafka_topics import PATIENCE_S, committed, create_topics
from storm_account import FORGED
from waiting import wait_until

PARTITIONS, PARTITIONS_MAX = 4, 8
TEXT = "gpu-worker/1 offset={} mark=clean takeovers=0 finished=////"  # as a worker writes it
QUIET_S = 3  # for so long the group has had nothing of a deleted topic
BACK_MAX = 30  # how many messages of a partition a moved offset brings back


class JobTopic:
    """The topic that the group `group` reads."""

    def __init__(self, servers, name, group, replicas):
        self._servers, self.name, self._group, self._replicas = servers, name, group, replicas
        self._admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": servers, "log_level": 2})
        self.partitions = PARTITIONS
        self.create()

    def create(self):
        create_topics(self._servers, [self.name], self.partitions, self._replicas)

    def add_partitions(self, chance):
        wanted = min(PARTITIONS_MAX, self.partitions + chance.randint(1, 2))
        if wanted > self.partitions:
            new = confluent_kafka.admin.NewPartitions(self.name, wanted)
            self._admin.create_partitions([new])[self.name].result(PATIENCE_S)
            self.partitions = wanted

    def create_anew(self, chance):
        """Another topic of the same name, once the workers have given the other one back: what they commit as they do so
        would count for the new one."""
        self._admin.delete_topics([self.name])[self.name].result(PATIENCE_S)
        wait_until(lambda: self.name not in self._admin.list_topics(timeout=PATIENCE_S).topics, "the topic is gone")
        with self._asker() as consumer:
            since = time.monotonic()

            def look():
                """For how long the group has had no offsets there."""
                nonlocal since
                positions = committed(consumer, [confluent_kafka.TopicPartition(self.name, n) for n in range(PARTITIONS_MAX)])
                if any(position.offset >= 0 for position in positions):
                    since = time.monotonic()
                return time.monotonic() - since
            wait_until(look, "the group forgets the topic", is_met=lambda quiet_s: quiet_s > QUIET_S, step_s=0.2)
        self.partitions = chance.randint(2, 6)
        self.create()

    def _asker(self):
        """Of the group; not a member."""
        options = {"bootstrap.servers": self._servers, "group.id": self._group, "enable.auto.commit": False, "log_level": 2}
        return contextlib.closing(confluent_kafka.Consumer(options))

    def move_offsets_back(self, chance):
        """What a tool does that translates offsets, or an operator, while the group has no members: the text beside an
        offset stays, or does not. [(partition, offset, offset before)]"""
        moved = []
        with self._asker() as consumer:
            for position in committed(consumer, [confluent_kafka.TopicPartition(self.name, n) for n in range(self.partitions)]):
                if position.offset > 0:
                    end = position.offset
                    position.offset = max(0, end - chance.randint(1, BACK_MAX))
                    text = chance.choice([TEXT.format(end), "a tool's own", ""])
                    moved.append((confluent_kafka.TopicPartition(self.name, position.partition, position.offset, text), end))
            if moved:
                wait_until(lambda: self._commit(consumer, [position for position, _ in moved]), "the group has no members")
        return [(position.partition, position.offset, end) for position, end in moved]

    @staticmethod
    def _commit(consumer, positions):
        """False while the group has members: one whose leave did not reach the brokers stays until its session ends."""
        try:
            consumer.commit(offsets=positions, asynchronous=False)
        except confluent_kafka.KafkaException as error:
            if error.args[0].code() != confluent_kafka.KafkaError.UNKNOWN_MEMBER_ID:
                raise
            return False
        return True


class Forger:
    """Writes what no worker has written into the topic of results, as anybody can who may write there."""

    def __init__(self, servers, topic):
        self._producer = confluent_kafka.Producer({"bootstrap.servers": servers, "log_level": 2})
        self._topic = topic

    def forge(self, chance):
        for _ in range(chance.randint(1, 20)):
            number = chance.randrange(5000)
            answer = {"id": f"storm-{number}", "status": chance.choice(["ok", "error", "partial", "", 7, None]),
                      "source": {"topic": "storm-jobs", "partition": chance.randrange(4), "offset": chance.randrange(2**40)},
                      "outputs": chance.choice([[], None, {}, [{"name": "y", "data": b"forged"}], [{"name": b"\xff", "data": 1 << 63}]])}
            value = chance.choice([msgpack.packb(answer), msgpack.packb(answer)[:-3], None, b"", b"\xc1", b"\x91" * 5000])
            self._producer.produce(self._topic, value, chance.choice([None, b"\xff"]), headers=[(FORGED, b"")])
        self._producer.flush(PATIENCE_S)
