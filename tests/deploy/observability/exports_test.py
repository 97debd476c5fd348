"""Every expression of the alerts and the dashboard, against a worker that ran jobs: its metric is exported with the
labels that the expression asks for, and a real Prometheus that scrapes the worker answers it.
usage: exports_test.py BUILD_FOLDER"""

import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "flow"))

from worker_flow import BINARY, BUILD, FlowTest

import expressions
import yaml

JOB = """
id: "%s"
buffers: {x: {data: {f32: [1, 2]}, datatype: FP32}, y: {data: {f32: [3, 4]}, datatype: FP32}}
steps: [{program: %s, args: [{f32: 10}, x, y, {u32: 2}], elements: 2}]
outputs: [{buffer: y}]
"""


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return "127.0.0.1:%d" % probe.getsockname()[1]


class ExportsTest(FlowTest):
    def setUp(self):
        super().setUp()
        self.address, self.prometheus = free_address(), free_address()
        broker = self.folder / "address"
        self.use_environment({"LD_LIBRARY_PATH": str((BUILD / "tests/gpu/fake_nvml").resolve()), "FAKE_NVML": "fine"})
        self.worker = self.start_worker({
            "driver": "cpu", "lanes": 1, "broker": "embedded", "embedded": {"address_file": str(broker)},
            "http": {"listen": self.address}, "retry": {"max_attempts": 2}})
        self.wait_until(broker.exists, "the embedded broker is there")
        self.wait_until(lambda: self.get(f"http://{self.address}/readyz") is not None, "the worker is ready")

    def get(self, address):
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                return answer.read().decode()
        except OSError:
            return None

    def metrics(self):
        return self.get(f"http://{self.address}/metrics") or ""

    def submit(self, name, program):
        job = self.folder / "job.yaml"
        job.write_text(JOB % (name, program))
        subprocess.run([BINARY, "submit", "--config", self.folder / "worker.yaml", job], capture_output=True, timeout=240)

    def start_prometheus(self):
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                  "rule_files": [str(expressions.FOLDER / "alerts.yaml")],
                  "scrape_configs": [{"job_name": "workers", "static_configs": [{"targets": [self.address]}]}]}
        (self.folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="gpu-worker-prometheus-"))
        process = subprocess.Popen(
            ["prometheus", f"--config.file={self.folder}/prometheus.yaml", f"--web.listen-address={self.prometheus}",
             f"--storage.tsdb.path={folder}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    def ask(self, expression):
        """(its error or None, what it finds)"""
        query = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(f"http://{self.prometheus}/api/v1/query?{query}", timeout=60) as answer:
                return None, json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            return error.read().decode(), []
        except OSError as error:
            return str(error), []

    def test_every_expression_finds_its_metric_and_prometheus_answers_it(self):
        self.submit("good", "saxpy")
        self.submit("bad", "nonsense")
        self.wait_until(lambda: "gpu_worker_consumer_lag{" in self.metrics(), "the worker shows how things stand")
        page = self.metrics()
        checked = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True, timeout=60)
        self.assertEqual((checked.returncode, checked.stdout, checked.stderr), (0, "", ""))
        asked = list(expressions.expressions())
        self.assertGreater(len(asked), 40)
        self.assertEqual([fault for where, expression, shown in asked
                          for fault in expressions.faults(where, expression, shown, page)], [])
        self.start_prometheus()
        self.wait_until(lambda: self.ask("count_over_time(gpu_worker_build_info[5m]) > 2")[1], "Prometheus scrapes the worker")
        self.assertEqual([f"{where}: {error}" for where, expression, _ in asked
                          if (error := self.ask(expression)[0])], [])
        self.assertEqual(self.ask('ALERTS{alertstate="firing"}'), (None, []), "a worker that is well fires nothing")
        for panel in expressions.panels():
            if panel["type"] == "stat":
                (target,) = panel["targets"]
                self.assertTrue(self.ask(expressions.fill_in(target["expr"]))[1], panel["title"])
        self.stop_well(self.worker)


if __name__ == "__main__":
    unittest.main(verbosity=2)
