"""worker/README.md lists the stages as they start and stop, every folder of worker/, and the functions of a job's way."""

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


class WalkTest(unittest.TestCase):
    FILES_MAX = 12

    def test_the_functions_of_a_jobs_way_are_where_the_page_says(self):
        page = (ROOT / "worker/README.md").read_text(encoding="utf-8")
        section = page[page.index("## One job, file by file"):page.index("## Delivery")]
        steps = re.findall(r"^\d+\. `([\w/]+\.c)`(.*?)(?=^\d+\. |\Z)", section, re.MULTILINE | re.DOTALL)
        self.assertGreater(len(steps), 5, "the list is not found any more")
        self.assertLessEqual(len({file for file, _ in steps}), self.FILES_MAX)
        every = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "worker").rglob("*.c")))
        for file, text in steps:
            own = (ROOT / "worker" / file).read_text(encoding="utf-8")
            names = re.findall(r"`(\w+)`", text)
            self.assertTrue(names, f"{file} is there for a function")
            self.assertRegex(own, self.definition(names[0]), f"{file} has no {names[0]} any more")
            for name in names:
                self.assertRegex(every, self.definition(name), f"there is no {name} any more")

    @staticmethod
    def definition(name):
        """Of a function, which may break its line before or within its parameters, or of a table."""
        return rf"(?m)^(?![ /*]).*\b{name}(\(|\[\] = )"


if __name__ == "__main__":
    unittest.main()
