"""A password in the configuration: who can see it while the worker runs, and what its log tells of floods.
usage: secrets_test.py BUILD_FOLDER"""

import pathlib
import subprocess
import time
import unittest

from worker_flow import BINARY, KafkaFlowTest, headers_of, read_all

SECRET = "correct-horse-battery-staple"
FLOOD = 3000
LINES_MAX, WINDOW_S = 10, 10  # of a flood, whatever its size: so many lines in so many seconds
OTHER_LINES_MAX = 30


class SecretsTest(KafkaFlowTest):
    def start_with_secret(self):
        # one that no broker asks for: it is configured, and used for nothing
        self.worker = self.start_worker(self.config(kafka={
            "bootstrap_servers": self.servers, "group": self.topics.group,
            "consumer": {"sasl.password": SECRET}}, log={"level": "debug"}))
        self.log = self.folder / "worker.log"
        self.wait_until(lambda: "was assigned" in self.log.read_text(), "the worker has joined its group")
        return [self.worker._process.pid, *self.worker.executors()]

    def test_nobody_sees_a_secret_of_a_worker_that_runs(self):
        for pid in self.start_with_secret():
            for name in ("cmdline", "environ"):
                self.assertNotIn(SECRET.encode(), pathlib.Path(f"/proc/{pid}/{name}").read_bytes(), name)
        self.produce(b"no job at all")
        self.wait_until(lambda: read_all(self.servers, self.topics.dead_letters), "a dead letter is there")
        for message in read_all(self.servers, self.topics.dead_letters):
            self.assertNotIn(SECRET, str(headers_of(message)))
        shown = subprocess.run(
            [BINARY, "config", "show", "--config", self.folder / "worker.yaml"], capture_output=True, text=True)
        self.assertNotIn(SECRET, shown.stdout + shown.stderr)
        self.stop_well(self.worker)
        self.assertNotIn(SECRET, self.log.read_text())

    def test_executors_change_no_files_of_others_and_not_their_configuration(self):
        for pid in self.start_with_secret()[1:]:
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            effective = int(next(line for line in status.splitlines() if line.startswith("CapEff")).split()[1], 16)
            self.assertEqual(effective & 0b1011, 0, "no CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER")
            sealed = [path for path in pathlib.Path(f"/proc/{pid}/fd").iterdir()
                      if "gpu-worker-config" in str(path.readlink())]
            self.assertTrue(sealed)
            for path in sealed:
                with self.assertRaises(OSError), open(path, "r+b", buffering=0) as file:
                    file.write(b"x")
        self.stop_well(self.worker)

    def test_a_flood_of_nonsense_is_no_flood_of_lines(self):
        began_s = time.monotonic()
        worker = self.start_worker(self.config())
        self.produce(*(b"nonsense" for _ in range(FLOOD)))
        self.wait_for_no_lag()
        self.stop_well(worker)
        windows = (time.monotonic() - began_s) // WINDOW_S + 2  # the first and the last may have begun or gone on outside
        lines = (self.folder / "worker.log").read_text().splitlines()
        self.assertEqual(len(read_all(self.servers, self.topics.dead_letters)), FLOOD)
        self.assertLess(len(lines), windows * LINES_MAX + OTHER_LINES_MAX, "\n".join(lines[:80]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
