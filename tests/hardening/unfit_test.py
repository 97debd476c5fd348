"""A worker that cannot work takes nothing: `run` refuses, with exit code 3, what `check` refuses, and an executor that
finds its programs gone ends the worker. On a real Kafka, with both deliveries: no message is answered or committed.
usage: unfit_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA"""

import os
import re
import shutil
import signal
import unittest

import msgpack
from worker_flow import BUILD, KafkaFlowTest, is_saxpy, lag, read_all, saxpy

PROGRAMS = BUILD / "share/gpu-worker/programs"
JOBS = 50
CONFIG = 3


class UnfitTest(KafkaFlowTest):
    def setUp(self):
        super().setUp()
        self.programs = self.folder / "programs"

    def copy_programs(self):
        shutil.rmtree(self.programs, ignore_errors=True)
        self.programs.mkdir()
        for name in ("saxpy", "gemm_tiled"):
            if (PROGRAMS / name).exists():
                shutil.copytree(PROGRAMS / name, self.programs / name)

    def spoil_nothing(self):
        shutil.rmtree(self.programs)

    def spoil_all(self):
        shutil.rmtree(self.programs)
        self.programs.mkdir()

    def spoil_manifest(self):
        with open(self.programs / "saxpy/program.yaml", "a") as manifest:
            manifest.write("no_such_key: 1\n")

    def spoil_image(self):
        next((self.programs / "saxpy").glob("*.so")).unlink()

    def config(self, **more):
        return super().config(programs={"dir": str(self.programs)}, **more)

    def assert_refused(self, what, config):
        for command in ("check", "run"):
            ended = self.run_to_end(config, command)
            self.assertEqual(ended.returncode, CONFIG, f"{what}: {command}: {ended.stderr}")
            self.assertIn(f"gpu-worker {command}: ", ended.stderr)

    def assert_nothing_taken(self):
        self.assertEqual(lag(self.servers, self.topics), JOBS)
        self.assertEqual(read_all(self.servers, self.topics.dead_letters), [])
        self.assertEqual(read_all(self.servers, self.topics.results), [])

    def assert_takes_nothing(self, delivery):
        self.produce(*(msgpack.packb(saxpy(number)) for number in range(JOBS)))
        for spoil in (self.spoil_nothing, self.spoil_all, self.spoil_manifest, self.spoil_image):
            self.copy_programs()
            spoil()
            self.assert_refused(spoil.__name__, self.config(delivery=delivery))
        self.copy_programs()
        file = self.folder / "file"
        file.touch()
        for folders in ({"blobs": {"dir": str(file)}}, {"blobs": {"dir": str(file / "below")}},
                        {"blobs": {"dir": str(self.folder / "none/below")}}, {"state": {"dir": str(file)}},
                        {"blobs": {"url": "http://127.0.0.1:1/", "cache_dir": str(file)}}):
            self.assert_refused(folders, self.config(delivery=delivery, **folders))
        self.assert_nothing_taken()
        worker = self.start_worker(self.config(delivery=delivery, commit_interval_ms="50ms"))
        self.wait_for_no_lag()
        self.stop_well(worker)
        for result in self.results():
            self.assertTrue(is_saxpy(result, int(result["id"].removeprefix("job-"))))

    def assert_ends_without_programs(self, delivery):
        self.copy_programs()
        worker = self.start_worker(self.config(delivery=delivery, commit_interval_ms="50ms"))
        log = self.folder / "worker.log"
        self.wait_until(lambda: " ready: " in log.read_text(), "the executor is ready")
        self.spoil_all()
        os.kill(worker.executors()[0], signal.SIGKILL)
        self.produce(*(msgpack.packb(saxpy(number)) for number in range(JOBS)))
        self.assertEqual(worker.wait(240), CONFIG)
        self.assertEqual(read_all(self.servers, self.topics.dead_letters), [])

    def test_a_program_that_does_not_load_on_the_device(self):
        self.copy_programs()
        self.produce(*(msgpack.packb(saxpy(number)) for number in range(JOBS)))
        for fault in ("no_binary_for_gpu", "invalid_ptx"):
            ended = self.run_to_end(self.config(cpu_driver={"faults": f"cuModuleLoadDataEx:{fault}@*"}), "run")
            self.assertEqual(ended.returncode, CONFIG, ended.stderr)
            self.assertIn("program 'saxpy' cannot be loaded: ", ended.stderr)
            self.assertIn("take it out of programs.dir", ended.stderr)
        self.assert_nothing_taken()

    def test_programs_of_which_none_fits_the_device(self):
        self.copy_programs()
        for manifest in self.programs.glob("*/program.yaml"):
            manifest.write_text(re.sub(r"(?m)^  - name: (\w+)$", r"  - name: \1\n    requires: {compute_capability: 9.9}",
                                       manifest.read_text()))
        self.produce(*(msgpack.packb(saxpy(number)) for number in range(JOBS)))
        ended = self.run_to_end(self.config(), "run")
        self.assertEqual(ended.returncode, CONFIG, ended.stderr)
        self.assertRegex(ended.stderr, r"none of the \d+ programs can run on .*; add a program that fits it")
        self.assert_nothing_taken()

    def test_what_check_refuses_at_least_once(self):
        self.assert_takes_nothing("at_least_once")

    def test_what_check_refuses_exactly_once(self):
        self.assert_takes_nothing("exactly_once")

    def test_programs_that_vanish_at_least_once(self):
        self.assert_ends_without_programs("at_least_once")

    def test_programs_that_vanish_exactly_once(self):
        self.assert_ends_without_programs("exactly_once")


if __name__ == "__main__":
    unittest.main(verbosity=2)
