"""Alert rules and dashboard, without a worker: what promtool says of them, and where they lead. usage: alerts_test.py"""

import pathlib
import subprocess
import sys
import unittest

import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "tests/pages"))

import expressions
from pages import anchors, read_page


def promtool(*command):
    return subprocess.run(["promtool", *map(str, command)], capture_output=True, text=True, timeout=240)


class AlertsTest(unittest.TestCase):
    def test_the_rules_are_valid(self):
        checked = promtool("check", "rules", expressions.FOLDER / "alerts.yaml")
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_every_alert_fires_when_it_should_and_not_otherwise(self):
        tested = promtool("test", "rules", HERE / "alerts_test.yaml")
        self.assertEqual(tested.returncode, 0, tested.stdout + tested.stderr)
        cases = [case for test in yaml.safe_load((HERE / "alerts_test.yaml").read_text())["tests"]
                 for case in test["alert_rule_test"]]
        alerts = {rule["alert"] for rule in expressions.rules()}
        self.assertEqual({case["alertname"] for case in cases if case["exp_alerts"]}, alerts)
        self.assertEqual({case["alertname"] for case in cases if not case["exp_alerts"]}, alerts)

    def test_every_alert_leads_to_a_heading_of_the_runbook(self):
        page = (ROOT / "deploy/README.md").read_text()
        runbook = anchors(read_page(page[page.index("\n## Runbook"):page.index("\n## Clean up")]))
        for rule in expressions.rules():
            file, _, heading = rule["annotations"]["runbook_url"].partition("#")
            self.assertEqual(file, "https://gpu-worker.example/deploy/README.md")
            self.assertTrue(heading in runbook, f"{rule['alert']}: {heading} is no heading of the runbook")

    def test_the_runbook_names_every_alert(self):
        page = (ROOT / "deploy/README.md").read_text()
        self.assertEqual([rule["alert"] for rule in expressions.rules() if f"`{rule['alert']}`" not in page], [])

    def test_expressions_are_read_as_prometheus_reads_them(self):
        read = expressions.selectors('sum by (job, le) (rate(a_total{x="1",y!~"b"}[5m])) > on (job) group_left 0.1 * b and c == bool 0')
        self.assertEqual(list(read), [("a_total", [("x", "=", "1"), ("y", "!~", "b")]), ("b", []), ("c", [])])
        page = 'a_total{x="1",y="c"} 1\nb 2\n'
        self.assertEqual(list(expressions.faults("w", "a_total + b", set(), page)), [])
        self.assertEqual(len(list(expressions.faults("w", 'a_total{x="2"}', set(), page))), 1)
        self.assertEqual(len(list(expressions.faults("w", "sum by (z) (a_total)", set(), page))), 1)
        self.assertEqual(len(list(expressions.faults("w", "gone", set(), page))), 1)
        self.assertEqual(len(list(expressions.faults("w", "b", {"y"}, page))), 1)

    def test_panels_do_not_lie_over_each_other(self):
        taken = set()
        for panel in expressions.panels():
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])}
            self.assertFalse(cells & taken, panel["title"])
            self.assertLessEqual(place["x"] + place["w"], 24)
            taken |= cells


if __name__ == "__main__":
    unittest.main(verbosity=2)
