"""What `run` refuses, `check` refuses, in the same words; all that is wrong at once, and code 3.
usage: refusals_test.py BINARY"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BINARY = pathlib.Path(sys.argv.pop(1)).resolve()
PROGRAMS = BINARY.parents[1] / "share/gpu-worker/programs"
TIMEOUT_S = 120


class RefusalsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gpu-worker-refusals-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "file").write_text("text")
        self.programs = self.folder / "programs"
        shutil.copytree(PROGRAMS / "saxpy", self.programs / "saxpy")

    def gpu_worker(self, command, config, *options):
        path = self.folder / "worker.yaml"
        path.write_text(config if isinstance(config, str) else json.dumps(config))
        return subprocess.run([BINARY, command, "--config", path, *options], capture_output=True, text=True,
                              timeout=TIMEOUT_S, stdin=subprocess.DEVNULL,
                              env=os.environ | {"XDG_STATE_HOME": str(self.folder / "state")})

    def problems_of(self, command, config):
        """The lines, without the command's name."""
        done = self.gpu_worker(command, config)
        self.assertEqual(done.returncode, 3, done.stderr)
        prefix = f"gpu-worker {command}: "
        lines = done.stderr.splitlines()
        self.assertTrue(all(line.startswith(prefix) for line in lines), done.stderr)
        return [line.removeprefix(prefix) for line in lines]

    def table(self):
        """What is wrong, and words of its line."""
        file = str(self.folder / "file")
        return {
            "no YAML": ("lanes: [", "worker.yaml:2:1: while parsing"),
            "an unknown key": ({"drivr": "cpu"}, "did you mean 'driver'"),
            "a number out of range": ({"lanes": 0}, "lanes is 0"),
            "settings that do not go together": ({"retry": {"base_ms": "1h"}}, "retry.base_ms is more"),
            "no programs": ({"programs": {"dir": str(self.folder / "nowhere")}}, "set programs.dir"),
            "a folder without programs": ({"programs": {"dir": str(self.folder)}}, "worker.yaml|no program is in it"),
            "programs without an image for cuda": (
                {"driver": "cuda", "programs": {"dir": str(self.programs_without("ptx"))}},
                "without-ptx: none of the 1 programs has an image for driver: cuda.*; set `driver`"),
            "programs without an image for the CPU": (
                {"programs": {"dir": str(self.programs_without("cpu"))}},
                "without-cpu: none of the 1 programs has an image for driver: cpu.*; set `driver`"),
            "a state folder below a file": ({"state": {"dir": f"{file}/state"}}, "state.dir: Not a directory"),
            "a state folder that is a file": ({"state": {"dir": file}}, "state.dir: Not a directory"),
            "a blob folder below a missing one": ({"blobs": {"dir": str(self.folder / "a/b")}}, "blobs.dir: No such"),
            "a cache folder that is a file": ({"blobs": {"url": "http://127.0.0.1:1", "cache_dir": file}},
                                              "blobs.cache_dir: Not a directory"),
            "an address file in no folder": ({"broker": "embedded", "embedded": {
                "address_file": str(self.folder / "a/b")}}, "embedded.address_file: No such"),
            "an NVTX library that is none": ({"profile": {"nvtx_library": file}}, "no NVTX in"),
            "an NVTX library that is missing": ({"profile": {"nvtx_library": "libnone.so.9"}}, "no NVTX in"),
            "a key that librdkafka does not know": ({"kafka": {"consumer": {"fetch.min.byte": "1"}}},
                                                    'kafka.consumer.fetch.min.byte: No such configuration property'),
            "a value that it does not take": ({"kafka": {"producer": {"linger.ms": "soon"}}},
                                              "kafka.producer.linger.ms: Invalid value"),
            "certificates that are missing": ({"kafka": {"consumer": {"ssl.ca.location": "/nowhere/ca.pem"}}},
                                              "ssl.ca.location: /nowhere/ca.pem: No such file"),
            "a password file that is missing": ({"kafka": {"consumer": {"sasl.password": {"file": "/nowhere/pw"}}}},
                                                "/nowhere/pw: No such file"),
            "an address that is none": ({"http": {"listen": "nowhere"}}, "is not a host with a port"),
            "a script of faults": ({"cpu_driver": {"faults": "cuMemAlloc:explode@1"}}, "unknown effect"),
            "an address of another machine": ({"http": {"listen": "192.0.2.1:9400"}}, "Cannot assign"),
        }

    def programs_without(self, kind):
        folder = self.folder / f"without-{kind}"
        shutil.copytree(self.programs, folder)
        self.edit(folder, f"  - {{kind: {kind}, file: saxpy.{'so' if kind == 'cpu' else kind}}}\n", "")
        return folder

    def edit(self, programs, old, new):
        manifest = programs / "saxpy/program.yaml"
        text = manifest.read_text()
        self.assertIn(old, text)
        manifest.write_text(text.replace(old, new))

    def complete(self, config):
        good = {"driver": "cpu", "programs": {"dir": str(self.programs)}}
        return config if isinstance(config, str) else good | config

    def test_run_and_check_refuse_the_same_in_the_same_words(self):
        for what, (config, words) in self.table().items():
            with self.subTest(what):
                found = self.problems_of("check", self.complete(config))
                self.assertRegex("\n".join(found), words)
                self.assertEqual(self.problems_of("run", self.complete(config)), found)

    def test_all_that_is_wrong_is_said_at_once_a_line_each(self):
        file = str(self.folder / "file")
        config = self.complete({
            "lanes": 0, "state": {"dir": file}, "blobs": {"dir": file}, "profile": {"nvtx_library": file},
            "http": {"listen": "192.0.2.1:1"}, "programs": {"dir": str(self.folder / "nowhere")},
            "kafka": {"consumer": {"a": "1", "b": "2"}, "producer": {"ssl.key.location": "/nowhere"}}})
        found = self.problems_of("check", config)
        self.assertEqual(len(found), 9, found)
        self.assertEqual(self.problems_of("run", config), found)

    def test_check_makes_no_folder(self):
        config = self.complete({"state": {"dir": str(self.folder / "made/by/run")},
                                "kafka": {"consumer": {"fetch.min.bytes": "1"}, "producer": {"linger.ms": "5"}}})
        done = self.gpu_worker("check", config)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse((self.folder / "made").exists())

    def test_a_run_of_files_needs_neither_state_nor_brokers(self):
        config = self.complete({"state": {"dir": str(self.folder / "file")}, "kafka": {"consumer": {"a": "1"}}})
        (self.folder / "jobs").write_bytes(b"")
        done = self.gpu_worker("run", config, "--jobs", str(self.folder / "jobs"), "--results", os.devnull)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_run_whose_programs_all_need_another_device_is_refused(self):
        self.edit(self.programs, "  - name: saxpy\n", "  - name: saxpy\n    requires: {compute_capability: 9.9}\n")
        (self.folder / "jobs").write_bytes(b"")
        files = ("--jobs", str(self.folder / "jobs"), "--results", os.devnull)
        for more in ([], ["--no-supervisor"]):
            done = self.gpu_worker("run", self.complete({}), *files, *more)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertRegex(done.stderr, r"none of the 1 programs can run on .*compute capability 9\.0.*; add a program")
        shutil.copytree(PROGRAMS / "reduce_sum", self.programs / "reduce_sum")
        done = self.gpu_worker("run", self.complete({}), *files)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
