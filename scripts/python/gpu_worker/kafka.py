"""Jobs and results through Kafka. confluent-kafka is imported only when a client is made."""

import time

import msgpack

POLL_S = 0.1
START_TIMEOUT_S = 30


class KafkaClient:
    """Sends jobs and reads their results. It belongs to no consumer group: many clients share the topics,
    and each picks the results of its own jobs."""

    def __init__(self, bootstrap_servers, jobs_topic="gpu-jobs", results_topic="gpu-results", control_topic=None):
        import confluent_kafka

        self._jobs_topic = jobs_topic
        self._control_topic = control_topic
        # A topic that is not there yet comes into being when its metadata is asked for.
        common = {"bootstrap.servers": bootstrap_servers, "allow.auto.create.topics": True}
        self._producer = confluent_kafka.Producer(common | {"linger.ms": 5})
        self._consumer = confluent_kafka.Consumer(
            common | {"group.id": "unused", "enable.auto.commit": False, "isolation.level": "read_committed"}
        )
        self._consumer.assign(self._wait_for_ends(results_topic, confluent_kafka))

    def _wait_for_ends(self, topic, confluent_kafka):
        """A topic that has just come into being has no partitions, or none with a leader, for a moment."""
        deadline = time.monotonic() + START_TIMEOUT_S
        trouble = "it did not come into being"
        while time.monotonic() < deadline:
            try:
                ends = self._ends(topic, confluent_kafka.TopicPartition)
            except confluent_kafka.KafkaException as error:
                trouble, ends = error, []
            if ends:
                return ends
            time.sleep(POLL_S)
        raise ConnectionError(f"topic {topic}: {trouble}")

    def _ends(self, topic, make_partition):
        """Where each partition ends now, not when the first fetch asks: by then a result may have come."""
        partitions = self._consumer.list_topics(topic, timeout=START_TIMEOUT_S).topics[topic].partitions
        ends = [make_partition(topic, partition) for partition in partitions]
        for end in ends:
            _, end.offset = self._consumer.get_watermark_offsets(end, timeout=START_TIMEOUT_S)
        return ends

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
        self._send(self._jobs_topic, ((key, job) for job in jobs))

    def cancel(self, ids):
        """Tells all workers not to run the jobs of these ids, where they still wait: they are answered with the
        error `cancelled`. Workers remember it for their `cancels.ttl_ms`. Returns when the broker has them."""
        if self._control_topic is None:
            raise ValueError("a client without a control_topic cannot cancel")
        self._send(self._control_topic, ((id, {"v": 1, "id": id, "action": "cancel"}) for id in ids))

    def _send(self, topic, messages):
        refused = []
        for key, message in messages:
            self._produce(topic, key, message, lambda error, _: refused.append(error) if error else None)
        unsent = self._producer.flush(60)
        if refused or unsent:
            raise ConnectionError(f"{len(refused)} messages refused, {unsent} unsent: {refused[:1]}")

    def _produce(self, topic, key, message, on_delivery):
        while True:
            try:
                self._producer.produce(topic, msgpack.packb(message), key=key, on_delivery=on_delivery)
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
