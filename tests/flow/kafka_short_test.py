"""What must hold at a real Apache Kafka before every commit, chosen from the tests that show more: both ways of delivery,
a worker that is killed, and partitions that move.
usage: kafka_short_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA."""

import unittest

from exactly_once_test import ExactlyOnceTest
from kafka_group_test import GroupTest
from kafka_test import KafkaTest
from rebalance_test import RebalanceTest

CHOSEN = [
    KafkaTest("test_hostile_bytes_become_dead_letters_and_the_worker_goes_on"),
    ExactlyOnceTest("test_every_job_has_one_result_and_every_dead_letter_comes_once"),
    GroupTest("test_a_restart_after_kill_9_takes_up_its_partitions_at_once"),
    RebalanceTest("test_a_newcomer_waits_for_those_jobs_alone_that_have_begun"),
]


def load_tests(*_):
    return unittest.TestSuite(CHOSEN)


if __name__ == "__main__":
    unittest.main(verbosity=2)
