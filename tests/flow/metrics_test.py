"""What /metrics says of a worker at a real Apache Kafka: counts that are those of its messages, and outlive executors.
usage: metrics_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA."""

import collections
import os
import re
import signal
import subprocess
import unittest

from worker_flow import ROOT, SLOWER, KafkaFlowTest, ask, reserve_address, saxpy

import msgpack

LINE = re.compile(r'(\w+)(?:{((?:\w+="(?:[^"\\]|\\.)*",?)*)})? (\S+)')


class Page:
    """Samples by name, each with its labels."""

    def __init__(self, text):
        self.text = text
        self.types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
        self.samples = collections.defaultdict(dict)
        for line in text.splitlines():
            if not line.startswith("#"):
                name, labels, value = LINE.fullmatch(line).groups()
                pairs = sorted(pair for pair in re.findall(r'(\w+)="([^"]*)"', labels or "") if pair[0] != "uuid")
                self.samples[name][tuple(pairs)] = float(value)

    def sum(self, name, **labels):
        return sum(value for pairs, value in self.samples[name].items() if set(labels.items()) <= set(pairs))


class MetricsTest(KafkaFlowTest):
    def start(self, **more):
        self.address = reserve_address(self)
        return self.start_worker(self.config(http={"listen": self.address}, retry={"max_attempts": 2}, **more))

    def wait_for(self, condition, what):
        """The page of which the condition holds."""
        return Page(self.wait_until(lambda: ask(self.address, "/metrics")[1], what, is_met=lambda text: condition(Page(text))))

    def test_counts_are_those_of_the_messages_and_outlive_executors(self):
        worker = self.start()
        unknown = saxpy(1)
        unknown["steps"][0]["program"] = "no-such-\"program\""
        self.produce(*[msgpack.packb(saxpy(number)) for number in range(60)], b"noise", b"more noise", msgpack.packb(unknown))
        page = self.wait_for(lambda page: page.sum("gpu_worker_jobs_total") == 63, "63 answers")
        self.assertEqual(page.sum("gpu_worker_jobs_total", program="saxpy", code="ok"), 60)
        self.assertEqual(page.sum("gpu_worker_jobs_total", program="", code="bad_message"), 2)
        self.assertEqual(page.sum("gpu_worker_jobs_total", program="", code="unknown_program"), 1)
        self.assertEqual(page.sum("gpu_worker_retries_total", code="unknown_program"), 1)
        self.assertEqual(page.sum("gpu_worker_dead_letters_total"), 3)
        self.assertEqual(page.sum("gpu_worker_job_seconds_count", stage="total"), 63)
        self.assertEqual(page.sum("gpu_worker_job_seconds_bucket", stage="total", le="+Inf"), 63)
        self.assertEqual(page.sum("gpu_worker_job_seconds_count", stage="device"), 60)
        self.assertGreater(page.sum("gpu_worker_job_seconds_sum", stage="decode"), 0)
        self.assertEqual(page.sum("gpu_worker_batch_jobs_sum"), 60)
        self.assertGreater(page.sum("gpu_worker_copied_bytes_total", direction="h2d"), 0)
        self.assertNotIn("no-such", page.text, "a sender can name no label")
        page = self.wait_for(lambda page: page.sum("gpu_worker_jobs_in_flight") == 0
                             and list(page.samples["gpu_worker_consumer_lag"].values()) == [0] * 4, "no lag")
        self.assertEqual(page.sum("gpu_worker_oldest_unfinished_seconds"), 0)
        self.assertGreaterEqual(page.sum("gpu_worker_rebalances_total"), 1)
        self.assertIn((("code", "gpu_hang"), ("device", "0")), page.samples["gpu_worker_convictions_total"],
                      "what has not occurred is 0, so that its first increase shows")
        self.assert_clean(page)
        self.assert_documented(page)

        self.wait_for_no_lag()  # what is finished but not committed would run again, and count again
        os.kill(worker.executors()[0], signal.SIGKILL)
        later = self.wait_for(lambda page: page.sum("gpu_worker_executor_starts_total") == 2, "another executor")
        self.assert_no_less(page, later)
        self.produce(*[msgpack.packb(saxpy(number)) for number in range(40)])
        later = self.wait_for(lambda page: page.sum("gpu_worker_jobs_total") == 103 and page.sum("gpu_worker_executor_up"),
                              "40 more answers")
        self.assertEqual(later.sum("gpu_worker_jobs_total", code="ok"), 100)
        self.assertEqual(later.sum("gpu_worker_batch_jobs_sum"), 100)
        self.assertEqual(later.sum("gpu_worker_executor_deaths_total"), 1)
        later = self.wait_for(lambda page: "gpu_worker_jobs_in_flight" in page.samples, "the new one shows how things stand")
        self.assert_no_less(page, later)
        self.stop_well(worker)

    def test_lag_and_the_oldest_message_show_where_jobs_wait(self):
        worker = self.start(**SLOWER)
        self.produce(*[msgpack.packb(saxpy(number)) for number in range(2000)], key=b"all in one partition")
        page = self.wait_for(lambda page: page.sum("gpu_worker_consumer_lag") > 500
                             and page.sum("gpu_worker_oldest_unfinished_seconds") > 0, "lag")
        behind = [pairs for pairs, value in page.samples["gpu_worker_consumer_lag"].items() if value > 0]
        self.assertEqual(len(behind), 1)
        self.assertIn(("topic", self.topics.jobs), behind[0])
        self.assertGreater(page.sum("gpu_worker_jobs_in_flight"), 0)
        self.assertGreater(page.sum("gpu_worker_bytes_in_flight"), 0)
        worker.kill()

    def assert_clean(self, page):
        linted = subprocess.run(["promtool", "check", "metrics"], input=page.text, capture_output=True, text=True)
        self.assertEqual((linted.returncode, linted.stdout, linted.stderr), (0, "", ""))

    def assert_documented(self, page):
        readme = (ROOT / "deploy/README.md").read_text()
        documented = set(re.findall(r"^\| `(gpu_worker_\w+|process_\w+)`", readme, re.MULTILINE))
        self.assertEqual(documented, set(page.types))

    def assert_no_less(self, before, after):
        """Counters, buckets, sums and counts never fall, and none is gone."""
        for name, samples in before.samples.items():
            family = re.sub("_(bucket|sum|count)$", "", name)
            if before.types.get(name) != "counter" and before.types.get(family) != "histogram":
                continue
            for pairs, value in samples.items():
                self.assertGreaterEqual(after.samples[name][pairs], value, f"{name} {pairs}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
