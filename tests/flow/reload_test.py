"""SIGHUP: a worker reads its configuration and programs again, and never ends by it.
usage: reload_test.py BUILD_FOLDER"""

import os
import pathlib
import signal
import subprocess
import unittest

from worker_flow import BINARY, FlowTest, is_saxpy, saxpy

import gpu_worker as gw
import msgpack
import worker_process

END_TIMEOUT_S = 120


def holds_back_hangups(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    blocked = next(line.split()[1] for line in lines if line.startswith("SigBlk:"))
    return bool(int(blocked, 16) & 1 << (signal.SIGHUP - 1))


class ReloadTest(FlowTest):
    def write_config(self, **config):
        path = self.folder / "worker.yaml"
        worker_process.write_config(path, {"driver": "cpu", "lanes": 2} | config)
        return path

    def start(self, *arguments, stdin=subprocess.PIPE):
        log = self.folder / "log"
        with open(log, "wb") as output:
            process = subprocess.Popen(
                [BINARY, "run", *arguments], stdin=stdin, stdout=output, stderr=output,
                env=os.environ | {"XDG_STATE_HOME": str(self.folder / "state")})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_until(lambda: process.poll() is not None or holds_back_hangups(process.pid), "a worker that holds hangups back")
        return process, log

    # SIGHUP never ends a worker

    def test_hangups_end_no_worker_from_its_start_to_its_end(self):
        for options in ([], ["--no-supervisor"]):
            results = self.folder / "results"
            process, log = self.start("--config", self.write_config(), "--jobs", "-", "--results", results, *options)
            for number in range(50):
                process.send_signal(signal.SIGHUP)
                process.stdin.write(msgpack.packb(saxpy(number)))
                process.stdin.flush()
            process.stdin.close()
            def has_ended():
                process.send_signal(signal.SIGHUP)
                return process.poll() is not None
            self.wait_until(has_ended, "the end of the run", END_TIMEOUT_S)
            self.assertEqual(process.returncode, 0, log.read_text())
            answered = list(gw.read_results(results))
            self.assertEqual({result["id"] for result in answered}, {f"job-{number}" for number in range(50)})
            self.assertTrue(all(is_saxpy(result, int(result["id"].removeprefix("job-"))) for result in answered))
            results.unlink()


if __name__ == "__main__":
    unittest.main(verbosity=2)
