"""A worker whose answers a test says by hand."""

import threading

import confluent_kafka
import msgpack

PATIENCE_S = 240  # with what must happen: it ends a test that hangs, and says nothing of how quick a machine is


class FakeWorker:
    """Takes what is sent to the jobs' topic of librdkafka's own broker, and answers what `say` makes of it: a list of
    results, or parts of them."""

    def __init__(self, test, say):
        self.broker = confluent_kafka.Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 3})
        (broker,) = self.broker.list_topics(timeout=PATIENCE_S).brokers.values()
        self.address = f"{broker.host}:{broker.port}"
        self.say, self.jobs, self.is_over = say, [], False
        maker = confluent_kafka.Consumer({
            "bootstrap.servers": self.address, "group.id": "maker", "allow.auto.create.topics": True})
        for topic in ("jobs", "results"):  # who asks with this setting makes it
            maker.list_topics(topic, timeout=PATIENCE_S)
        maker.close()
        self.thread = threading.Thread(target=self.work)
        self.thread.start()
        test.addCleanup(self.stop)

    def stop(self):
        self.is_over = True
        self.thread.join()

    def work(self):
        consumer = confluent_kafka.Consumer({
            "bootstrap.servers": self.address, "group.id": "worker", "fetch.wait.max.ms": 2, "log_level": 3})
        partitions = consumer.list_topics("jobs", timeout=PATIENCE_S).topics["jobs"].partitions
        consumer.assign([confluent_kafka.TopicPartition("jobs", number, 0) for number in partitions])
        while not self.is_over:
            message = consumer.poll(0.05)
            if message is None or message.error() is not None:
                continue
            job = msgpack.unpackb(message.value())
            self.jobs.append(job)
            self.partition, self.key = message.partition(), message.key()
            source = {"topic": "jobs", "partition": message.partition(), "offset": message.offset()}
            for result in self.say(job):
                whole = {"id": job["id"], "status": "ok", "outputs": [], "source": source, **result}
                where = "/".join(map(str, whole["source"].values()))
                self.broker.produce("results", msgpack.packb(whole),
                                    headers={"gpu-worker-job-id": whole["id"], "gpu-worker-source": where})
            self.broker.poll(0)
        consumer.close()
