"""Every expression of the alerts and the dashboard, against a worker that ran jobs: its metric is exported with the
labels that the expression asks for, and a real Prometheus that scrapes the worker answers it.
usage: exports_test.py BUILD_FOLDER"""

import pathlib
import re
import subprocess
import sys
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "flow"))

from worker_flow import BINARY, BUILD, FlowTest, reserve_address

import expressions
from prometheus import Prometheus

JOB = """
id: "%s"
buffers: {x: {data: {f32: [1, 2]}, datatype: FP32}, y: {data: {f32: [3, 4]}, datatype: FP32}}
steps: [{program: %s, args: [{f32: 10}, x, y, {u32: 2}], elements: 2}]
outputs: [{buffer: y}]
"""


class ExportsTest(FlowTest):
    def setUp(self):
        super().setUp()
        self.address = reserve_address(self)
        broker = self.folder / "address"
        self.use_environment({"LD_LIBRARY_PATH": str((BUILD / "tests/gpu/fake_nvml").resolve()), "FAKE_NVML": "fine"})
        self.worker = self.start_worker({
            "driver": "cpu", "lanes": 1, "broker": "embedded", "embedded": {"address_file": str(broker)},
            "http": {"listen": self.address}, "retry": {"max_attempts": 2}})
        self.wait_until(broker.exists, "the embedded broker is there")
        self.wait_until(lambda: self.get(f"http://{self.address}/readyz") is not None, "the worker is ready")

    def get(self, address):
        try:
            with urllib.request.urlopen(address, timeout=240) as answer:
                return answer.read().decode()
        except OSError:
            return None

    def metrics(self):
        return self.get(f"http://{self.address}/metrics") or ""

    def submit(self, name, program):
        job = self.folder / "job.yaml"
        job.write_text(JOB % (name, program))
        subprocess.run([BINARY, "submit", "--config", self.folder / "worker.yaml", job], capture_output=True, timeout=240)

    def test_every_expression_finds_its_metric_and_prometheus_answers_it(self):
        self.submit("good", "saxpy")
        self.submit("bad", "nonsense")
        self.wait_until(lambda: len(re.findall(r"(?m)^gpu_worker_jobs_total{.* 1$", self.metrics())) == 2, "both are counted")
        self.wait_until(lambda: "gpu_worker_consumer_lag{" in self.metrics(), "the worker shows how things stand")
        page = self.metrics()
        checked = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True, timeout=240)
        self.assertEqual((checked.returncode, checked.stdout, checked.stderr), (0, "", ""))
        asked = list(expressions.expressions())
        self.assertGreater(len(asked), 40)
        self.assertEqual([fault for where, expression, shown in asked
                          for fault in expressions.faults(where, expression, shown, page)], [])
        prometheus = Prometheus(self, {"workers": self.address})
        self.wait_until(lambda: prometheus.has_scraped("workers", 2), "Prometheus scrapes the worker")
        self.assertEqual([f"{where}: {error}" for where, expression, _ in asked
                          if (error := prometheus.ask(expression)[0])], [])
        self.assertEqual(prometheus.ask('ALERTS{alertstate="firing"}'), (None, []), "a worker that is well fires nothing")
        for panel in expressions.panels():
            if panel["type"] == "stat":
                (target,) = panel["targets"]
                self.assertTrue(prometheus.ask(expressions.fill_in(target["expr"]))[1], panel["title"])
        self.stop_well(self.worker)


if __name__ == "__main__":
    unittest.main(verbosity=2)
