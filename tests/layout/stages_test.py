"""The table of stages in worker/README.md is the one that starts and stops them."""

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


if __name__ == "__main__":
    unittest.main()
