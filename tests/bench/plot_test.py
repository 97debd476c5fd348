"""plot.py, with results that are recorded beside the pictures. Ends with 77 where matplotlib is not installed."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

FOLDER = pathlib.Path(__file__).parent
PYTHON = FOLDER.parents[1] / "build/deps/plot/bin/python3"
RECORDED = FOLDER / "pictures/engine.json"
SKIPPED = 77


def plot(*arguments):
    return subprocess.run([PYTHON, "-B", FOLDER / "plot.py", *arguments], capture_output=True, text=True, timeout=120)


def texts(picture):
    return ["".join(element.itertext()).strip() for element in xml.etree.ElementTree.parse(picture).iter()
            if element.tag.endswith("}text")]


class Plot(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def draw(self, rows):
        file = self.folder / "some.json"
        file.write_text("\n".join(json.dumps(row) for row in rows))
        return plot(file, "--out", self.folder / "out")

    def row(self, work, **figures):
        return {"bench": "flat", "driver": "cpu", "processors": 2, "rounds": 3, "work": work, **figures}

    def test_each_unit_is_a_picture_that_names_each_row_side_and_median(self):
        done = plot(RECORDED, "--out", self.folder)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertEqual({"engine-jobs_per_s.svg", "engine-percent.svg", "engine-us.svg"},
                         {path.name for path in self.folder.iterdir()})
        rows = [json.loads(line) for line in RECORDED.read_text().splitlines()]
        found = texts(self.folder / "engine-jobs_per_s.svg")
        for row in (row for row in rows if "worker_jobs_per_s" in row):
            self.assertIn(row["work"], found)
            self.assertIn(f"{row['worker_jobs_per_s']['median']:,g}", found)
        self.assertLessEqual({"baseline", "worker", "jobs/s"}, set(found))

    def test_the_same_results_give_the_same_bytes(self):
        for name in ("first", "second"):
            self.assertEqual(0, plot(RECORDED, "--out", self.folder / name).returncode)
        for path in (self.folder / "first").iterdir():
            self.assertEqual(path.read_bytes(), (self.folder / "second" / path.name).read_bytes(), path.name)

    def test_rows_of_the_same_work_are_told_apart_by_what_they_are_about(self):
        figure = {"least": 1, "median": 2, "most": 3}
        done = self.draw([self.row("keys", count=1, ratio_percent=figure), self.row("keys", count=100, ratio_percent=figure)])
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertLessEqual({"keys, count 1", "keys, count 100"}, set(texts(self.folder / "out/some-percent.svg")))

    def test_what_is_no_result_is_one_line(self):
        file = self.folder / "some.json"
        file.write_text("| work | baseline |\n")
        done = plot(file, "--out", self.folder)
        self.assertEqual((1, "", 1), (done.returncode, done.stdout, done.stderr.count("\n")), done.stderr)
        self.assertIn("gpu-worker bench --json", done.stderr)

    def test_a_unit_that_is_not_known_is_one_line_that_names_the_figure(self):
        done = self.draw([self.row("keys", keys_per_parsec={"least": 1, "median": 2, "most": 3})])
        self.assertEqual((1, 1), (done.returncode, done.stderr.count("\n")), done.stderr)
        self.assertIn("keys_per_parsec", done.stderr)


if __name__ == "__main__":
    if not PYTHON.exists():
        sys.exit(SKIPPED)
    unittest.main()
