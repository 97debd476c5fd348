"""worker/README.md lists the stages as they start and stop, and every folder of worker/."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROW = re.compile(r'^    \{"([^"]+)", \w+, (\w+),', re.MULTILINE)
DOCUMENTED = re.compile(r"^\| ([^|]+) \| [^|]+ \| (yes )?\|$", re.MULTILINE)


class StagesTest(unittest.TestCase):
    def test_the_page_has_the_stages_in_their_order_and_says_which_finish_jobs(self):
        source = (ROOT / "worker/pipeline/lifecycle.c").read_text(encoding="utf-8")
        page = (ROOT / "worker/README.md").read_text(encoding="utf-8")
        section = page[page.index("**Start and stop.**"):page.index("## Delivery")]
        stages = [(name, finish != "NULL") for name, finish in ROW.findall(source)]
        documented = [(name, yes != "") for name, yes in DOCUMENTED.findall(section)]
        self.assertGreater(len(stages), 10, "the table is not found any more")
        self.assertEqual(documented, stages)


class FoldersTest(unittest.TestCase):
    def test_the_page_has_every_folder_once_on_the_way_of_a_job_or_among_those_that_serve_it(self):
        page = (ROOT / "worker/README.md").read_text(encoding="utf-8")
        section = page[page.index("## The way of a job"):page.index("**Start and stop.**")]
        way = re.findall(r"^ +([a-z_]+)  +[a-z]", section, re.MULTILINE)
        self.assertGreater(len(way), 5, "the picture is not found any more")
        self.assertEqual("broker", way[0])
        self.assertEqual("broker", way.pop(), "it starts and ends there")
        serving = re.findall(r"^\| `([a-z_]+)` \| ", section, re.MULTILINE)
        folders = sorted(path.name for path in (ROOT / "worker").iterdir() if path.is_dir())
        self.assertEqual(folders, sorted(way + serving))


if __name__ == "__main__":
    unittest.main()
