"""Workers whose state file has no room, is cut under them, or tells of a process of the same number.
usage: state_disk_test.py BUILD_FOLDER"""

import os
import resource
import subprocess
import unittest

from worker_flow import BINARY, KafkaFlowTest, SLOW, is_saxpy, saxpy

import msgpack
import worker_process

COUNT = 150


class StateDiskTest(KafkaFlowTest):
    def answered(self):
        return {result["id"]: result for result in self.results()}

    def test_a_full_disk_is_refused_with_a_line_that_says_so(self):
        path, folder = self.folder / "worker.yaml", self.folder / "state"
        folder.mkdir()
        worker_process.write_config(path, self.config(state={"dir": str(folder)}))
        mount = f"mount -t tmpfs -o size=64k none {folder}"
        if subprocess.run(["unshare", "--mount", "sh", "-c", mount], capture_output=True).returncode != 0:
            self.skipTest("this machine lets us mount nothing")
        run = subprocess.run(
            ["unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh", BINARY, "run", "--config", path],
            capture_output=True, text=True, timeout=240)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("no room for the state file", run.stderr)
        self.assertIn("free space on the disk of state.dir", run.stderr)

    def test_a_limit_on_the_size_of_files_is_refused_with_a_line_that_says_so(self):
        self.assert_refused_with_files_up_to(64 << 10, "cannot make memory for counts")
        self.assert_refused_with_files_up_to(1 << 20, "no room for the state file")

    def assert_refused_with_files_up_to(self, limit, sentence):
        path, folder = self.folder / "worker.yaml", self.folder / "state"
        folder.mkdir(exist_ok=True)
        worker_process.write_config(path, self.config(state={"dir": str(folder)}))
        run = subprocess.run(
            [BINARY, "run", "--config", path], capture_output=True, text=True, timeout=240,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn(sentence, run.stderr)
        self.assertRegex(run.stderr, "File too large; raise the limits? .*on the size of files")

    def run_cut(self, delivery):
        state = self.folder / "state"
        worker = self.start_worker(self.config(delivery=delivery, state={"dir": str(state)}, **SLOW))
        self.produce(*(msgpack.packb(saxpy(number)) for number in range(COUNT)))
        self.wait_until(lambda: len(self.results()) > COUNT // 10, "jobs are answered")
        before = worker.executors()
        os.truncate(state / "gpu0.state", 1)
        self.wait_until(lambda: worker.executors() not in ([], before), "an executor takes the place of the one before")
        self.wait_until(lambda: len(self.answered()) == COUNT, "all are answered")
        self.wait_for_no_lag()
        self.stop_well(worker)
        answered = self.answered()
        for number in range(COUNT):
            self.assertTrue(is_saxpy(answered[f"job-{number}"], number))

    def test_a_state_file_that_is_cut_costs_one_executor_at_least_once(self):
        self.run_cut("at_least_once")

    def test_a_state_file_that_is_cut_costs_one_executor_exactly_once(self):
        self.run_cut("exactly_once")
        ids = [result["id"] for result in self.results()]
        self.assertEqual(len(set(ids)), len(ids), "nobody is answered twice")


if __name__ == "__main__":
    unittest.main(verbosity=2)
