"""The account of deploy/exercise finds what may not be. usage: fleet_account_test.py BUILD_FOLDER"""

import collections
import pathlib
import sys
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "deploy/fleet"), str(ROOT / "tests/flow")]
sys.argv[1:] = []
from account import Account, Answer, Events

EVENTS = Events(upgrade_began_at=100, upgrade_ended_at=200, lost_at=150, lost_partitions={3})
TOPIC_OF = {1: "old", 2: "new"}
OLD = Answer("old", 0, 50, 0, True, 1)  # of a job that was sent at 49
NEW = Answer("new", 3, 170, 0, True, 2)


class AccountTest(unittest.TestCase):
    def problems(self, *answers, sent=49, is_exact=True, letters=0):
        watch = types.SimpleNamespace(answers=collections.defaultdict(list, {0: list(answers)}), letters=letters)
        return Account({0: sent}, watch, EVENTS, is_exact, TOPIC_OF).problems

    def assert_finds(self, what, *answers, **more):
        self.assertTrue(any(what in problem for problem in self.problems(*answers, **more)), self.problems(*answers, **more))

    def test_one_right_answer_is_well(self):
        for answer in OLD, NEW, OLD._replace(made_at=170):
            self.assertEqual(self.problems(answer), [])

    def test_a_job_without_an_answer(self):
        self.assert_finds("lost")

    def test_a_wrong_answer_and_a_dead_letter(self):
        self.assert_finds("wrong", OLD._replace(is_right=False))
        self.assert_finds("1 dead letters", OLD, letters=1)

    def test_an_answer_to_nothing(self):
        watch = types.SimpleNamespace(answers={7: [OLD]}, letters=0)
        self.assertIn("never sent", Account({}, watch, EVENTS, True, TOPIC_OF).problems[0])

    def test_two_answers_are_one_too_many_but_for_those_that_a_loss_may_repeat(self):
        again = NEW._replace(made_at=180)
        self.assert_finds("again", NEW, again)
        self.assertEqual(self.problems(NEW, again, is_exact=False), [])
        self.assert_finds("not because", OLD, OLD, is_exact=False)
        self.assert_finds("not because", NEW, again._replace(partition=2), is_exact=False)

    def test_answers_of_a_revision_that_was_not_there(self):
        self.assert_finds("before the upgrade", NEW._replace(made_at=50))
        self.assert_finds("after the upgrade", OLD._replace(made_at=250))
        self.assert_finds("after the upgrade", OLD, sent=250)
        self.assert_finds("configuration", NEW._replace(topic="old"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
