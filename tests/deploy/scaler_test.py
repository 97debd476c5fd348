"""The scaler of deploy/exercise does what KEDA and the autoscaler behind it do. usage: scaler_test.py BUILD_FOLDER"""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "deploy/fleet"))
sys.argv[1:] = []
from scaler import Scaler

THRESHOLD, REPLICAS_MAX, STABILIZATION_S, COOLDOWN_S = 100, 6, 10, 30


class ScalerTest(unittest.TestCase):
    def setUp(self):
        self.scaler = Scaler(THRESHOLD, REPLICAS_MAX, STABILIZATION_S, COOLDOWN_S)
        self.replicas = 0

    def see(self, now_s, lag):
        self.replicas = self.scaler.decide(now_s, lag, self.replicas)
        return self.replicas

    def test_zero_stays_zero_without_lag_and_any_lag_wakes_one(self):
        self.assertEqual(self.see(0, 0), 0)
        self.assertEqual(self.see(1, 5000), 1)

    def test_lag_over_the_threshold_of_each_replica_asks_for_more_at_once_up_to_the_most(self):
        self.see(0, 1)
        self.assertEqual(self.see(1, 100), 1)
        self.assertEqual(self.see(2, 101), 2)
        self.assertEqual(self.see(3, 10**6), REPLICAS_MAX)

    def test_fewer_are_wanted_only_when_nothing_else_was_for_the_stabilization(self):
        self.see(0, 1)
        self.see(1, 600)
        self.assertEqual(self.see(2, 250), 6)
        self.assertEqual(self.see(1 + STABILIZATION_S, 50), 6)
        self.assertEqual(self.see(1.5 + STABILIZATION_S, 50), 3)
        self.assertEqual(self.see(3 + STABILIZATION_S, 50), 1)

    def test_what_was_wanted_before_does_not_bring_back_replicas_that_have_gone(self):
        self.see(0, 1)
        self.see(1, 600)
        self.replicas = 2
        self.assertEqual(self.see(2, 50), 2)

    def test_a_fleet_without_lag_sleeps_after_the_cooldown_and_not_before(self):
        self.see(0, 1)
        self.assertEqual(self.see(COOLDOWN_S - 1, 0), 1)
        self.assertEqual(self.see(COOLDOWN_S, 0), 0)

    def test_lag_in_between_begins_the_cooldown_again(self):
        self.see(0, 1)
        self.see(COOLDOWN_S - 1, 1)
        self.assertEqual(self.see(COOLDOWN_S, 0), 1)
        self.assertEqual(self.see(2 * COOLDOWN_S - 1, 0), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
