"""A real Prometheus with the alert rules, which scrapes workers."""

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
    """Ends with its owner, a test or another with addCleanup() and enterContext(). `targets`: the address of each job's
    worker. In the rules the time for which a message may hold up its partition is some seconds."""

    def __init__(self, owner, targets):
        self._address = reserve_address(owner)
        folder = owner.enterContext(tempfile.TemporaryDirectory(prefix="gpu-worker-prometheus-"))
        rules = (expressions.FOLDER / "alerts.yaml").read_text()
        assert STUCK in rules
        with open(f"{folder}/alerts.yaml", "w") as file:
            file.write(rules.replace(STUCK, "gpu_worker_oldest_unfinished_seconds > 3"))
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "250ms"},
                  "rule_files": [f"{folder}/alerts.yaml"],
                  "scrape_configs": [{"job_name": job, "static_configs": [{"targets": [address]}]}
                                     for job, address in targets.items()]}
        with open(f"{folder}/prometheus.yaml", "w") as file:
            yaml.safe_dump(config, file)
        process = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yaml", f"--web.listen-address={self._address}",
             f"--storage.tsdb.path={folder}/data"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        owner.addCleanup(process.wait)
        owner.addCleanup(process.kill)

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

    def has_scraped(self, job, times):
        return self.ask(f'count_over_time(gpu_worker_build_info{{job="{job}"}}[5m]) >= {times}')[1] != []

    def alerts(self, job):
        """The labels, by name, of those of the job that fire, or will where it goes on."""
        return {result["metric"]["alertname"]: result["metric"] for result in self.ask(f'ALERTS{{job="{job}"}}')[1]}
