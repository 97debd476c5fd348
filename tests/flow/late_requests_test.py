"""Requests of a transaction that arrive when their client has given them up and gone on, as after a pause of a broker:
they change nothing. A real Apache Kafka behind a proxy that keeps them, and a worker that dies at the worst moment.
usage: late_requests_test.py BUILD_FOLDER"""

import array
import unittest

from job_flow import Flow
from kafka_cluster import BRIEF, KafkaCluster
from request_proxy import END_TXN, OFFSET_COMMIT, TXN_OFFSET_COMMIT, RequestProxy
from worker_flow import FlowTest

JOBS = 1000
SLOW_MS = 100  # for a job: most of them are left when the worker has done what is wanted of it
GIVEN_UP = {"socket.timeout.ms": "3000"}  # no request waits for longer


class LateRequestsTest(FlowTest):
    @classmethod
    def setUpClass(cls):
        cls.cluster = KafkaCluster(1, BRIEF)
        cls.addClassCleanup(cls.cluster.down)

    def setUp(self):
        super().setUp()
        ledger = self.folder / "ledger"
        ledger.touch()
        self.use_environment({"GPU_WORKER_TEST_LEDGER": str(ledger)})
        self.ran = lambda: array.array("I", ledger.read_bytes())
        self.proxy = RequestProxy(self.cluster.proxy_port, self.cluster.proxied_port)
        self.addCleanup(self.proxy.close)
        self.flow = Flow(self, self.cluster, "exactly_once", range(JOBS), proxied=True, producer=GIVEN_UP, seconds=4)
        self.flow.slow_ms = SLOW_MS
        self.addCleanup(self.flow.close)

    def start(self):
        self.flow.start("a")
        self.flow.wait_for_share(0.02)

    def keep_next(self, request):
        kept = self.proxy.keep_next(request)
        self.wait_until(kept.is_there, "the request is on its way")
        return kept

    def wait_for_more(self):
        seen = self.flow.seen()
        self.wait_until(self.flow.seen, "the worker goes on", is_met=lambda now: now > seen + JOBS // 50)

    def assert_nothing_is_repeated(self):
        self.flow.kill("a")
        self.flow.slow_ms = 1
        self.flow.start("a")
        account = self.flow.finish("late request", self.ran)
        self.assertEqual((account.lost, account.wrong, account.duplicated), (0, 0, 0), account)

    def test_a_late_end_does_not_end_the_transaction_after_it(self):
        self.start()
        late = self.keep_next(END_TXN)
        self.wait_for_more()
        self.keep_next(TXN_OFFSET_COMMIT)  # results are sent, and offsets are not
        late.deliver()
        self.assert_nothing_is_repeated()

    def test_late_offsets_do_not_take_the_group_back(self):
        self.start()
        late = self.keep_next(TXN_OFFSET_COMMIT)
        self.wait_for_more()
        end = self.keep_next(END_TXN)
        late.deliver()
        end.deliver()
        self.assert_nothing_is_repeated()

    def test_a_late_claim_of_partitions_does_not_take_the_group_back(self):
        plain = self.proxy.keep_next(OFFSET_COMMIT)
        late = self.proxy.keep_next(TXN_OFFSET_COMMIT)
        self.start()
        self.assertTrue(late.is_there())
        self.wait_for_more()
        self.assertFalse(plain.is_there(), "nothing is committed outside of transactions, where a late request would count")
        plain.deliver()
        self.keep_next(TXN_OFFSET_COMMIT)
        late.deliver()
        self.assert_nothing_is_repeated()


if __name__ == "__main__":
    unittest.main(verbosity=2)
