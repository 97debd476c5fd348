"""CHANGELOG.md has the form of Keep a Changelog, and the package's changelog tells of the project's version."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).parents[2]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
VERSION = re.search(r"project\(gpu-worker VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


class ChangelogTest(unittest.TestCase):
    def test_it_begins_with_what_is_not_released_and_goes_back_in_time(self):
        headings = re.findall(r"(?m)^## (.*)$", CHANGELOG)
        self.assertEqual(headings[0], "[Unreleased]")
        releases = [re.fullmatch(r"\[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d\d-\d\d)", heading) for heading in headings[1:]]
        self.assertNotIn(None, releases)
        numbers = [tuple(map(int, release.groups()[:3])) for release in releases]
        self.assertEqual(numbers, sorted(numbers, reverse=True))

    def test_each_version_has_each_kind_of_change_once_in_their_order(self):
        for version in CHANGELOG.split("\n## ")[1:]:
            kinds = re.findall(r"(?m)^### (.*)$", version)
            self.assertEqual(kinds, [kind for kind in KINDS if kind in kinds])
            self.assertRegex(version, r"\A.*\n+(### |\Z)", "a change stands outside of the kinds")

    def test_the_package_has_the_version_of_the_project(self):
        packaged = (ROOT / "deploy/debian/changelog").read_text()
        self.assertTrue(packaged.startswith(f"gpu-worker ({VERSION}-"), packaged.splitlines()[0])


if __name__ == "__main__":
    unittest.main()
