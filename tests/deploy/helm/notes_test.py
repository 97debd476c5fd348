"""What NOTES.txt says is true: its commands run, with a kubectl that enters the pod that this test is.
usage: notes_test.py TOOLS BUILD"""

import pathlib
import shutil
import subprocess
import tempfile
import textwrap
import time
import unittest

import chart
from chart import CHART, HERE, WORKER, helm, yaml

KUBECTL = """#!/bin/sh
# `kubectl exec ... -- command`: the command, with the configuration of this machine
while [ "$1" != -- ]; do shift; done
shift 2
exec {worker} "$1" --config {config} "$4"
"""
CONFIG = "{{driver: cpu, broker: embedded, embedded: {{address_file: {folder}/address}}, state: {{dir: {folder}/state}}}}"
CLIENT = "{{kafka: {{bootstrap_servers: '{address}'}}}}"


def notes(values):
    """NOTES.txt as an installation prints it, which helm does for a cluster only."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "gpu-worker"
        shutil.copytree(CHART, copy)
        shutil.copy(CHART / "templates/NOTES.txt", copy / "notes")
        (copy / "templates/notes.yaml").write_text('{"notes": {{ tpl (.Files.Get "notes") . | toJson }}}')
        printed = helm("template", "sweep", copy, "--namespace", "jobs", "--values", values, *chart.IMAGE,
                       "--show-only", "templates/notes.yaml").stdout
        return next(yaml.safe_load_all(printed))["notes"]


class Notes(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def start_worker(self):
        (self.folder / "worker.yaml").write_text(CONFIG.format(folder=self.folder))
        worker = subprocess.Popen([WORKER, "run", "--config", self.folder / "worker.yaml"], stderr=subprocess.DEVNULL)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.terminate)
        address = self.folder / "address"
        while not (address.exists() and address.read_text().strip()):
            self.assertIsNone(worker.poll(), "the worker ended")
            time.sleep(0.05)
        return address.read_text().strip()

    def test_the_first_job_runs_as_it_stands_there(self):
        text = notes(HERE / "values/minimal.yaml")
        begin = text.index("    kubectl exec")
        command = textwrap.dedent(text[begin:text.index("    JOB\n", begin) + len("    JOB\n")])
        self.assertIn("deployment/sweep-gpu-worker -- gpu-worker submit", command)
        (self.folder / "client.yaml").write_text(CLIENT.format(address=self.start_worker()))
        kubectl = self.folder / "kubectl"
        kubectl.write_text(KUBECTL.format(worker=WORKER, config=self.folder / "client.yaml"))
        kubectl.chmod(0o755)
        done = chart.run("sh", "-c", command, env={"PATH": f"{self.folder}:/usr/bin:/bin"})
        self.assertIn("status: ok", done.stdout)
        self.assertIn("data: {f32: [12, 24, 36]}", done.stdout)

    def test_a_fleet_that_sleeps_is_woken_first(self):
        self.assertIn("autoscaling.keda.sh/paused-replicas=1", notes(HERE / "values/keda.yaml"))
        self.assertNotIn("autoscaling.keda.sh", notes(HERE / "values/minimal.yaml"))

    def test_the_lag_for_which_a_pod_is_started_is_said_with_what_it_comes_from(self):
        self.assertIn("KEDA starts a pod for each 225 messages of lag of a topic: a wait of 90 s where a pod finishes 2.5 jobs a\n"
                      "second", notes(HERE / "values/keda.yaml"))
        self.assertIn("KEDA starts a pod for each 500 messages of lag of a topic (keda.lagThreshold)",
                      notes(HERE / "values/secured.yaml"))

    def test_oidc_names_the_library_that_it_needs(self):
        self.assertIn("`gpu-worker check` says so", notes(HERE / "values/oidc.yaml"))
        self.assertNotIn("OAUTHBEARER", notes(HERE / "values/secured.yaml"))

    def test_a_grace_period_that_autoscalers_cut_is_named(self):
        self.assertIn("WARNING: a pod may take 910 s to end", notes(HERE / "values/programs.yaml"))
        self.assertNotIn("WARNING", notes(HERE / "values/small.yaml"))

    def test_a_gpu_that_is_shared_is_named(self):
        self.assertIn("Time-slicing isolates neither memory nor", notes(HERE / "values/programs.yaml"))

    def test_programs_of_the_users_are_named(self):
        self.assertIn("The job needs the program saxpy in /etc/gpu-worker/programs", notes(HERE / "values/programs.yaml"))


if __name__ == "__main__":
    unittest.main()
