"""One short form of each kind of fault that faults_test.py has: workers that are killed, that come and go; a network that
is cut; a broker that is frozen, and one that is killed; a leader that is gone, and with it a coordinator.
usage: faults_short_test.py BUILD_FOLDER"""

import unittest

from faults_test import BrokerTest, LeaderTest, WorkersTest, tearDownModule  # unittest looks for the last one


class Short:
    jobs = 600
    flow_s = 4
    frozen_s = gone_s = cut_s = 2


class ShortWorkersTest(Short, WorkersTest):
    pass


class ShortBrokerTest(Short, BrokerTest):
    pass


class ShortLeaderTest(Short, LeaderTest):
    pass


CHOSEN = [
    ShortWorkersTest("test_workers_are_killed"),
    ShortWorkersTest("test_four_workers_join_and_leave"),
    ShortBrokerTest("test_the_network_is_cut"),
    ShortBrokerTest("test_the_broker_is_frozen_for_a_while"),
    ShortBrokerTest("test_the_only_broker_is_killed_and_starts_again"),
    ShortLeaderTest("test_a_leader_is_gone_for_a_while"),
]


def load_tests(*_):
    return unittest.TestSuite(CHOSEN)


if __name__ == "__main__":
    unittest.main(verbosity=2)
