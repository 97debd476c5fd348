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

from worker_flow import PATIENCE_S, ROOT, KafkaFlowTest

NODE = ROOT / "build/deps/node/bin/node"
MODULES = ROOT / "build/deps/javascript"
GO_MODULES = ROOT / "build/deps/go"


class JobTest(KafkaFlowTest):
    def test_from_javascript(self):
        if not MODULES.exists():
            self.skipTest("scripts/setup javascript installs Node.js with kafkajs and msgpack")
        self.start_worker(self.config())
        script = self.folder / "job.mjs"  # where modules are looked for beside it
        script.write_text((HERE / "job.mjs").read_text())
        (self.folder / "node_modules").symlink_to(MODULES / "node_modules")
        ran = subprocess.run(
            [NODE, script, self.servers, self.topics.jobs, self.topics.results], capture_output=True, text=True,
            timeout=PATIENCE_S)
        self.assertEqual((ran.returncode, ran.stdout), (0, "ok  FP32 [ 3 ] [ 12.5, 25, 37.5 ]\n"), ran.stderr)

    def test_from_go(self):
        if not GO_MODULES.exists():
            self.skipTest("scripts/setup go installs Go with franz-go and msgpack")
        self.start_worker(self.config())
        built = subprocess.run(
            ["go", "build", "-o", self.folder / "job", "job.go"], cwd=HERE / "go", capture_output=True, text=True,
            env=os.environ | {
                "GOMODCACHE": str(GO_MODULES), "GOCACHE": str(self.folder / "cache"), "GOPATH": str(self.folder / "go"),
                "GOFLAGS": "-mod=readonly -modcacherw", "GOPROXY": "off", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"})
        self.assertEqual(built.returncode, 0, built.stderr)
        ran = subprocess.run([self.folder / "job", self.servers, self.topics.jobs, self.topics.results],
                             capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual((ran.returncode, ran.stdout), (0, "ok  FP32 [3] [12.5 25 37.5]\n"), ran.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
