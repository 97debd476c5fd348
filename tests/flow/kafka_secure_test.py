"""The worker over TLS and SASL against a real Apache Kafka (scripts/kafka, KAFKA_SECURE=1).
usage: kafka_secure_test.py BUILD_FOLDER MECHANISM, with the server in GPU_WORKER_TEST_KAFKA*."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

MECHANISM = sys.argv.pop(2)

from kafka_topics import admin_of
from worker_flow import PATIENCE_S, KafkaFlowTest, is_saxpy, lag, read_all, saxpy

import confluent_kafka.admin as admin
import msgpack

SERVERS = os.environ["GPU_WORKER_TEST_KAFKA"]
PASSWORD = os.environ["KAFKA_PASSWORD"]
TLS = pathlib.Path(os.environ["GPU_WORKER_TEST_KAFKA_DIR"]) / "tls"
SECURE_PORT_OFFSET = 4


def secure_servers():
    host, port = SERVERS.split(",")[0].split(":")
    return f"{host}:{int(port) + SECURE_PORT_OFFSET}"


class SecureKafkaTest(KafkaFlowTest):
    def setUp(self):
        super().setUp()
        self.password_file = self.folder / "password"
        self.password_file.write_text(PASSWORD + "\n")

    def config(self, password=None, ca=TLS / "ca.pem", **more):
        """One that gives up at the first refusal."""
        client = {
            "security.protocol": "sasl_ssl", "sasl.mechanism": MECHANISM, "sasl.username": "worker",
            "sasl.password": password or {"file": str(self.password_file)}, "ssl.ca.location": str(ca),
        }
        config = super().config(executors={"deaths_max": 1}, **more)
        config["kafka"] |= {"bootstrap_servers": secure_servers(), "consumer": client, "producer": client}
        return config

    def assert_refused(self, config, reason, fix):
        """`run` ends by itself, with one line that says what to mend, and no secret in it."""
        for command in (["run"], ["check", "--connect"]):
            ended = self.run_to_end(config, *command)
            self.assertEqual(ended.returncode, 5, ended.stderr)
            lines = ended.stderr.splitlines()
            self.assertEqual(len(lines), 1 if command == ["run"] else 2, ended.stderr)
            for line in lines:
                self.assertIn(reason, line)
                self.assertIn(fix, line)
            self.assertNotIn(PASSWORD, ended.stderr)
            self.assertNotIn("hunter2", ended.stderr)

    def wait_for_no_lag_while_it_runs(self, worker):
        def look():
            self.assertIsNone(worker.status(), self.tell_logs())
            return lag(SERVERS, self.topics)
        self.wait_until(look, "all is answered", is_met=lambda left: left == 0)

    def deny(self, name, operation, kind=admin.ResourceType.TOPIC):
        self.bind(kind, name, operation, admin.AclPermissionType.DENY)

    @staticmethod
    def bind(kind, name, operation, permission, user="worker", pattern=admin.ResourcePatternType.LITERAL):
        binding = admin.AclBinding(kind, name, pattern, f"User:{user}", "*", operation, permission)
        for future in admin_of(SERVERS).create_acls([binding]).values():
            future.result(PATIENCE_S)
        return binding

    def allow_what_the_page_says(self):
        """The rows of the table of deploy/README.md, for this test's names. What somebody is allowed nobody else is: so
        that nothing stands open, somebody else is allowed it all."""
        names = {
            "topics.jobs": self.topics.jobs, "topics.control": self.topics.control, "topics.results": self.topics.results,
            "topics.dead_letters": self.topics.dead_letters, "topics.telemetry": self.topics.telemetry,
            "topics.progress": self.topics.progress, "topics.reply_to": "replies",
            "kafka.group": self.topics.group, "<kafka.group>-": f"{self.topics.group}-"}
        prefixed, literal = admin.ResourcePatternType.PREFIXED, admin.ResourcePatternType.LITERAL
        kinds = {"<kafka.group>-": (admin.ResourceType.TRANSACTIONAL_ID, prefixed), "kafka.group": (admin.ResourceType.GROUP, literal)}
        for key, name in names.items():
            kind, pattern = kinds.get(key, (admin.ResourceType.TOPIC, literal))
            self.bind(kind, name, admin.AclOperation.ALL, admin.AclPermissionType.ALLOW, "somebody-else", pattern)
        page = (pathlib.Path(__file__).resolve().parents[2] / "deploy/README.md").read_text()
        rows = re.findall(r"^\| (topic|group|transactional_id) \| (.+?) \| (Read|Write) \| (literal|prefixed) \|", page, re.M)
        self.assertEqual(len(rows), 4, rows)
        for kind, keys, operation, pattern in rows:
            for key in re.findall("`(.+?)`", keys):
                self.bind(admin.ResourceType[kind.upper()], names[key], admin.AclOperation[operation.upper()],
                          admin.AclPermissionType.ALLOW, pattern=admin.ResourcePatternType[pattern.upper()])

    def test_the_rights_that_the_page_names_are_enough(self):
        self.allow_what_the_page_says()
        cluster = self.bind(admin.ResourceType.BROKER, "kafka-cluster", admin.AclOperation.ALL,
                            admin.AclPermissionType.ALLOW, user="somebody-else")
        self.addCleanup(lambda: admin_of(SERVERS).delete_acls([admin.AclBindingFilter(
            cluster.restype, cluster.name, cluster.resource_pattern_type, cluster.principal, cluster.host, cluster.operation,
            cluster.permission_type)]))
        for number, delivery in enumerate(("at_least_once", "exactly_once")):
            config = self.config() | {"delivery": delivery, "commit_interval_ms": "100ms"}
            config["topics"] |= {"control": self.topics.control, "progress": self.topics.progress}
            checked = self.run_to_end(config, "check", "--connect")
            self.assertEqual(checked.returncode, 0, checked.stderr)
            self.produce(msgpack.packb(saxpy(number)))
            worker = self.start_worker(config, delivery)
            self.wait_for_no_lag_while_it_runs(worker)
            self.stop_well(worker)
        self.assertTrue(all(is_saxpy(result, int(result["id"].removeprefix("job-"))) for result in self.results()))
        self.assertEqual(len(self.results()), 2)

    def test_jobs_run_and_no_secret_is_shown(self):
        config = self.config(log={"level": "debug"})
        self.produce(*[msgpack.packb(saxpy(number)) for number in range(20)])
        checked = self.run_to_end(config, "check", "--connect")
        self.assertEqual(checked.returncode, 0, checked.stderr)
        worker = self.start_worker(config)
        self.wait_for_results(20)
        self.stop_well(worker)
        results = {result["id"]: result for result in self.results()}
        self.assertTrue(all(is_saxpy(results[f"job-{n}"], n) for n in range(20)))
        shown = self.run_to_end(config, "config", "show")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn('"sasl.password": "***"', shown.stdout)
        for text in (self.log_of(), shown.stdout, checked.stdout, checked.stderr):
            self.assertNotIn(PASSWORD, text)

    def test_a_wrong_password_is_one_clear_error(self):
        self.assert_refused(self.config(password="hunter2"), "SASL authentication error", "check sasl.")

    def test_a_wrong_authority_is_one_clear_error(self):
        other = self.folder / "other.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-noenc", "-subj", "/CN=other", "-keyout", "/dev/null",
             "-out", other], check=True, capture_output=True)
        self.assert_refused(self.config(ca=other), "certificate", "ssl.ca.location")

    def test_a_result_topic_that_nobody_creates_ends_the_run_and_is_named(self):
        self.deny("no-such-topic", admin.AclOperation.CREATE)
        self.produce(msgpack.packb(saxpy(1)))
        config = self.config()
        config["topics"]["results"] = "no-such-topic"
        config["kafka"]["producer"] = config["kafka"]["producer"] | {"topic.metadata.propagation.max.ms": "500"}
        ended = self.run_to_end(config, "run")
        self.assertEqual(ended.returncode, 5, ended.stderr)
        self.assertIn("gpu-worker run: no-such-topic refused", ended.stderr)

    def test_a_forbidden_group_and_a_forbidden_job_topic_each_end_the_run(self):
        self.produce(msgpack.packb(saxpy(1)))
        self.deny(self.topics.group, admin.AclOperation.READ, admin.ResourceType.GROUP)
        ended = self.run_to_end(self.config(), "run")
        self.assertEqual(ended.returncode, 5, ended.stderr)
        self.assertIn("gpu-worker run: GROUP_AUTHORIZATION_FAILED", ended.stderr)

        self.topics.group += "-of-others"
        self.deny(self.topics.jobs, admin.AclOperation.READ)
        ended = self.run_to_end(self.config(), "run")
        self.assertEqual(ended.returncode, 5, ended.stderr)
        self.assertIn("gpu-worker run: TOPIC_AUTHORIZATION_FAILED", ended.stderr)

    def test_check_names_every_topic_that_cannot_be_used(self):
        self.deny(self.topics.jobs, admin.AclOperation.DESCRIBE)
        config = self.config()
        config["topics"]["results"] = "no-such-topic"
        checked = self.run_to_end(config, "check", "--connect")
        self.assertEqual(checked.returncode, 5)
        lines = checked.stderr.splitlines()
        self.assertEqual(len(lines), 2, checked.stderr)
        self.assertIn(f"topic '{self.topics.jobs}' for kafka.consumer", lines[0])
        self.assertIn("topic 'no-such-topic' for kafka.producer", lines[1])

    def forbid_to_write(self, topic):
        """The worker may see it, as with the right to read it: then only the brokers refuse what it writes."""
        self.bind(admin.ResourceType.TOPIC, topic, admin.AclOperation.DESCRIBE, admin.AclPermissionType.ALLOW)
        self.deny(topic, admin.AclOperation.WRITE)

    def test_a_forbidden_result_topic_ends_the_run_and_is_named(self):
        self.produce(*[msgpack.packb(saxpy(number)) for number in range(3)])
        for forbid in (self.forbid_to_write, lambda topic: self.deny(topic, admin.AclOperation.DESCRIBE)):
            forbid(self.topics.results)
            for delivery in ("at_least_once", "exactly_once"):
                worker = self.start_worker(self.config() | {"delivery": delivery}, delivery)
                self.assertEqual(self.wait_for_end(worker), 5, self.log_of(delivery))
                self.assertRegex(self.log_of(delivery), f"gpu-worker run: {self.topics.results} refused")
        self.assertEqual(read_all(SERVERS, self.topics.dead_letters), [], "the jobs are not to blame")
        self.assertEqual(lag(SERVERS, self.topics), 3, "nothing is committed without its result")

    def test_a_forbidden_reply_to_refuses_only_the_results_that_go_there(self):
        forbidden, allowed = self.topics.control, self.topics.telemetry
        self.forbid_to_write(forbidden)
        for delivery in ("at_least_once", "exactly_once"):
            topics = [None, forbidden, allowed, allowed]
            jobs = [saxpy(number) | {"id": f"{delivery}-{number}"} | ({"reply_to": topic} if topic else {})
                    for number, topic in enumerate(topics)]
            self.produce(*map(msgpack.packb, jobs))
            config = self.config() | {"delivery": delivery, "commit_interval_ms": "100ms"}
            config["topics"]["reply_to"] = [forbidden, allowed]
            worker = self.start_worker(config, delivery, "--no-supervisor")
            self.wait_for_no_lag_while_it_runs(worker)
            self.stop_well(worker)
            results = {result["id"]: result for topic in (self.topics.results, allowed) for result in map(msgpack.unpackb, (
                message.value() for message in read_all(SERVERS, topic))) if "outputs" in result}
            for number in (0, 2, 3):
                self.assertTrue(is_saxpy(results[f"{delivery}-{number}"], number))
            self.assertEqual(results[f"{delivery}-1"]["error"]["code"], "publish_refused")


if __name__ == "__main__":
    unittest.main(verbosity=2)
