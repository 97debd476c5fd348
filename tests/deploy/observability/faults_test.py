"""Faults of a worker at a real Apache Kafka: /status.json, from which the page and `top` are drawn, an alert in a real
Prometheus, and gpu-worker explain name the cause of each.
usage: faults_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA"""

import json
import os
import pathlib
import signal
import sys
import types
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "flow"))

from worker_environment import for_faults
from worker_flow import BUILD, SLOW, KafkaFlowTest, gw, reserve_address, saxpy

import confluent_kafka
import msgpack
import numpy
from prometheus import Prometheus


class FaultsTest(KafkaFlowTest):
    @classmethod
    def setUpClass(cls):
        """One Prometheus, which takes seconds to begin, and in which each test's worker is a job of its own."""
        super().setUpClass()
        owner = types.SimpleNamespace(addCleanup=cls.addClassCleanup, enterContext=cls.enterClassContext)
        cls.addresses = {name: reserve_address(owner) for name in unittest.defaultTestLoader.getTestCaseNames(cls)}
        cls.prometheus = Prometheus(owner, cls.addresses)

    def setUp(self):
        super().setUp()
        self.use_environment(for_faults())
        self.job = self._testMethodName
        self.address = self.addresses[self.job]

    def start(self, **more):
        self.settings = self.config(http={"listen": self.address}, retry={"max_attempts": 2, "base_ms": "1ms"}) | more
        worker = self.start_worker(self.settings)
        self.wait_until(lambda: self.prometheus.has_scraped(self.job, 1), "Prometheus scrapes the worker")
        return worker

    def send(self, *jobs, key=b"one"):
        self.produce(*map(msgpack.packb, jobs), key=key)

    def status(self):
        try:
            with urllib.request.urlopen(f"http://{self.address}/status.json", timeout=240) as answer:
                return answer.read().decode()
        except OSError:
            return ""

    def assert_named(self, alert, labels, in_status, job=None, in_sentences=""):
        """`labels` are the alert's; the others are texts."""
        def fires():
            return labels.items() <= self.prometheus.alerts(self.job).get(alert, {"": ""}).items()
        self.wait_until(fires, f"{alert} {labels}")
        self.wait_until(lambda: in_status in self.status(), f"{in_status} in /status.json")
        if job is not None:
            self.wait_until(lambda: in_sentences in self.explain(job), f"explain {job}: {in_sentences}")

    def explain(self, job):
        done = self.run_to_end(self.settings, "explain", job)
        return done.stdout + done.stderr

    def test_poison_and_the_key_that_is_suspended_for_it(self):
        worker = self.start(suspend={"convictions": 1}, cpu_driver={"faults": "cuLaunchKernel:illegal_address@1"})
        self.send(saxpy(1))
        self.assert_named("GpuWorkerMessageConvicted", {"code": "gpu_illegal_address"},
                          '"convictions":{"gpu_illegal_address":1}', "job-1", "It failed with gpu_illegal_address")
        self.send(saxpy(2))
        self.assert_named("GpuWorkerKeySuspended", {"device": "0"}, '"suspended":[{"kind":"key"',
                          "job-2", "It failed with suspended")
        self.assert_named("GpuWorkerDeadLetters", {"code": "suspended"}, '"dead_letters":{')
        worker.kill()

    def test_a_blob_store_that_is_away(self):
        worker = self.start(blobs={"url": f"http://{reserve_address(self)}/", "cache_dir": str(self.folder)})
        job = saxpy(1)
        job["buffers"]["x"] = gw.blob(numpy.full(4, 1, "<f4"))
        self.send(job)
        self.assert_named("GpuWorkerNotReady", {"reason": "blob_store"}, "(blob_store); the log says how to correct it",
                          "job-1", "(blob_store)")
        worker.kill()

    def test_brokers_that_are_away(self):
        gone = reserve_address(self)
        worker = self.start(kafka={"bootstrap_servers": gone, "group": "any"})
        self.assert_named("GpuWorkerNotReady", {"reason": "group"}, "no broker has answered yet; check kafka.bootstrap_servers",
                          "job-1", "check kafka.bootstrap_servers")
        worker.kill()

    def test_a_gpu_that_is_given_up_and_another_that_goes_on(self):
        slow = SLOW | {"cpu_driver": SLOW["cpu_driver"] | {"devices": 2}}
        worker = self.start(**slow, lanes=1, devices=[0, 1], executors={"deaths_max": 1})
        os.kill(worker.executors()[0], signal.SIGKILL)
        self.wait_until(lambda: '"standing":"unhealthy"' in self.status(), "it is given up")
        self.assert_named("GpuWorkerDeviceUnhealthy", {"reason": "deaths"}, '"standing":"unhealthy","reason":"deaths"')
        self.send(*map(saxpy, range(15000)))
        self.assert_named("GpuWorkerNotReady", {"reason": "no_executor"}, "it is unhealthy (deaths) and gets no executor any more",
                          "job-14999", "it is unhealthy (deaths) and gets no executor any more")
        self.wait_until(lambda: "It succeeded" in self.explain("job-0"), "the other goes on")
        worker.kill()

    def test_lag(self):
        worker = self.start(**SLOW)
        self.send(*map(saxpy, range(15000)))
        self.assert_named("GpuWorkerLag", {"job": self.job}, f'"topic":"{self.topics.jobs}"',
                          "job-14999", "messages of its partition before it are not finished")
        worker.kill()

    def test_jobs_of_a_program_that_is_not_installed(self):
        worker = self.start()
        jobs = [saxpy(number) for number in range(20)]
        for job in jobs:
            job["steps"][0]["program"] = "missing"
        self.send(*jobs)
        self.assert_named("GpuWorkerDeadLetters", {"code": "unknown_program"}, "this worker has no program 'missing'",
                          "job-1", "Fix: install it in programs.dir")
        self.stop_well(worker)

    def test_a_program_that_is_suspended(self):
        worker = self.start(suspend={"convictions": 1}, cpu_driver={"faults": "cuLaunchKernel:illegal_address@1"},
                            state={"dir": str(self.folder / "gpus")})
        self.send(saxpy(1), key=None)
        self.assert_named("GpuWorkerProgramSuspended", {"device": "0"}, '"suspended":[{"kind":"program","name":"saxpy"',
                          "job-1", "It failed with gpu_illegal_address")
        self.send(saxpy(2), key=None)
        self.assert_named("GpuWorkerDeadLetters", {"code": "suspended"}, "is suspended because too many of its jobs",
                          "job-2", "It failed with suspended")
        shown = [json.loads(line) for line in self.run_to_end(self.settings, "resume", "--json").stdout.splitlines()]
        self.assertEqual([(one["kind"], one["name"]) for one in shown], [("program", "saxpy")])
        worker.kill()

    def test_a_full_disk(self):
        blobs = (self.folder / "blobs").resolve()
        self.use_environment(for_faults(BUILD / "tests/io_faults.so", IO_FAULTS_FOLDER=str(blobs),
                                        IO_FAULTS_ERROR="ENOSPC", IO_FAULTS_CALLS="WRITE"))
        worker = self.start(blobs={"dir": str(blobs)}, results={"inline_max_bytes": 1})
        self.send(saxpy(1))
        self.assert_named("GpuWorkerNotReady", {"reason": "disk_full"}, "(disk_full); the log says how to correct it",
                          "job-1", "(disk_full)")
        worker.kill()

    def test_memory_that_is_short(self):
        worker = self.start(lanes=4, lane_slab_bytes="1MiB", batch={"jobs": 1},
                            cpu_driver={"memory_bytes": "256MiB", "faults": "cuLaunchKernel:slow=20s@*"})
        jobs = [saxpy(number) for number in range(8)]
        for job in jobs:
            job["buffers"]["scratch"] = {"bytes": 96 << 20}
        self.send(*jobs)
        self.assert_named("GpuWorkerMemoryShort", {"device": "0"}, '"jobs_starved":', "job-7", "wait for memory of the device")
        self.assertGreater(json.loads(self.status())["devices"][0]["now"]["jobs_starved"], 0)
        worker.kill()

    def test_a_partition_that_is_stuck(self):
        worker = self.start(cpu_driver={"faults": "cuLaunchKernel:slow=600s@1"}, limits={"timeout_ms": "1h", "timeout_max_ms": "1h"})
        self.send(saxpy(1))
        self.assert_named("GpuWorkerPartitionStuck", {"topic": self.topics.jobs}, '"oldest_s":', "job-1",
                          "it is the oldest message of its partition that is not finished")
        self.assertRegex(self.explain("job-1"), r"has held up commits for [1-9]\d* s")
        worker.kill()

    def test_a_storm_of_rebalances(self):
        # each new member waits for the worker: until it hears of the new one, and until it has given back what it had
        kafka = self.config()["kafka"] | {"consumer": {"heartbeat.interval.ms": 200}}
        worker = self.start(**SLOW, lanes=1, drain_timeout_ms="100ms", kafka=kafka)
        self.send(*map(saxpy, range(15000)))

        def rebalances():
            return json.loads(self.status())["devices"][0]["work"]["rebalances"]
        self.wait_until(lambda: rebalances() > 0, "it has joined")
        while rebalances() < 14:
            before = rebalances()
            member = confluent_kafka.Consumer({
                "bootstrap.servers": self.servers, "group.id": self.settings["kafka"]["group"], "enable.auto.commit": False})
            member.subscribe([self.topics.jobs])

            def has_moved():
                member.poll(0.1)
                return rebalances() > before
            self.wait_until(has_moved, "the group has a new member")
            member.close()
        self.assert_named("GpuWorkerRebalances", {"device": "0"}, '"rebalances":', "job-14999",
                          "the group has shared out its partitions")
        worker.kill()

    def test_a_worker_that_is_gone(self):
        worker = self.start()
        self.send(saxpy(1))
        self.wait_for_no_lag()
        worker.kill()
        self.send(saxpy(2))
        self.assert_named("GpuWorkerDoesNotAnswer", {"instance": self.address}, "", "job-2", "The worker cannot be asked")
        self.assertIn("It has no answer yet", self.explain("job-2"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
