"""gpu-worker beside kafka_worker.py, from topic to topic of a real Apache Kafka on this machine, round after round in turns.

Each run has a group and a topic of results of its own, and ends when every job has a result, which is checked. Its rate
is that of its results, by the times at which the broker appended the first and the last: starts and ends do not count.
Needs the Kafka that `scripts/setup kafka` fetches.
usage: compare_kafka.py BUILD_FOLDER [--work nothing|add] [--messages N] [--rounds N] [--driver cuda|cpu]"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import uuid

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT / "tests/flow"), str(ROOT / "scripts/python")]

import confluent_kafka
import confluent_kafka.admin
import kafka_cluster
import kafka_topics
import msgpack
import numpy
import worker_process

PARTITIONS, PATIENCE_S, POLL_S = 8, 600, 0.1
ELEMENTS = 1024
X, Y = numpy.arange(ELEMENTS, dtype="<f4"), numpy.ones(ELEMENTS, "<f4")


def job_of(work):
    """As gpu-worker bench sends it: a launch that does nothing, as between topics, or z = x + y over 4 KiB each."""
    if work == "nothing":
        step = {"entry": "nothing", "args": [{"u32": 0}], "grid": [1]}
        buffers, outputs = {}, []
    else:
        step = {"entry": "add", "args": ["x", "y", "z", {"u32": ELEMENTS}], "elements": ELEMENTS}
        buffers = {"x": {"data": X.tobytes(), "bytes": X.nbytes}, "y": {"data": Y.tobytes(), "bytes": Y.nbytes},
                   "z": {"bytes": X.nbytes}}
        outputs = [{"buffer": "z"}]
    return {"v": 1, "id": "bench", "buffers": buffers, "steps": [{"program": "bench", **step}], "outputs": outputs}


def is_right(work, result):
    outputs = [] if work == "nothing" else [(X + Y).tobytes()]
    return result["status"] == "ok" and [output["data"] for output in result["outputs"]] == outputs


class Comparison:
    def __init__(self, options, servers, folder):
        self.options, self.servers, self.folder = options, servers, folder
        self.client = {"bootstrap.servers": servers, "log_level": 2}  # the broker goes before its clients
        self.jobs = f"jobs-{uuid.uuid4().hex[:8]}"
        self.admin = confluent_kafka.admin.AdminClient(self.client)
        kafka_topics.create_topics(servers, [self.jobs], PARTITIONS, 1)
        self.fill()

    def fill(self):
        producer = confluent_kafka.Producer(self.client | {"linger.ms": 5})
        message = msgpack.packb(job_of(self.options.work))
        for _ in range(self.options.messages):
            while True:
                try:
                    producer.produce(self.jobs, message)
                    break
                except BufferError:
                    producer.poll(POLL_S)
        if producer.flush(PATIENCE_S) > 0:
            sys.exit("compare_kafka: the jobs could not be produced")

    def start(self, who, group, results):
        if who == "python":
            return subprocess.Popen([sys.executable, "-B", HERE / "kafka_worker.py", self.servers, group, self.jobs, results])
        config = self.folder / f"{group}.yaml"
        worker_process.write_config(config, {
            "driver": self.options.driver, "kafka": {"bootstrap_servers": self.servers, "group": group},
            "topics": {"jobs": [self.jobs], "results": results, "dead_letters": f"{results}-dead"},
            "state": {"dir": str(self.folder / group)}, "telemetry": {"interval_ms": 0}})
        with open(self.folder / f"{group}.log", "wb") as log:
            return subprocess.Popen([self.options.build / "bin/gpu-worker", "run", "--config", config], stderr=log)

    def wait_for_results(self, process, topic):
        consumer = confluent_kafka.Consumer(self.client | {"group.id": "reader"})
        until = time.monotonic() + PATIENCE_S
        count = 0
        while count < self.options.messages:
            if process.poll() is not None:
                sys.exit(f"compare_kafka: a worker ended with {process.returncode}; its log is in {self.folder}")
            if time.monotonic() > until:
                sys.exit(f"compare_kafka: {count} results in {PATIENCE_S} s")
            time.sleep(POLL_S)
            ends = [consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, number))[1]
                    for number in range(PARTITIONS)]
            count = sum(ends)
        consumer.close()

    def run(self, who):
        """Results a second."""
        name = f"{who}-{uuid.uuid4().hex[:8]}"
        kafka_topics.create_topics(self.servers, [f"{name}-dead"], 1, 1)
        kafka_topics.create_topics(self.servers, [name], PARTITIONS, 1, **{"message.timestamp.type": "LogAppendTime"})
        process = self.start(who, name, name)
        try:
            self.wait_for_results(process, name)
        finally:
            process.terminate()
            process.wait(PATIENCE_S)
        messages = kafka_topics.read_all(self.servers, name)
        if len(messages) != self.options.messages or not all(
                is_right(self.options.work, msgpack.unpackb(message.value())) for message in messages):
            sys.exit(f"compare_kafka: {who} has {len(messages)} results, or wrong ones")
        times_ms = [message.timestamp()[1] for message in messages]
        self.admin.delete_topics([name, f"{name}-dead"])
        return 1000 * len(messages) / max(1, max(times_ms) - min(times_ms)), statistics.mean(len(m.value()) for m in messages)


def spread(values, form):
    return f"{statistics.median(values):{form}} ({min(values):{form}} .. {max(values):{form}})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--work", choices=["nothing", "add"], default="nothing")
    parser.add_argument("--messages", type=int, default=50000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--driver", choices=["cuda", "cpu"], default="cpu")
    options = parser.parse_args()
    cluster = kafka_cluster.KafkaCluster(1)
    rates = {"python": [], "gpu-worker": []}
    with tempfile.TemporaryDirectory(prefix="gpu-worker-bench-") as folder:
        comparison = Comparison(options, cluster.servers, pathlib.Path(folder))
        comparison.run("gpu-worker")  # warms the brokers up
        for _ in range(options.rounds):
            for who in rates:
                rate, result_bytes = comparison.run(who)
                rates[who].append(rate)
                print(f"{who}: {rate:,.0f} jobs/s, results of {result_bytes:.0f} bytes", flush=True)
    cluster.down()
    for who, each in rates.items():
        print(f"{who}: {spread(each, ',.0f')} jobs/s")
    ratios = [worker / python for python, worker in zip(rates["python"], rates["gpu-worker"])]
    print(f"gpu-worker / python: {spread(ratios, '.1f')}")


if __name__ == "__main__":
    main()
