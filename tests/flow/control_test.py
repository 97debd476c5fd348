"""Cancels and replays against a real Apache Kafka, with real workers.
usage: control_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA."""

import json
import time
import unittest

from job_client import JobClient
from worker_flow import PATIENCE_S, KafkaFlowTest, headers_of, is_saxpy, read_all, saxpy, unpack

import msgpack

BROKEN = {"cpu_driver": {"faults": "cuLaunchKernel:launch_out_of_resources@*"}}


class ControlTest(KafkaFlowTest):
    def config(self, **more):
        config = super().config(retry={"max_attempts": 2, "base_ms": "1ms", "max_ms": "1ms"}, **more)
        config["topics"]["control"] = self.topics.control
        return config

    def run_command(self, *command, config=None, status=0):
        done = self.run_to_end(config or self.config(), *command)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def client(self):
        client = JobClient(self.servers, self.topics.jobs, self.topics.results, self.topics.control)
        self.addCleanup(client.close)
        return client

    def letters(self):
        return [headers_of(letter) for letter in read_all(self.servers, self.topics.dead_letters)]

    def work_until_done(self, name, **more):
        worker = self.start_worker(self.config(**more), name)
        self.wait_for_no_lag()
        self.stop_well(worker)

    # --- cancel ---

    def test_every_worker_hears_of_every_cancel(self):
        count = 40
        workers = [self.start_worker(self.config(log={"level": "debug"}), f"worker-{n}") for n in range(2)]
        client = self.client()
        self.run_command("cancel", *[f"job-{n}" for n in range(0, count, 4)])
        client.cancel([f"job-{n}" for n in range(2, count, 4)])
        for n in range(2):
            self.wait_for_log("cancelled: job-", f"worker-{n}", count // 2)
        client.submit([saxpy(n) for n in range(count)])
        results = {result["id"]: result for result in client.results([f"job-{n}" for n in range(count)], PATIENCE_S)}
        for worker in workers:
            self.stop_well(worker)
        for n in range(count):
            result = results[f"job-{n}"]
            if n % 2 == 0:
                self.assertEqual((result["error"]["code"], result["error"]["retry"]), ("cancelled", "never"))
            else:
                self.assertTrue(is_saxpy(result, n))
        self.assertEqual(self.letters(), [], "what was cancelled has not failed")

    def test_a_worker_that_starts_later_knows_what_was_cancelled(self):
        out, _ = self.run_command("cancel", "job-1", "--json")
        self.assertEqual(json.loads(out), {"cancelled": 1, "topic": self.topics.control})
        client = self.client()
        client.submit([saxpy(1), saxpy(2)])
        worker = self.start_worker(self.config())
        results = {result["id"]: result for result in client.results(["job-1", "job-2"], PATIENCE_S)}
        self.stop_well(worker)
        self.assertEqual(results["job-1"]["error"]["code"], "cancelled")
        self.assertTrue(is_saxpy(results["job-2"], 2))

    def test_an_array_lets_short_jobs_pass_between_its_slices_and_a_cancel_ends_it_there(self):
        worker = self.start_worker(self.config(lanes=1, limits={"timeout_max_ms": "1h"}))
        client = self.client()
        step = {"program": "saxpy", "args": [{"f32": 1}, "x", "y", {"u32": 0}], "grid": [1], "iterations": 20_000}
        client.submit([{  # it would take hours
            "v": 1, "id": "array", "count": 1_000_000, "timeout_ms": 3_600_000, "steps": [step],
            "buffers": {"x": {"bytes": 4}, "y": {"bytes": 4, "each": True}}, "outputs": []}])
        sent, batch = 0, 0
        while batch <= sent:  # slices have numbers among the batches
            sent += 1
            client.submit([saxpy(sent)])
            (result,) = client.results([f"job-{sent}"], PATIENCE_S)
            self.assertTrue(is_saxpy(result, sent))
            batch = result["telemetry"]["batch"]["id"]
        client.cancel(["array"])
        (result,) = client.results(["array"], PATIENCE_S)
        self.stop_well(worker)
        self.assertEqual(result["error"]["code"], "cancelled")
        self.assertGreaterEqual(result["telemetry"]["slices"], 1)
        self.assertEqual(self.letters(), [], "what was cancelled has not failed")

    def test_a_cancel_is_forgotten_after_its_time(self):
        self.run_command("cancel", "job-1")
        time.sleep(1.1)  # what is tested is that time passes
        client = self.client()
        client.submit([saxpy(1)])
        worker = self.start_worker(self.config(cancels={"ttl_ms": "1s"}))
        (result,) = client.results(["job-1"], PATIENCE_S)
        self.stop_well(worker)
        self.assertTrue(is_saxpy(result, 1))

    def test_a_control_topic_that_is_not_there_is_one_clear_error(self):
        config = self.config()
        config["topics"]["control"] = "nowhere"
        done = self.run_to_end(config, "run")
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertRegex(done.stderr.splitlines()[-1], r"gpu-worker run: topic 'nowhere'.*create the topic")
        _, said = self.run_command("cancel", "job-1", config=self.config() | {"topics": {}}, status=3)
        self.assertIn("topics.control is not set", said)

    # --- replay ---

    def test_dead_letters_become_jobs_again(self):
        with self.producing() as send:
            for n in range(6):
                send(msgpack.packb(saxpy(n)), key=f"key-{n}", headers=[("mine", b"x"), ("content-type", b"job")])
            send(b"\xc1", key="no-job")
        self.work_until_done("broken", **BROKEN)
        letters = self.letters()
        self.assertEqual(sorted(letter["dlq.error.code"] for letter in letters), ["bad_message"] + 6 * ["driver_error"])
        self.assertEqual({letter["dlq.attempts"] for letter in letters if "gpu-worker-job-id" in letter}, {"2"})

        out, _ = self.run_command("replay", "--code", "driver_error", "--dry-run")
        self.assertIn(f"job-3: driver_error: to {self.topics.jobs}", out)
        self.assertTrue(out.endswith("would replay 6 of 7 dead letters; 0 skipped, 0 not taken by the brokers\n"), out)
        self.assertEqual(len(read_all(self.servers, self.topics.jobs)), 7)
        out, _ = self.run_command("replay", "--code", "driver_error", "--dry-run", "--json")
        *jobs, sums = map(json.loads, out.splitlines())
        self.assertIn({"id": "job-3", "code": "driver_error", "topic": self.topics.jobs}, jobs)
        self.assertEqual((len(jobs), sums), (6, {"would_replay": 6, "read": 7, "skipped": 0, "not_taken": 0}))

        out, _ = self.run_command("replay", "--id", "job-3", "--id", "job-4", "--since", "1h")
        self.assertTrue(out.startswith("replayed 2 of 7"), out)
        out, _ = self.run_command("replay", "--code", "driver_error", "--count", "1", "--until", "1h")
        self.assertTrue(out.startswith("replayed 0 of 7"), out)
        again = {message.key(): message for message in read_all(self.servers, self.topics.jobs)
                 if "gpu-worker-replayed-from" in headers_of(message)}
        self.assertEqual(set(again), {b"key-3", b"key-4"})
        self.assertEqual(unpack(again[b"key-3"]), saxpy(3))
        headers = headers_of(again[b"key-3"])
        origin = headers.pop("gpu-worker-replayed-from")
        self.assertRegex(origin, rf"^{self.topics.jobs}/\d/\d+$")
        self.assertEqual(headers, {"mine": "x", "content-type": "job"})

        self.work_until_done("broken-again", **BROKEN)
        (letter, *_) = [letter for letter in self.letters() if letter.get("gpu-worker-replayed-from") == origin]
        self.assertEqual(letter["dlq.attempts"], "2", "attempts start anew")
        self.run_command("replay", "--code", "driver_error")
        self.work_until_done("healthy")
        results = [unpack(message) for message in read_all(self.servers, self.topics.results)]
        good = [result["id"] for result in results if result["status"] == "ok"]
        self.assertEqual(set(good), {f"job-{n}" for n in range(6)})
        self.assertTrue(all(is_saxpy(result, int(result["id"][4:])) for result in results if result["status"] == "ok"))

    def test_jobs_go_back_only_to_topics_that_are_listed(self):
        self.client().submit([saxpy(1)])
        self.work_until_done("broken", **BROKEN)
        config = self.config()
        config["topics"]["jobs"] = ["others"]
        out, said = self.run_command("replay", "--all", config=config, status=1)
        self.assertIn("its job's topic is not in topics.jobs", said)
        self.assertIn("replayed 0 of 1", out)
        self.assertEqual(len(read_all(self.servers, self.topics.jobs)), 1)

    def test_replay_wants_to_be_told_which(self):
        _, said = self.run_command("replay", status=2)
        self.assertIn("say which dead letters, or --all", said)
        self.run_command("replay", "--all", "--code", "io", status=2)
        self.run_command("replay", "--since", "yesterday", status=2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
