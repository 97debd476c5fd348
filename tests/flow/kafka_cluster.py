"""A real Apache Kafka of the test's own, whose nodes can be stopped, killed and paused."""

import atexit
import os
import pathlib
import subprocess

import confluent_kafka.admin

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/kafka"
FIRST_PORT = 12000  # below the ports that clients get
PORTS = 20  # of each process that starts clusters, so that neighbours stay apart


class KafkaCluster:
    """Ports and verbs are those of scripts/kafka."""

    def __init__(self, brokers):
        port = FIRST_PORT + os.getpid() % 1000 * PORTS
        self._environment = os.environ | {
            "KAFKA_BROKERS": str(brokers), "KAFKA_PORT": str(port), "KAFKA_DIR": f"build/kafka-faults-{os.getpid()}"}
        self.brokers = brokers
        self.proxied_port = port + 2
        self.proxy_port = port + 3
        address = subprocess.run([SCRIPT, "address"], env=self._environment, check=True, capture_output=True, text=True)
        self.servers = address.stdout.strip()
        atexit.register(self.down)  # an interrupted test leaves no servers behind
        self._run("up")

    def _run(self, *arguments):
        subprocess.run([SCRIPT, *arguments], env=self._environment, check=True, timeout=180, stdin=subprocess.DEVNULL)

    def stop(self, *node):
        self._run("stop", *map(str, node))

    def start(self, *node):
        self._run("start", *map(str, node))

    def kill(self, *node):
        self._run("kill", *map(str, node))

    def pause(self):
        self._run("pause")

    def resume(self):
        self._run("resume")

    def down(self):
        atexit.unregister(self.down)
        self._run("down")

    def leader_of(self, topic, partition):
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": self.servers})
        return admin.list_topics(topic, timeout=30).topics[topic].partitions[partition].leader
