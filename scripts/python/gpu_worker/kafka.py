"""Jobs and results through Kafka. confluent-kafka is imported only when a client is made."""

import time

import msgpack

POLL_S = 0.1


class KafkaClient:
    """Sends jobs and reads their results. It belongs to no consumer group: many clients share the topics,
    and each picks the results of its own jobs."""

    def __init__(self, bootstrap_servers, jobs_topic="gpu-jobs", results_topic="gpu-results"):
        import confluent_kafka

        self._jobs_topic = jobs_topic
        # A topic that is not there yet comes into being when its metadata is asked for.
        common = {"bootstrap.servers": bootstrap_servers, "allow.auto.create.topics": True}
        self._producer = confluent_kafka.Producer(common | {"linger.ms": 5})
        self._consumer = confluent_kafka.Consumer(
            common | {"group.id": "unused", "enable.auto.commit": False, "isolation.level": "read_committed"}
        )
        self._read_from_now(results_topic, confluent_kafka.TopicPartition)

    def _read_from_now(self, topic, make_partition):
        partitions = self._wait_for_partitions(topic)
        positions = [make_partition(topic, partition) for partition in partitions]
        for position in positions:
            # Asked for here and now: a result that comes before the first fetch must not be missed.
            _, position.offset = self._consumer.get_watermark_offsets(position, timeout=30)
        self._consumer.assign(positions)

    def _wait_for_partitions(self, topic, timeout_s=30):
        deadline = time.monotonic() + timeout_s
        while True:
            metadata = self._consumer.list_topics(topic, timeout=timeout_s).topics[topic]
            if metadata.error is None and metadata.partitions:
                return sorted(metadata.partitions)
            if time.monotonic() > deadline:
                raise TimeoutError(f"topic {topic}: {metadata.error}")
            time.sleep(POLL_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._consumer.close()
        self._producer.flush()
        self._producer = None  # its threads end here, not when the garbage is collected

    def submit(self, jobs, key=None):
        """Sends jobs; with a key, all of them to one partition. Returns when the broker has them."""
        refused = []
        for job in jobs:
            self._produce(job, key, lambda error, _: refused.append(error) if error else None)
        unsent = self._producer.flush(60)
        if refused or unsent:
            raise ConnectionError(f"{len(refused)} jobs refused, {unsent} unsent: {refused[:1]}")

    def _produce(self, job, key, on_delivery):
        while True:
            try:
                self._producer.produce(self._jobs_topic, msgpack.packb(job), key=key, on_delivery=on_delivery)
                return
            except BufferError:  # the queue of unsent messages is full
                self._producer.poll(POLL_S)

    def results(self, ids, timeout_s, on_wait=lambda: None):
        """Yields the result of each id, in the order in which they come. `on_wait` is called while none comes;
        what it raises ends the wait. TimeoutError when nothing came for `timeout_s`."""
        missing = set(ids)
        deadline = time.monotonic() + timeout_s
        while missing:
            messages = self._consumer.consume(num_messages=1000, timeout=POLL_S)
            for message in messages:
                result = self._result_of(message, missing)
                if result is not None:
                    deadline = time.monotonic() + timeout_s
                    yield result
            on_wait()
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(missing)} jobs without a result for {timeout_s} s")

    @staticmethod
    def _result_of(message, missing):
        if message.error():
            raise ConnectionError(str(message.error()))
        result = msgpack.unpackb(message.value())
        if result["id"] not in missing:
            return None
        missing.remove(result["id"])
        return result

    def run(self, jobs, key=None, timeout_s=60):
        """Sends jobs and yields their results."""
        self.submit(jobs, key)
        yield from self.results([job["id"] for job in jobs], timeout_s)
