#!/usr/bin/env python3
"""A change finds the tests that it can break."""

import pathlib
import unittest

import affected
import layering

TESTS = {
    "layout/format": "layout", "base/slice": "base", "blobs/cache": "blobs", "blobs/folder": "blobs",
    "hardening/H7_no_file_elsewhere_is_touched": "blobs", "prepare/attach": "prepare", "plan/plan": "plan", "job/job": "job",
    "broker/offsets": "broker", "pipeline/blobs": "pipeline", "flow/spare": "flow", "flow/kafka_short": "flow",
    "deploy/install": "deploy", "deploy/helm/chart": "deploy/helm", "pages/lint": "pages", "pages/README.md": "pages",
}  # fmt: skip


class Affected(unittest.TestCase):
    def assert_affected(self, path, *tests):
        self.assertEqual(sorted(["layout/format", *tests]), affected.affected(TESTS, [path]))

    def test_a_folder_of_the_worker_has_its_own_tests_whatever_their_names_and_those_of_folders_that_include_it(self):
        self.assert_affected("worker/blobs", "blobs/cache", "blobs/folder", "hardening/H7_no_file_elsewhere_is_touched",
                             "pipeline/blobs", "prepare/attach")

    def test_folders_that_include_one_header_alone_are_affected_by_that_module(self):
        self.assertIn("job/job", affected.affected(TESTS, ["worker/broker/delivery.c"]))
        self.assertIn("job/job", affected.affected(TESTS, ["worker/broker"]))
        self.assertNotIn("job/job", affected.affected(TESTS, ["worker/broker/offsets.c"]))

    def test_a_folder_of_the_worker_has_the_tests_of_whole_workers_that_show_it(self):
        self.assertIn("flow/kafka_short", affected.affected(TESTS, ["worker/broker/offsets.c"]))

    def test_a_test_has_itself_and_what_tests_share_has_the_folder(self):
        self.assert_affected("tests/blobs/cache_test.c", "blobs/cache")
        self.assert_affected("tests/flow/worker_flow.py", "flow/spare", "flow/kafka_short")
        self.assert_affected("tests/deploy", "deploy/install", "deploy/helm/chart")
        self.assertEqual(sorted(TESTS), affected.affected(TESTS, ["tests/support/run.c"]))

    def test_a_page_has_its_own_test(self):
        self.assert_affected("README.md", "pages/lint", "pages/README.md")

    def test_several_paths_have_the_tests_of_each(self):
        self.assertEqual(["base/slice", "deploy/helm/chart", "deploy/install", "layout/format"],
                         affected.affected(TESTS, ["tests/base/slice_test.c", "deploy/manual"]))

    def test_every_folder_of_the_worker_says_which_tests_of_whole_workers_show_it(self):
        listed = {place.removeprefix("worker/") for place in affected.SHOWN_BY if place.startswith("worker/")}
        self.assertEqual(set(layering.LAYERS), listed)

    def test_every_place_is_there(self):
        for place in affected.SHOWN_BY:
            self.assertTrue((affected.ROOT / place).exists(), place)


if __name__ == "__main__":
    unittest.main()
