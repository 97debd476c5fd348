"""Jobs as they are, under their own ids, and what a worker answers: for tests that look at messages. Who uses the worker
takes gpu_worker.Client."""

import functools
import time

import confluent_kafka
import msgpack

from waiting import PATIENCE_S, wait_until

POLL_S = 0.1


class JobClient:
    """Sends jobs and reads their results. It belongs to no consumer group: many clients share the topics, and each
    picks the results of its own jobs. It knows them by where the brokers put each job, which its result repeats as
    `source`: two clients may use the same ids, and one client an id twice. Not for several threads at once."""

    def __init__(self, bootstrap_servers, jobs_topic="gpu-jobs", results_topic="gpu-results", control_topic=None):
        self._jobs_topic = jobs_topic
        self._control_topic = control_topic
        # A topic that is not there yet comes into being when its metadata is asked for.
        common = {"bootstrap.servers": bootstrap_servers, "allow.auto.create.topics": True}
        self._producer = confluent_kafka.Producer(common | {"linger.ms": 5, "enable.idempotence": True})
        self._unanswered = {}  # ids of jobs by where they stand, as _source() has it
        self._unread = {}  # results that came, by id, until somebody asks for them
        self._consumer = confluent_kafka.Consumer(
            common | {"group.id": "unused", "enable.auto.commit": False, "isolation.level": "read_committed"}
        )
        self._consumer.assign(self._wait_for_ends(results_topic))

    def _wait_for_ends(self, topic):
        """A topic that has just come into being has no partitions, or none with a leader, for a moment."""
        def look():
            try:
                return self._ends(topic, confluent_kafka.TopicPartition)
            except confluent_kafka.KafkaException as trouble:
                return trouble
        return wait_until(look, f"topic {topic} comes into being", is_met=lambda ends: isinstance(ends, list) and ends)

    def _ends(self, topic, make_partition):
        """Where each partition ends now, not when the first fetch asks: by then a result may have come."""
        partitions = self._consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
        ends = [make_partition(topic, partition) for partition in partitions]
        for end in ends:
            _, end.offset = self._consumer.get_watermark_offsets(end, timeout=PATIENCE_S)
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
        self._send(self._jobs_topic, ((key, job) for job in jobs), self._remember)

    def _remember(self, job, message):
        self._unanswered[message.topic(), message.partition(), message.offset()] = job["id"]

    def cancel(self, ids):
        """Tells all workers not to run the jobs of these ids, where they still wait: they are answered with the
        error `cancelled`. Workers remember it for their `cancels.ttl_ms`. Returns when the broker has them."""
        if self._control_topic is None:
            raise ValueError("a client without a control_topic cannot cancel")
        self._send(self._control_topic, ((id, {"v": 1, "id": id, "action": "cancel"}) for id in ids))

    def _send(self, topic, messages, on_sent=lambda value, message: None):
        refused = []
        for key, value in messages:
            self._produce(topic, key, value, functools.partial(self._settle, refused, on_sent, value))
        unsent = self._producer.flush(PATIENCE_S)
        if refused or unsent:
            raise ConnectionError(f"{len(refused)} messages refused, {unsent} unsent: {refused[:1]}")

    @staticmethod
    def _settle(refused, on_sent, value, error, message):
        if error:
            refused.append(error)
        else:
            on_sent(value, message)

    def _produce(self, topic, key, value, on_delivery):
        while True:
            try:
                self._producer.produce(topic, msgpack.packb(value), key=key, on_delivery=on_delivery)
                return
            except BufferError:  # the queue of unsent messages is full
                self._producer.poll(POLL_S)

    def results(self, ids, timeout_s, on_wait=lambda: None):
        """Yields the result of each job of these ids that this client has sent, in the order in which they come. Who
        stops reading loses none: what is not read yet comes with the next call. `on_wait` is called while none comes;
        what it raises ends the wait. TimeoutError when nothing came for `timeout_s`."""
        ids = set(ids)
        strangers = ids - set(self._unanswered.values()) - set(self._unread)
        if strangers:
            raise ValueError(f"this client has not sent {sorted(strangers)[:3]}, or their results were read")
        return self._results(ids, timeout_s, on_wait)

    def _results(self, ids, timeout_s, on_wait):
        deadline = time.monotonic() + timeout_s
        while True:
            while (result := self._take_unread(ids)) is not None:
                yield result
                deadline = time.monotonic() + timeout_s
            missing = sum(id in ids for id in self._unanswered.values())
            if missing == 0:
                return
            if self._consume():
                continue
            on_wait()
            if time.monotonic() > deadline:
                raise TimeoutError(f"{missing} jobs without a result for {timeout_s} s")

    def _take_unread(self, ids):
        """The next result, in the order in which they came, of one of these ids; None where there is none."""
        id = next((id for id in self._unread if id in ids), None)
        if id is None:
            return None
        result = self._unread[id].pop(0)
        if not self._unread[id]:
            del self._unread[id]
        return result

    def _consume(self):
        """Keeps the results of our own jobs that came; whether there were any."""
        is_any = False
        for message in self._consumer.consume(num_messages=1000, timeout=POLL_S):
            if message.error():
                raise ConnectionError(str(message.error()))
            result = msgpack.unpackb(message.value())
            id = self._unanswered.pop(_source(result), None)
            if id is not None:  # else somebody else's, or one that came before
                self._unread.setdefault(id, []).append(result)
                is_any = True
        return is_any

    def run(self, jobs, key=None, timeout_s=PATIENCE_S):
        """Sends jobs, at once, and gives an iterator over their results."""
        jobs = list(jobs)
        self.submit(jobs, key)
        return self.results([job["id"] for job in jobs], timeout_s)


def _source(result):
    """Where the job stands that a result answers; None where what is there is no result of a job."""
    source = result.get("source") if isinstance(result, dict) else None
    return (source["topic"], source["partition"], source["offset"]) if source else None
