"""Clients that use the same ids at once: each gets the results of its own jobs, and one that stops reading loses none.
Python clients and `gpu-worker submit`, on a real Kafka, with both deliveries.
usage: same_ids_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA"""

import json
import os
import subprocess
import unittest

from job_client import JobClient
from worker_flow import BINARY, PATIENCE_S, KafkaFlowTest, is_saxpy, read_all, saxpy

import worker_process

CLIENTS = 3
JOBS = 40
SUBMITS = 4


def job_of(client, number):
    """Gives the same id in every client, and another result."""
    return saxpy(client * JOBS + number) | {"id": f"job-{number}"}


class SameIdsTest(KafkaFlowTest):
    def client(self):
        client = JobClient(self.servers, self.topics.jobs, self.topics.results)
        self.addCleanup(client.close)
        return client

    def assert_own(self, delivery):
        clients = [self.client() for _ in range(CLIENTS)]
        for number, client in enumerate(clients):
            client.submit([job_of(number, job) for job in range(JOBS)])
        worker = self.start_worker(self.config(delivery=delivery, commit_interval_ms="50ms"))
        for number, client in enumerate(clients):
            ids = [f"job-{job}" for job in range(JOBS)]
            few = []
            for result in client.results(ids, PATIENCE_S):
                few.append(result)
                if len(few) == JOBS // 4:
                    break
            read = {result["id"] for result in few}
            rest = list(client.results([id for id in ids if id not in read], PATIENCE_S))
            self.assertEqual(sorted(result["id"] for result in few + rest), sorted(ids))
            for result in few + rest:
                job = int(result["id"].removeprefix("job-"))
                self.assertTrue(is_saxpy(result, number * JOBS + job), f"client {number} got another's {result['id']}")
        self.stop_well(worker)

    def submit(self, number, config):
        """A submit that waits for its result: id `same`, and an x of its own."""
        path = self.folder / f"submit-{number}.yaml"
        path.write_text(json.dumps({
            "id": "same",
            "buffers": {"x": {"data": {"f32": [number]}, "datatype": "FP32", "shape": [1]},
                        "y": {"data": {"f32": [1]}, "datatype": "FP32", "shape": [1]}},
            "steps": [{"program": "saxpy", "args": [{"f32": 2}, "x", "y", {"u32": 1}], "elements": 1}],
            "outputs": [{"buffer": "y"}]}))
        process = subprocess.Popen(
            [BINARY, "submit", "--config", config, "--timeout", "240", path], stdout=subprocess.PIPE, text=True,
            env=os.environ | {"XDG_STATE_HOME": str(self.folder / "state")})
        self.addCleanup(process.kill)
        return process

    def test_clients_with_at_least_once(self):
        self.assert_own("at_least_once")

    def test_clients_with_exactly_once(self):
        self.assert_own("exactly_once")

    def test_submits(self):
        config = self.folder / "submit.yaml"
        worker_process.write_config(config, self.config())
        submits = [self.submit(number, config) for number in range(SUBMITS)]
        # All of them wait for one worker, which comes last.
        self.wait_until(lambda: len(read_all(self.servers, self.topics.jobs)) == SUBMITS, "all jobs are sent")
        worker = self.start_worker(self.config())
        for number, submit in enumerate(submits):
            said, _ = submit.communicate(timeout=PATIENCE_S)
            self.assertEqual(submit.returncode, 0)
            self.assertIn(f"[{2 * number + 1}]", said)
        self.stop_well(worker)


if __name__ == "__main__":
    unittest.main(verbosity=2)
