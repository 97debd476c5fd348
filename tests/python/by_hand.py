"""A worker whose answers a test says by hand, and children that a test forks."""

import os
import signal
import threading
import time
import traceback

import confluent_kafka
import msgpack

PATIENCE_S = 240  # with what must happen: it ends a test that hangs, and says nothing of how quick a machine is


def start_forked(run):
    """A child that runs it; its process id. It exits with 0 where that raises nothing."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            run()
            status = 0
        except BaseException:  # os._exit() would leave it unsaid
            traceback.print_exc()
        finally:
            os._exit(status)
    return pid


def await_child(pid):
    """The exit status. One that hangs is killed in the end."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


def run_forked(run):
    return await_child(start_forked(run))


class FakeWorker:
    """Takes what is sent to the jobs' topic of librdkafka's own broker, and answers what `say` makes of it: a list of
    results, or parts of them. Of a job that it answers with nothing a test says later what it shows, and the answer."""

    def __init__(self, test, say):
        self.broker = confluent_kafka.Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 3})
        (broker,) = self.broker.list_topics(timeout=PATIENCE_S).brokers.values()
        self.address = f"{broker.host}:{broker.port}"
        self.say, self.jobs, self.sources, self.is_over = say, [], {}, False
        maker = confluent_kafka.Consumer({
            "bootstrap.servers": self.address, "group.id": "maker", "allow.auto.create.topics": True})
        for topic in ("jobs", "results", "progress"):  # who asks with this setting makes it
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
            self.sources[job["id"]] = source
            for result in self.say(job):
                self.answer(job["id"], result)
        consumer.close()

    def answer(self, id, result):
        whole = {"id": id, "status": "ok", "outputs": [], "source": self.sources[id], **result}
        where = "/".join(map(str, whole["source"].values()))
        self.broker.produce("results", msgpack.packb(whole),
                            headers={"gpu-worker-job-id": whole["id"], "gpu-worker-source": where})
        self.broker.poll(0)

    def show(self, id, **shown):
        """On one partition, so that it is read in this order."""
        whole = {"v": 1, "id": id, "attempt": 1, "rounds": 1, "live": 1, "outputs": [], "source": self.sources[id]}
        self.show_bytes(msgpack.packb({**whole, **shown}))

    def show_bytes(self, message):
        self.broker.produce("progress", message, partition=0)
        self.broker.poll(0)
