"""The container image: built from its Dockerfile on a Debian 12 of our own, run without root, listed in an SBOM.
usage: image_test.py BUILD"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from rooms import ROOT, Rooms, copy_sources, run_read_only

BUILD = pathlib.Path(sys.argv.pop(1))
SBOM_TOOLS = ROOT / "build/deps/sbom/bin"
USER = "65532:65532"
SIZE_MAX = 250 << 20


class ImageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rooms = cls.enterClassContext(Rooms())
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        copy_sources(cls.folder / "source")
        cls.rooms.make_base("localhost/debian")
        cls.rooms.buildah("build", "--quiet", "--build-arg", "BASE=localhost/debian", "--build-arg", "REVISION=abc",
                          "-f", "deploy/container/Dockerfile", "-t", "localhost/gpu-worker", ".", cwd=cls.folder / "source")
        cls.root = cls.rooms.root_of("localhost/gpu-worker")

    def setUp(self):
        self.state = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        os.chown(self.state, *map(int, USER.split(":")))

    def run_inside(self, *command):
        return run_read_only(self.root, self.state, USER, *command)

    def test_it_starts_the_worker_as_a_user_without_a_name(self):
        config = json.loads(self.rooms.buildah("inspect", "--type", "image", "localhost/gpu-worker"))["OCIv1"]["config"]
        self.assertEqual(config["User"], USER)
        self.assertEqual(config["Entrypoint"], ["gpu-worker"])
        self.assertEqual(config["Cmd"], ["run", "--config", "/etc/gpu-worker/worker.yaml"])
        self.assertIn("LD_LIBRARY_PATH=/usr/local/nvidia/lib64", config["Env"])
        version = re.search(r"project\(gpu-worker VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
        labels = {key.removeprefix("org.opencontainers.image."): value for key, value in config["Labels"].items()}
        self.assertLessEqual({"version": version, "revision": "abc", "licenses": "Apache-2.0"}.items(), labels.items())

    def test_its_configuration_is_right_where_nothing_can_be_written(self):
        done = self.run_inside("gpu-worker", "check", "--config", "/etc/gpu-worker/worker.yaml")
        self.assertEqual((done.returncode, done.stdout), (0, "ok: /etc/gpu-worker/worker.yaml, 7 programs\n"), done.stderr)
        self.assertIn("\ncommit abc\n", self.run_inside("gpu-worker", "version").stdout)
        self.assertNotEqual(self.run_inside("touch", "/tmp/written").returncode, 0)

    def test_it_runs_a_job_where_only_the_state_can_be_written(self):
        job = "/usr/share/doc/gpu-worker/examples/saxpy.yaml"
        done = self.run_inside("sh", "-c", f"""
            cd /var/lib/gpu-worker && gpu-worker submit --encode {job} >job.msgpack &&
            TMPDIR=$PWD exec gpu-worker run --driver cpu --config /etc/gpu-worker/worker.yaml --jobs job.msgpack --results results""")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("done: 1 jobs ok, 0 failed", done.stderr)
        self.assertIn(b"saxpy-by-hand", (self.state / "results").read_bytes())

    def test_it_has_no_compiler_no_source_and_is_small(self):
        for name in ("gcc", "cc", "clang", "cmake", "ld", "make", "python3"):
            self.assertNotEqual(self.run_inside("which", name).returncode, 0, name)
        self.assertFalse((self.root / "source").exists())
        size = int(subprocess.run(["du", "-sxb", self.root], check=True, capture_output=True, text=True).stdout.split()[0])
        print(f"the image has {size >> 20} MiB", file=sys.stderr)
        self.assertLess(size, SIZE_MAX)

    def test_its_bill_of_materials_is_valid_and_names_every_package_with_version_and_licence(self):
        file = self.folder / "sbom.spdx.json"
        subprocess.run([ROOT / "deploy/container/sbom", self.root, file], check=True)
        validated = subprocess.run([SBOM_TOOLS / "pyspdxtools", "-i", file], capture_output=True, text=True)
        self.assertEqual(validated.returncode, 0, validated.stdout + validated.stderr)
        document = json.loads(file.read_text())
        self.assertEqual(document["spdxVersion"], "SPDX-2.3")
        listed = {package["name"]: package for package in document["packages"] if package["primaryPackagePurpose"] != "SOURCE"}
        installed = subprocess.run(["dpkg-query", f"--root={self.root}", "-W", "-f", "${Package} ${Version}\n"], check=True,
                                   capture_output=True, text=True).stdout.splitlines()
        self.assertGreater(len(installed), 50)
        for name, version in map(str.split, installed):
            self.assertEqual(listed[name]["versionInfo"], version)
            self.assertNotIn(listed[name]["licenseDeclared"], ("NOASSERTION", "NONE"), name)
        self.assertEqual(listed["gpu-worker"]["licenseDeclared"], "Apache-2.0")
        self.assertIn("librdkafka1", listed)


if __name__ == "__main__":
    unittest.main()
