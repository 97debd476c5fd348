"""A real Prometheus with the alert rules, which scrapes one worker."""

import json
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request

import expressions
import yaml
from worker_flow import reserve_address

STUCK = "gpu_worker_oldest_unfinished_seconds > 600"


class Prometheus:
    """Ends with the test. In the rules the time for which a message may hold up its partition is some seconds."""

    def __init__(self, test, target):
        self._address = reserve_address(test)
        folder = test.enterContext(tempfile.TemporaryDirectory(prefix="gpu-worker-prometheus-"))
        rules = (expressions.FOLDER / "alerts.yaml").read_text()
        assert STUCK in rules
        with open(f"{folder}/alerts.yaml", "w") as file:
            file.write(rules.replace(STUCK, "gpu_worker_oldest_unfinished_seconds > 3"))
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "250ms"},
                  "rule_files": [f"{folder}/alerts.yaml"],
                  "scrape_configs": [{"job_name": "workers", "static_configs": [{"targets": [target]}]}]}
        with open(f"{folder}/prometheus.yaml", "w") as file:
            yaml.safe_dump(config, file)
        process = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yaml", f"--web.listen-address={self._address}",
             f"--storage.tsdb.path={folder}/data"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        test.addCleanup(process.wait)
        test.addCleanup(process.kill)

    def ask(self, expression):
        """(its error or None, what it finds)"""
        query = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(f"http://{self._address}/api/v1/query?{query}", timeout=240) as answer:
                return None, json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            return error.read().decode(), []
        except OSError as error:
            return str(error), []

    def has_scraped(self, times):
        return self.ask(f"count_over_time(gpu_worker_build_info[5m]) >= {times}")[1] != []

    def alerts(self):
        """(name, labels) of those that fire, or will where it goes on."""
        return {result["metric"]["alertname"]: result["metric"] for result in self.ask("ALERTS")[1]}
