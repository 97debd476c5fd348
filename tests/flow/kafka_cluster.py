"""A real Apache Kafka of the test's own, whose nodes can be stopped, killed and paused."""

import atexit
import os
import pathlib
import random
import shutil
import socket
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/kafka"
PORTS = range(12000, 32000)  # below the ports that clients get
# For brokers that live for a minute, on a machine that tests share: they take half of the CPU time to start. No second
# compiler, one thread of a garbage collector, and jars of which scripts/kafka knows the digests need no verification.
BRIEF = ("-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
         "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote")
BLOCK = 20  # ports of each cluster; the last one is never listened on


def claim_ports():
    """A block of ports that are free, and a socket bound to its last: while that is open, nobody else claims them."""
    blocks = list(range(PORTS.start, PORTS.stop, BLOCK))
    random.shuffle(blocks)
    for first in blocks:
        claim = socket.socket()
        try:
            claim.bind(("127.0.0.1", first + BLOCK - 1))
            for port in range(first, first + BLOCK - 1):
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as brokers do
                    probe.bind(("127.0.0.1", port))
            return first, claim
        except OSError:
            claim.close()
    raise RuntimeError(f"no block of {BLOCK} free ports within {PORTS}")


class KafkaCluster:
    """Verbs are those of scripts/kafka. The cluster ends with the process that made it, however that ends."""

    def __init__(self, brokers, java_options=""):
        port, self._claim = claim_ports()
        (ROOT / "build").mkdir(exist_ok=True)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kafka-tests-", dir=ROOT / "build"))
        self._environment = os.environ | {
            "KAFKA_BROKERS": str(brokers), "KAFKA_PORT": str(port), "KAFKA_DIR": str(self.folder.relative_to(ROOT)),
            "JDK_JAVA_OPTIONS": java_options}
        self.brokers = brokers
        self.proxied_port = port + 2
        self.proxy_port = port + 3
        address = subprocess.run([SCRIPT, "address"], env=self._environment, check=True, capture_output=True, text=True)
        self.servers = address.stdout.strip()
        # Forked away, so that what kills this process with all its children leaves somebody to clean up.
        self._guard = subprocess.Popen(
            ["setsid", "--fork", SCRIPT, "guard"], env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        atexit.register(self.down)
        self._run("up")

    def _run(self, *arguments):
        subprocess.run([SCRIPT, *arguments], env=self._environment, check=True, timeout=600, stdin=subprocess.DEVNULL)

    def stop(self, *node):
        self._run("stop", *map(str, node))

    def start(self, *node):
        self._run("start", *map(str, node))

    def kill(self, *node):
        self._run("kill", *map(str, node))

    def pause(self, *node):
        self._run("pause", *map(str, node))

    def resume(self, *node):
        self._run("resume", *map(str, node))

    def keep(self, folder):
        """A copy of what its nodes had, once they are dead: configurations, data and logs."""
        self.kill()
        shutil.copytree(self.folder, folder)

    def down(self):
        atexit.unregister(self.down)
        self._guard.communicate()  # it cleans up once its input ends, and then ends its output
        self._claim.close()
