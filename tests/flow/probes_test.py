"""What a worker says of itself to who asks whether it lives and is ready, and to systemd, while brokers and executors
come and go. usage: probes_test.py BUILD_FOLDER"""

import os
import pathlib
import signal
import socket
import unittest

from job_client import JobClient
from kafka_cluster import BRIEF, KafkaCluster
from worker_flow import SLOW, SOON, FlowTest, Topics, ask, metric, reserve_address, saxpy

# After which a broker that is away has cost a member its place; the worker is given 30 s more to find it again.
SESSION_TIMEOUT_MS = 6000


def setUpModule():
    Rig.cluster = KafkaCluster(1, BRIEF)
    unittest.addModuleCleanup(Rig.cluster.down)


class Rig(FlowTest):
    def setUp(self):
        super().setUp()
        self.topics = Topics(self.cluster.servers, partitions=1)

    http = {}

    def config(self, address, **more):
        return self.topics.config(self.cluster.servers, http=self.http | {"listen": address}, **more)

    def start(self, name="worker", **more):
        address = reserve_address(self)
        config = self.config(address, **more)
        config["kafka"]["consumer"] = SOON | {"session.timeout.ms": SESSION_TIMEOUT_MS, "heartbeat.interval.ms": 500}
        config["kafka"]["producer"] = SOON
        config["kafka"]["instance_id"] = name
        return self.start_worker(config, name), address

    def ask(self, address, page):
        """The answer's status and text."""
        return ask(address, page)[:2]

    def wait_for(self, address, status, text):
        self.wait_until(lambda: self.ask(address, "/readyz"), f"/readyz answers {status} {text}",
                        is_met=lambda said: said[0] == status and text in said[1])
        self.assertEqual(self.ask(address, "/livez"), (200, "live\n"))

    def wait_for_ready(self, address):
        self.wait_for(address, 200, "ready\n")



class ProbesTest(Rig):
    def test_a_worker_without_brokers_lives_and_is_ready_once_they_are_there(self):
        self.cluster.kill()
        try:
            worker, address = self.start()
            self.wait_for(address, 503, "no broker has answered yet; check kafka.bootstrap_servers")
        finally:
            self.cluster.start()
        self.wait_for_ready(address)
        self.stop_well(worker)

    def test_a_broker_that_is_away_for_long_makes_it_unready_and_for_a_moment_does_not(self):
        worker, address = self.start(drain_timeout_ms="1s")
        self.wait_for_ready(address)
        said = set()
        self.cluster.kill()
        try:
            def is_out():
                said.add(self.ask(address, "/readyz"))
                return "gave up" in self.log_of()
            self.wait_until(is_out, "it loses its partition")
            self.assertEqual(said, {(200, "ready\n")}, "nothing has happened yet that a rebalance could not mend")
            self.wait_for(address, 503, "group: it has been out of its group for")
        finally:
            self.cluster.start()
        self.wait_for_ready(address)
        self.stop_well(worker)

    def test_a_member_without_a_partition_is_ready(self):
        first, address = self.start("first")
        self.wait_for_ready(address)
        second, other = self.start("second")
        self.wait_for_ready(other)
        for asked in (address, other):
            self.assertEqual(self.ask(asked, "/readyz?verbose")[1].count(" group: ok\n"), 1)
        self.stop_well(second)
        self.wait_for_ready(address)
        self.stop_well(first)

    def test_one_that_drains_lives_to_its_end_and_is_not_ready(self):
        config = SLOW | {"cpu_driver": {"faults": "cuLaunchKernel:slow=300ms@*"}}
        worker, address = self.start(**config)
        self.wait_for_ready(address)
        client = JobClient(self.cluster.servers, self.topics.jobs, self.topics.results)
        self.addCleanup(client.close)
        client.submit([saxpy(number) for number in range(10)])
        self.wait_until(lambda: metric(address, "gpu_worker_jobs_total"), "an answer")
        (executor,) = worker.executors()
        os.kill(executor, signal.SIGSTOP)  # so that it has not ended before anybody has asked
        try:
            worker.ask_to_stop()
            self.wait_for(address, 503, "not ready\nstop: the worker finishes what it has begun and ends")
        finally:
            os.kill(executor, signal.SIGCONT)
        said = set()
        while worker.status() is None:
            said.add(self.ask(address, "/livez")[0])
            self.assertIn(self.ask(address, "/readyz")[0], (0, 503))
        self.assertIn(said, ({200}, {0, 200}))
        self.assertEqual(worker.status(), 0, self.log_of())

    def test_a_frozen_executor_makes_its_worker_unready_and_does_not_take_the_supervisor_with_it(self):
        worker, address = self.start()
        self.wait_for_ready(address)
        (executor,) = worker.executors()
        os.kill(executor, signal.SIGSTOP)
        try:
            self.wait_for(address, 503, "executor: it has not moved for")
            self.assertIn("gpu_worker_executor_up", self.ask(address, "/metrics")[1])
        finally:
            os.kill(executor, signal.SIGCONT)
        self.wait_for_ready(address)
        self.stop_well(worker)

    def test_a_secret_keeps_strangers_from_metrics_and_from_no_probe(self):
        token = self.folder / "token"
        self.http = {"token_file": str(token)}
        refused = self.run_to_end(self.config(reserve_address(self)), "run")
        self.assertEqual(refused.returncode, 3)
        self.assertIn("http.token_file", refused.stderr)
        token.write_text("first\n")
        worker, address = self.start()
        self.wait_for_ready(address)
        self.assertEqual(self.ask(address, "/metrics")[0], 401)
        token.write_text("second\n")
        self.assertIn("gpu_worker_executor_up", ask(address, "/metrics", {"Authorization": "Bearer second"})[1])
        self.stop_well(worker)

    def test_one_device_that_is_given_up_is_named_and_the_other_keeps_the_worker_ready(self):
        worker, address = self.start(executors={"deaths_max": 1}, cpu_driver={"devices": 2})
        self.wait_until(lambda: self.ask(address, "/readyz?verbose"), "two executors",
                        is_met=lambda said: said[1].count("jobs: ok") == 2)
        os.kill(worker.executors()[0], signal.SIGKILL)
        self.wait_for(address, 200, "device: it is unhealthy (deaths) and gets no executor any more")
        self.assertEqual(self.ask(address, "/readyz")[1].splitlines()[0], "ready")
        self.stop_well(worker)


class SystemdTest(Rig):
    """A socket of ours in the place of systemd's."""

    def setUp(self):
        super().setUp()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.addCleanup(self.socket.close)
        self.socket.bind(str(self.folder / "notify"))
        self.heard = []
        names = {"NOTIFY_SOCKET": str(self.folder / "notify"), "WATCHDOG_USEC": "400000"}
        self.use_environment(names)

    def listen(self):
        """All that was heard so far."""
        while True:
            try:
                self.heard.append(self.socket.recv(4096).decode())
            except BlockingIOError:
                return self.heard

    def wait_to_hear(self, text):
        self.wait_until(self.listen, text, is_met=lambda heard: any(said.startswith(text) for said in heard))

    def test_it_hears_of_start_life_and_stop_and_executors_know_nothing_of_it(self):
        worker, _ = self.start()
        self.wait_to_hear("READY=1")
        self.wait_to_hear("STATUS=ready: 1 of 1 GPUs take jobs")
        (executor,) = worker.executors()
        environment = pathlib.Path(f"/proc/{executor}/environ").read_bytes()
        self.assertNotIn(b"NOTIFY_SOCKET", environment)
        self.assertNotIn(b"WATCHDOG_", environment)
        signs = self.listen().count("WATCHDOG=1")
        self.wait_until(lambda: self.listen().count("WATCHDOG=1"), "signs of life", is_met=lambda found: found > signs + 1)
        self.stop_well(worker)
        self.listen()
        self.assertEqual(self.heard.count("READY=1"), 1)
        self.assertEqual(self.heard.count("STOPPING=1"), 1)
        self.assertGreater(self.heard.index("STOPPING=1"), self.heard.index("READY=1"))

    def test_one_that_waits_for_its_brokers_has_started_and_says_what_it_waits_for(self):
        self.cluster.kill()
        try:
            worker, _ = self.start()
            self.wait_to_hear("READY=1")
            self.wait_to_hear("STATUS=not ready: gpu 0 (")
            self.wait_until(self.listen, "the reason",
                            is_met=lambda heard: any("no broker has answered yet" in said for said in heard))
        finally:
            self.cluster.start()
        self.wait_to_hear("STATUS=ready")
        self.stop_well(worker)


if __name__ == "__main__":
    unittest.main(verbosity=2)
