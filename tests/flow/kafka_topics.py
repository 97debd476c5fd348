"""Topics of a real Kafka, through a client that this project did not write: made, read, and how far a group is."""

import atexit
import functools
import uuid

import confluent_kafka
import confluent_kafka.admin

from waiting import PATIENCE_S, wait_until

ASK_S = 5  # a client that waits for the leader of a new partition may not hear of it: it is asked anew
END_OF_PARTITION = confluent_kafka.KafkaError._PARTITION_EOF
MOVING = [
    confluent_kafka.KafkaError.NOT_COORDINATOR, confluent_kafka.KafkaError.COORDINATOR_NOT_AVAILABLE,
    confluent_kafka.KafkaError.COORDINATOR_LOAD_IN_PROGRESS, confluent_kafka.KafkaError.NOT_LEADER_FOR_PARTITION,
    confluent_kafka.KafkaError.LEADER_NOT_AVAILABLE,
]  # what brokers say of a group's coordinator, and of a partition's leader
# Of a client that reaches no broker: once one was away, some librdkafka stay so, and a new client is needed.
AWAY = [
    confluent_kafka.KafkaError._TRANSPORT, confluent_kafka.KafkaError._TIMED_OUT, confluent_kafka.KafkaError._ALL_BROKERS_DOWN,
]
ANSWER_S = 20  # for one answer
# A broker that was away is asked again soon, which some tests are about, and one that has nothing new says so at once.
ASKING = {"reconnect.backoff.max.ms": 500, "log_level": 2}
READING = ASKING | {"fetch.wait.max.ms": 10, "enable.auto.commit": False, "enable.partition.eof": True}


@functools.cache
def admin_of(servers):
    return confluent_kafka.admin.AdminClient(ASKING | {"bootstrap.servers": servers})


@functools.cache
def asker_of(servers, group):
    """A consumer that reads nothing: it asks how far a group is."""
    consumer = confluent_kafka.Consumer(
        ASKING | {"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False})
    atexit.register(consumer.close)
    return consumer


def _create_topic(admin, topic):
    """Why it cannot be created yet: brokers that have just started are fenced for a while."""
    try:
        admin.create_topics([topic])[topic.topic].result(PATIENCE_S)
    except confluent_kafka.KafkaException as why:
        if why.args[0].code() != confluent_kafka.KafkaError.INVALID_REPLICATION_FACTOR:
            raise
        return why
    return None


def create_topics(servers, names, partitions, replicas, **config):
    """`config`: of the topics. Returns once every partition answers: only then a new topic is of use."""
    admin = admin_of(servers)
    new = [confluent_kafka.admin.NewTopic(name, partitions, replicas, config=config) for name in names]
    for topic in new:
        wait_until(lambda topic=topic: _create_topic(admin, topic), f"topic {topic.topic} is created", is_met=lambda why: why is None)
    asker = confluent_kafka.Consumer(ASKING | {"bootstrap.servers": servers, "group.id": "asker"})
    silent = [confluent_kafka.TopicPartition(name, number) for name in names for number in range(partitions)]

    def ask():
        """Why the next one does not answer yet."""
        try:
            while silent:
                asker.get_watermark_offsets(silent[-1], ASK_S)
                silent.pop()
        except confluent_kafka.KafkaException as why:
            return why
        return None
    wait_until(ask, "every partition of the new topics answers", is_met=lambda why: why is None)
    asker.close()


class Topics:
    """Fresh topics of one test, made at the broker."""

    def __init__(self, bootstrap_servers, partitions=4, replicas=1):
        self.partitions = partitions
        mark = uuid.uuid4().hex[:8]
        self.all = [f"{kind}-{mark}" for kind in ("jobs", "results", "dead", "telemetry", "control", "progress")]
        self.jobs, self.results, self.dead_letters, self.telemetry, self.control, self.progress = self.all
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


def read_all(bootstrap_servers, topic, isolation="read_committed"):
    """Every message of a topic, from its beginning to where it ends now."""
    consumer = confluent_kafka.Consumer(READING | {
        "bootstrap.servers": bootstrap_servers, "group.id": "reader", "isolation.level": isolation})
    partitions = consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
    consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in partitions])
    messages, open_partitions = [], set(partitions)

    def read():
        """The partitions whose end was not met yet."""
        for message in consumer.consume(1000, 0.02):
            if message.error() is None:
                messages.append(message)
            elif message.error().code() == END_OF_PARTITION:
                open_partitions.discard(message.partition())
        return open_partitions
    wait_until(read, f"{topic} is read to its end", is_met=lambda left: not left, step_s=0)
    consumer.close()
    return messages


def answer_of(ask, where, answer_s=PATIENCE_S):
    """What `ask` returns. A coordinator or a leader that has just come to be, or that moves, says so: it is asked again."""
    def ask_once():
        try:
            return ask(where, answer_s)
        except confluent_kafka.KafkaException as why:
            if why.args[0].code() not in MOVING:
                raise
            return why
    return wait_until(
        ask_once, "the broker answers", is_met=lambda answer: not isinstance(answer, confluent_kafka.KafkaException))


def committed(consumer, partitions, answer_s=PATIENCE_S):
    return answer_of(consumer.committed, partitions, answer_s)


def lag(bootstrap_servers, topics, patience_s=PATIENCE_S):
    """Messages of the job topic that the group has not committed."""
    def look():
        try:
            return lag_by(asker_of(bootstrap_servers, topics.group), topics.jobs)
        except confluent_kafka.KafkaException as why:
            if why.args[0].code() not in AWAY:
                raise
            asker_of.cache_clear()
            return None
    return wait_until(look, "the broker says what is committed", patience_s, is_met=lambda seen: seen is not None)


def lag_by(asker, topic):
    numbers = asker.list_topics(topic, timeout=ANSWER_S).topics[topic].partitions
    total = 0
    for position in committed(asker, [confluent_kafka.TopicPartition(topic, n) for n in numbers], ANSWER_S):
        low, high = answer_of(asker.get_watermark_offsets, position, ANSWER_S)
        total += high - max(position.offset, low)
    return total


class Reader:
    """Follows a topic; committed messages alone."""

    def __init__(self, servers, topic, partitions):
        self._options = READING | {
            "bootstrap.servers": servers, "group.id": "account", "isolation.level": "read_committed",
            "auto.offset.reset": "earliest", "fetch.message.max.bytes": 1 << 20, "queued.max.messages.kbytes": 16384}
        self._topic = topic
        self._next = {number: 0 for number in range(partitions)}
        self._open()

    def _open(self):
        self._consumer = confluent_kafka.Consumer(self._options)
        self._consumer.assign(
            [confluent_kafka.TopicPartition(self._topic, number, offset) for number, offset in self._next.items()])
        self._behind = set(self._next)  # partitions whose end was not met since their last message

    def reopen(self, partitions=0):
        """Goes on with a new client: what brokers did to the one before is no matter any more. Reads so many partitions,
        where that is more than before."""
        self._next |= {number: 0 for number in range(len(self._next), partitions)}
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
