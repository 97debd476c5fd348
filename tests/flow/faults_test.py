"""Jobs flow through real workers and a real Apache Kafka while one of them fails; afterwards every job has its
result or its dead letter. Prints what was lost, duplicated and recomputed for each fault and delivery.
usage: faults_test.py BUILD_FOLDER [BrokerTest.test_... ...], with the number of jobs of each fault and delivery in
GPU_WORKER_FAULTS_JOBS (1200)."""

import array
import concurrent.futures
import os
import time
import unittest

from job_flow import Account, Flow
from kafka_cluster import BRIEF, KafkaCluster
from proxy import Proxy
from worker_flow import FlowTest

import confluent_kafka.admin

MODES = ("at_least_once", "exactly_once")

accounts = []


def tearDownModule():
    widths = [max(len(str(value)) for value in column) for column in zip(Account._fields, *accounts)]
    for row in [Account._fields, *accounts]:
        print("  ".join(str(value).ljust(width) for value, width in zip(row, widths)), flush=True)


class FaultRig(FlowTest):
    """Both deliveries live through the same fault at the same time, each with topics, group and workers of its own."""

    brokers = 1
    jobs = int(os.environ.get("GPU_WORKER_FAULTS_JOBS", 1200))
    flow_s = 6  # see Flow
    frozen_s, gone_s, cut_s = 30, 10, 10  # how long brokers, a leader and the network are away

    @classmethod
    def setUpClass(cls):
        cls.cluster = KafkaCluster(cls.brokers, BRIEF)
        cls.addClassCleanup(cls.cluster.down)

    def setUp(self):
        super().setUp()
        self.ledger = self.folder / "ledger"
        self.ledger.touch()
        os.environ["GPU_WORKER_TEST_LEDGER"] = str(self.ledger)

    def begin(self, workers, proxied=False):
        """The flows, once a tenth of their jobs is answered."""
        self.flows = []
        for index, mode in enumerate(MODES):
            numbers = range(index * self.jobs, (index + 1) * self.jobs)
            flow = Flow(self, self.cluster, mode, numbers, proxied, seconds=self.flow_s)
            self.addCleanup(flow.close)
            flow.start(*workers)
            self.flows.append(flow)
        self.wait_for_share(0.1)

    def begin_behind_proxy(self):
        proxy = Proxy(self.cluster.proxy_port, self.cluster.proxied_port)
        self.addCleanup(proxy.close)
        self.begin(["a", "b"], proxied=True)
        return proxy

    def wait_for_share(self, share):
        for flow in self.flows:
            flow.wait_for_share(share)

    def put_under_way(self):
        for flow in self.flows:
            flow.put_under_way()

    def end(self, fault):
        for flow in self.flows:
            flow.fault_is_over.set()
        results = [flow.finish(fault, self.ran) for flow in self.flows]
        accounts.extend(results)
        for account in results:
            self.assertEqual(account.lost, 0, account)
            self.assertEqual(account.wrong, 0, account)
            if account.mode == "exactly_once":
                self.assertEqual(account.duplicated, 0, account)
        return results

    def ran(self):
        """The numbers that kernels ran for, once a run."""
        return array.array("I", self.ledger.read_bytes())


class WorkersTest(FaultRig):
    def test_workers_are_killed(self):
        self.begin(["a", "b"])
        for name, share in ("a", 0.15), ("b", 0.25):
            self.put_under_way()
            for flow in self.flows:
                flow.kill(name)
                flow.start(name)
            self.wait_for_share(share)
        self.end("kill -9 of the worker")

    def test_four_workers_join_and_leave(self):
        self.begin(["a"])
        changes = [
            (["b", "c"], [], 0.15), (["d"], ["a"], 0.2), (["a"], ["b"], 0.25), ([], ["c", "d"], 0.3),
            (["b", "c", "d"], [], 0.35)]
        for joining, leaving, share in changes:
            self.put_under_way()
            for flow in self.flows:
                flow.start(*joining)
                flow.stop(*leaving)
            self.wait_for_share(share)
        self.end("4 workers join and leave")


class BrokerTest(FaultRig):
    def test_the_only_broker_is_killed_and_starts_again(self):
        """What it has left hanging is ended before the workers come back, as worker/README.md asks. With a broker that is
        asked to stop instead, committed results were seen to be lost even so."""
        proxy = self.begin_behind_proxy()
        self.put_under_way()
        self.cluster.kill()
        proxy.cut()
        self.cluster.start()
        with concurrent.futures.ThreadPoolExecutor() as pool:  # each has to see that nothing hangs for a while
            list(pool.map(Flow.clear_hanging, self.flows))
        proxy.mend()
        self.end("kill -9 of the broker")

    def test_the_broker_is_frozen_for_a_while(self):
        self.begin(["a", "b"])
        self.put_under_way()
        self.cluster.pause()
        time.sleep(self.frozen_s)
        self.cluster.resume()
        self.end(f"broker frozen for {self.frozen_s} s")

    def test_the_network_is_cut(self):
        proxy = self.begin_behind_proxy()
        self.put_under_way()
        proxy.silence()
        time.sleep(self.cut_s / 2)
        proxy.cut()
        time.sleep(self.cut_s / 2)
        proxy.mend()
        self.end(f"network cut for {self.cut_s} s")


class LeaderTest(FaultRig):
    brokers = 3

    def leader_of(self, topic, partition):
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": self.cluster.servers})
        return admin.list_topics(topic, timeout=30).topics[topic].partitions[partition].leader

    def test_a_leader_is_gone_for_a_while(self):
        self.begin(["a", "b"])
        self.put_under_way()
        leader = self.leader_of(self.flows[0].topics.jobs, 0)
        self.cluster.kill(leader)
        time.sleep(self.gone_s)
        self.cluster.start(leader)
        self.end(f"leader gone for {self.gone_s} s")


if __name__ == "__main__":
    unittest.main(verbosity=2)
