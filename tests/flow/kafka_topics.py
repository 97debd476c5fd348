"""Topics of a real Kafka, through a client that this project did not write: made, read, and how far a group is."""

import time
import uuid

import confluent_kafka
import confluent_kafka.admin

PATIENCE_S = 240  # with what must happen: it ends a test that hangs, and says nothing of how quick a machine is
END_OF_PARTITION = confluent_kafka.KafkaError._PARTITION_EOF
MOVING = [
    confluent_kafka.KafkaError.NOT_COORDINATOR, confluent_kafka.KafkaError.COORDINATOR_NOT_AVAILABLE,
    confluent_kafka.KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
]  # what brokers say of a group's coordinator


def create_topics(servers, names, partitions, replicas, **config):
    """`config`: of the topics. Returns once every partition answers: only then a new topic is of use."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": servers})
    new = [confluent_kafka.admin.NewTopic(name, partitions, replicas, config=config) for name in names]
    for future in admin.create_topics(new).values():
        future.result(30)
    consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": "reader"})
    positions = [confluent_kafka.TopicPartition(name, number) for name in names for number in range(partitions)]
    deadline = time.monotonic() + PATIENCE_S
    while positions:
        try:
            consumer.get_watermark_offsets(positions[-1], 5)
            positions.pop()
        except confluent_kafka.KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    consumer.close()


class Topics:
    """Fresh topics of one test, made at the broker."""

    def __init__(self, bootstrap_servers, partitions=4, replicas=1):
        mark = uuid.uuid4().hex[:8]
        self.all = [f"{kind}-{mark}" for kind in ("jobs", "results", "dead", "telemetry", "control")]
        self.jobs, self.results, self.dead_letters, self.telemetry, self.control = self.all
        self.group = f"group-{mark}"
        create_topics(bootstrap_servers, self.all, partitions, replicas)

    def config(self, bootstrap_servers, **more):
        return {
            "driver": "cpu",
            "lanes": 2,
            "kafka": {"bootstrap_servers": bootstrap_servers, "group": self.group},
            "topics": {
                "jobs": [self.jobs], "results": self.results, "dead_letters": self.dead_letters, "telemetry": self.telemetry,
            },
        } | more


def read_all(bootstrap_servers, topic):
    """Every message of a topic, from its beginning to where it ends now."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": "reader", "enable.auto.commit": False,
         "enable.partition.eof": True})
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in partitions])
    messages, open_partitions = [], set(partitions)
    deadline = time.monotonic() + PATIENCE_S
    while open_partitions:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{topic} is not read to its end within {PATIENCE_S} s")
        for message in consumer.consume(1000, 0.2):
            if message.error() is None:
                messages.append(message)
            elif message.error().code() == END_OF_PARTITION:
                open_partitions.discard(message.partition())
    consumer.close()
    return messages


def committed(consumer, partitions):
    """A coordinator that has just come to be, or that moves, says so: it is asked again."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return consumer.committed(partitions, 30)
        except confluent_kafka.KafkaException as why:
            if why.args[0].code() not in MOVING or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def lag(bootstrap_servers, topics):
    """Messages of the job topic that the group has not committed."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": topics.group, "enable.auto.commit": False})
    numbers = consumer.list_topics(topics.jobs, timeout=30).topics[topics.jobs].partitions
    total = 0
    for position in committed(consumer, [confluent_kafka.TopicPartition(topics.jobs, n) for n in numbers]):
        low, high = consumer.get_watermark_offsets(position, 30)
        total += high - max(position.offset, low)
    consumer.close()
    return total


class Reader:
    """Follows a topic; committed messages alone."""

    def __init__(self, servers, topic, partitions):
        self._options = {
            "log_level": 2, "bootstrap.servers": servers, "group.id": "account", "enable.auto.commit": False,
            "isolation.level": "read_committed", "enable.partition.eof": True, "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 1 << 20, "queued.max.messages.kbytes": 16384}
        self._topic = topic
        self._next = {number: 0 for number in range(partitions)}
        self._open()

    def _open(self):
        self._consumer = confluent_kafka.Consumer(self._options)
        self._consumer.assign(
            [confluent_kafka.TopicPartition(self._topic, number, offset) for number, offset in self._next.items()])
        self._behind = set(self._next)  # partitions whose end was not met since their last message

    def reopen(self):
        """Goes on with a new client: what brokers did to the one before is no matter any more."""
        self._consumer.close()
        self._open()

    def read(self):
        """What has come since the last time, or most of it: who needs more asks again."""
        while (message := self._consumer.poll(1 if self._behind else 0.05)) is not None:
            if message.error() is None:
                self._behind.add(message.partition())
                self._next[message.partition()] = message.offset() + 1
                yield message
            elif message.error().code() == END_OF_PARTITION:
                self._behind.discard(message.partition())

    def close(self):
        self._consumer.close()


def headers_of(message):
    return {name: value.decode() for name, value in message.headers() or []}
