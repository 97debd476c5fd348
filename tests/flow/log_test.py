"""The log as JSON: every line of real runs fits the schema, and lines about jobs say which.
usage: log_test.py BUILD_FOLDER"""

import json
import re
import unittest

import confluent_kafka
import jsonschema
import msgpack
from worker_environment import for_faults
from worker_flow import PATIENCE_S, QUIET, ROOT, FlowTest, saxpy, write_aside

SCHEMA = json.loads((ROOT / "schemas/log.schema.json").read_text())
TRACE = "0af7651916cd43dd8448eb211c80319c"


class LogTest(FlowTest):
    def start(self, level, **more):
        self.broker = self.folder / "address"
        self.settings = {
            "driver": "cpu", "lanes": 1, "broker": "embedded", "embedded": {"address_file": str(self.broker)},
            "log": {"format": "json", "level": level}, "retry": {"max_attempts": 2, "base_ms": "1ms"}} | more
        worker = self.start_worker(self.settings)
        self.wait_until(self.broker.exists, "the embedded broker is there")
        return worker

    def lines(self, name="worker"):
        found = []
        for text in (self.folder / f"{name}.log").read_text().splitlines(keepends=True):
            if text.endswith("\n"):  # else it is being written
                found.append(json.loads(text))
                jsonschema.validate(found[-1], SCHEMA)
        return found

    def of(self, event, **fields):
        return [line for line in self.lines() if line.get("event") == event and fields.items() <= line.items()]

    def wait_for(self, event, **fields):
        return self.wait_until(lambda: self.of(event, **fields), f"{event} {fields}")[0]

    def produce(self, *values, headers=None):
        producer = confluent_kafka.Producer(QUIET | {"bootstrap.servers": self.broker.read_text().strip()})
        for value in values:
            producer.produce("gpu-jobs", value, headers=headers)
        self.assertEqual(producer.flush(PATIENCE_S), 0)

    def test_lines_about_jobs_say_which(self):
        worker = self.start("debug")
        wrong = saxpy(2)
        wrong["steps"][0]["program"] = "no-such-program"
        self.produce(msgpack.packb(saxpy(1)), msgpack.packb(wrong), headers={"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"})
        self.produce(b"noise", headers={"traceparent": "00-" + 60 * "\""})
        answered = self.wait_for("job_answered", job="job-1", program="saxpy", topic="gpu-jobs", trace_id=TRACE)
        self.assertNotIn("code", answered)
        self.wait_for("job_retried", job="job-2", program="no-such-program", code="unknown_program", trace_id=TRACE)
        self.wait_for("job_failed", job="job-2", code="unknown_program")
        letter = self.wait_for("dead_letter", code="bad_message", topic="gpu-jobs")
        self.assertFalse({"job", "program", "trace_id"} & letter.keys(), "what is not known has no field")
        worker.reload()
        self.wait_for("reloaded")
        write_aside(self.folder / "worker.yaml", json.dumps(self.settings | {"lanes": "many"}))
        worker.reload()
        self.wait_for("reload_refused", code="config")
        self.wait_for("ready")
        self.stop_well(worker)
        self.wait_for("done")

    def test_nothing_is_said_of_a_job_that_ends_well_or_of_an_error_of_its_sender(self):
        worker = self.start("info")
        wrong = [saxpy(number) for number in range(50)]
        for job in wrong:
            job["steps"][0]["program"] = "no-such-program"
        self.produce(*map(msgpack.packb, wrong), *[msgpack.packb(saxpy(number)) for number in range(50, 150)])
        marker = saxpy(1000)
        self.produce(b"noise", msgpack.packb(marker))
        self.wait_for("dead_letter", code="bad_message")
        self.stop_well(worker)
        self.assertEqual([line for line in self.lines() if "job" in line], [])
        self.assertLess(len(self.lines()), 60)

    def test_deaths_and_convictions_have_their_place(self):
        self.use_environment(for_faults())
        config = {"driver": "cpu", "lanes": 1, "log": {"format": "json"},
                  "cpu_driver": {"faults": "cuLaunchKernel:illegal_address@1"}}
        jobs = self.folder / "jobs"
        jobs.write_bytes(msgpack.packb(saxpy(1)))
        (self.folder / "worker.log").write_text(
            self.run_to_end(config, "run", "--jobs", jobs, "--results", self.folder / "results").stderr)
        self.wait_for("executor_died")
        self.assertEqual((self.wait_for("convicted")["partition"], self.wait_for("convicted")["offset"]), (0, 0))

    def test_fatal_lines_are_json_as_well(self):
        for config, code in (({"lanes": "many"}, "config"), ({"http": {"listen": "no.such.host.invalid:1"}}, "config"),
                             ({"driver": "cuda"}, "no_device")):  # the process that lists devices says so
            self.use_environment({"CUDA_VISIBLE_DEVICES": ""})  # as where there is no driver
            failed = self.run_to_end({"driver": "cpu", "log": {"format": "json"}} | config, "run")
            self.assertNotEqual(failed.returncode, 0)
            (self.folder / "worker.log").write_text(failed.stderr)
            self.assertEqual([line["code"] for line in self.of("fatal")], [code], failed.stderr)
        failed = self.run_to_end({"driver": "cuda"}, "run")
        self.assertTrue(failed.stderr.startswith("gpu-worker run: "), failed.stderr)
        shown = self.run_to_end({"log": {"format": "json"}, "lanes": "many"}, "check")
        self.assertTrue(shown.stderr.startswith("gpu-worker check: "), "commands talk to people")

    def test_the_schema_has_every_event_and_no_other(self):
        used = set()
        for path in (ROOT / "worker").rglob("*.c"):
            text = path.read_text()
            used |= set(re.findall(r'\.event = "(\w+)"', text)) | set(re.findall(r'job_fields\(job, "(\w+)"\)', text))
            for arguments in re.findall(r"LOG_EVENT\(([^()]*)\)", text):
                used |= set(re.findall(r'"(\w+)"', arguments))
            used |= set(re.findall(r'name_message\(\s*state, \w+, "(\w+)"', text))
        self.assertEqual(used, set(SCHEMA["properties"]["event"]["enum"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
