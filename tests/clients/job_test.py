"""A job is sent and its result read from other languages, with the libraries that are usual there: the format is no secret
of the Python client.
usage: job_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA."""

import os
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "flow"))

from worker_flow import PATIENCE_S, ROOT, KafkaFlowTest, read_all

import confluent_kafka
import msgpack

NODE = ROOT / "build/deps/node/bin/node"
MODULES = ROOT / "build/deps/javascript"
GO_MODULES = ROOT / "build/deps/go"


class JobTest(KafkaFlowTest):
    def javascript(self):
        if not MODULES.exists():
            self.skipTest("scripts/setup javascript installs Node.js with kafkajs and msgpack")
        script = self.folder / "job.mjs"  # where modules are looked for beside it
        script.write_text((HERE / "job.mjs").read_text())
        (self.folder / "node_modules").symlink_to(MODULES / "node_modules")
        return [NODE, script]

    def go(self):
        if not GO_MODULES.exists():
            self.skipTest("scripts/setup go installs Go with franz-go and msgpack")
        built = subprocess.run(
            ["go", "build", "-o", self.folder / "job", "job.go"], cwd=HERE / "go", capture_output=True, text=True,
            env=os.environ | {
                "GOMODCACHE": str(GO_MODULES), "GOCACHE": str(self.folder / "cache"), "GOPATH": str(self.folder / "go"),
                "GOFLAGS": "-mod=readonly -modcacherw", "GOPROXY": "off", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"})
        self.assertEqual(built.returncode, 0, built.stderr)
        return [self.folder / "job"]

    def start(self, command):
        """The client, once its job is sent; and the job, and where it stands."""
        client = subprocess.Popen([*command, self.servers, self.topics.jobs, self.topics.results],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(client.kill)
        (message,) = self.wait_until(lambda: read_all(self.servers, self.topics.jobs), "the job is sent")
        return client, msgpack.unpackb(message.value()), (message.topic(), message.partition(), message.offset())

    def forge(self, job, source, **output):
        """A result that a stranger writes."""
        y = {"name": "y", "datatype": "FP32", "shape": [3], "data": bytes(12), **output}
        result = {"v": 1, "id": job["id"], "status": "ok", "outputs": [y]}
        producer = confluent_kafka.Producer({"bootstrap.servers": self.servers})
        producer.produce(self.topics.results, msgpack.packb(result), headers={
            "gpu-worker-job-id": job["id"], "gpu-worker-status": "ok", "gpu-worker-source": "/".join(map(str, source))})
        self.assertEqual(0, producer.flush(PATIENCE_S))

    def assert_takes_only_its_own(self, command, expected):
        """A result of another message under the same id comes first."""
        client, job, (topic, partition, offset) = self.start(command)
        self.forge(job, (topic, partition, offset + 1))
        self.start_worker(self.config())
        said, complaint = client.communicate(timeout=PATIENCE_S)
        self.assertEqual((client.returncode, said), (0, expected), complaint)

    def assert_refuses_what_does_not_fit(self, command):
        client, job, source = self.start(command)
        self.forge(job, source, shape=[2], data=bytes(8))
        said, complaint = client.communicate(timeout=PATIENCE_S)
        self.assertEqual((client.returncode, said), (1, ""))
        self.assertIn("the answer does not fit the job", complaint)

    def test_from_javascript(self):
        self.assert_takes_only_its_own(self.javascript(), "ok  FP32 [ 3 ] [ 12.5, 25, 37.5 ]\n")

    def test_javascript_refuses_what_does_not_fit(self):
        self.assert_refuses_what_does_not_fit(self.javascript())

    def test_from_go(self):
        self.assert_takes_only_its_own(self.go(), "ok  FP32 [3] [12.5 25 37.5]\n")

    def test_go_refuses_what_does_not_fit(self):
        self.assert_refuses_what_does_not_fit(self.go())


if __name__ == "__main__":
    unittest.main(verbosity=2)
