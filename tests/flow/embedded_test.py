"""A worker with the broker inside it, and the commands that find it there.
usage: embedded_test.py BUILD_FOLDER"""

import json
import subprocess
import time
import unittest

import confluent_kafka
import msgpack
import numpy
from worker_flow import BINARY, PATIENCE_S, FlowTest, gw

JOB = """
id: by-hand
buffers: {x: {data: {f32: [1, 2]}, datatype: FP32}, y: {data: {f32: [3, 4]}, datatype: FP32}}
steps: [{program: saxpy, args: [{f32: 10}, x, y, {u32: 2}], elements: 2}]
outputs: [{buffer: y}]
"""


BURST, BURST_ELEMENTS = 600, 10000


def sum_of(number):
    """Of some 40 KB: the sum is the number."""
    x = numpy.zeros(BURST_ELEMENTS, "<f4")
    x[-1] = number
    return gw.job(str(number), buffers={"x": gw.upload(x), "sums": gw.zeros([1], "<f4")},
                  steps=[gw.step("reduce_sum", ["x", "sums", gw.u32(BURST_ELEMENTS)], grid=[1])], outputs=["sums"])


class EmbeddedTest(FlowTest):
    def setUp(self):
        super().setUp()
        self.config = self.folder / "worker.yaml"
        self.job = self.folder / "job.yaml"
        self.job.write_text(JOB)

    def start(self, **more):
        address = self.folder / "address"
        worker = self.start_worker({
            "driver": "cpu", "lanes": 1, "broker": "embedded", "embedded": {"address_file": str(address)},
            "topics": {"control": "gpu-control"}, "retry": {"max_attempts": 1}, "log": {"level": "debug"},
        } | more)
        self.wait_until(address.exists, "the embedded broker is there")
        return worker

    def test_jobs_that_come_all_at_once_are_all_answered(self):
        worker = self.start(embedded={"address_file": str(self.folder / "address"), "partitions": 1})
        servers = (self.folder / "address").read_text().strip()
        producer = confluent_kafka.Producer({"bootstrap.servers": servers})
        refusals, answered = [], set()
        for number in range(BURST):
            producer.produce("gpu-jobs", msgpack.packb(sum_of(number)), on_delivery=lambda error, _: error and refusals.append(error))
        results = confluent_kafka.Consumer({
            "bootstrap.servers": servers, "group.id": "reader", "fetch.wait.max.ms": 2, "auto.offset.reset": "earliest"})
        results.assign([confluent_kafka.TopicPartition("gpu-results", 0, 0)])

        def read():
            producer.poll(0)
            for message in results.consume(100, 0.1):
                if message.error() is None:
                    result = msgpack.unpackb(message.value())
                    self.assertEqual(gw.arrays(result)["sums"][0], int(result["id"]))
                    answered.add(result["id"])
            return len(answered)
        self.wait_until(read, "each job is answered", is_met=lambda count: count == BURST)
        self.assertEqual((producer.flush(PATIENCE_S), refusals), (0, []))
        results.close()
        self.stop_well(worker)

    def run_command(self, command, *arguments):
        return subprocess.run(
            [BINARY, command, "--config", self.config, *arguments], timeout=PATIENCE_S, capture_output=True, text=True)

    def test_commands_find_the_broker_of_the_same_configuration_and_name_topics_that_it_has_not(self):
        worker = self.start_worker({
            "driver": "cpu", "lanes": 1, "broker": "embedded", "state": {"dir": str(self.folder / "state")}})
        answered = self.run_command("submit", self.job)
        tailed = self.run_command("tail", "--from-beginning", "--count", "1")
        lost = [self.run_command("tail", "--topic", "nowhere"), self.run_command("submit", "--topic", "nowhere", self.job)]
        with open("/dev/full", "w") as full:
            unwritten = subprocess.run([BINARY, "tail", "--config", self.config, "--from-beginning"], timeout=PATIENCE_S,
                                       stdout=full, stderr=subprocess.PIPE, text=True)
        self.stop_well(worker)
        self.assertIn("13, 24", answered.stdout, answered.stderr)
        self.assertIn("13, 24", tailed.stdout, tailed.stderr)
        for done in lost:
            self.assertEqual((done.returncode, done.stdout), (5, ""))
            self.assertIn("the embedded broker has no topic 'nowhere'; name one of", done.stderr)
        self.assertEqual((unwritten.returncode, unwritten.stderr),
                         (1, "gpu-worker tail: standard output: some of it could not be written\n"))
        self.assertFalse((self.folder / "state/broker.address").exists())

    def test_a_dead_letter_is_replayed(self):
        worker = self.start(cpu_driver={"faults": "cuLaunchKernel:launch_out_of_resources@1"})
        failed = self.run_command("submit", self.job)
        self.assertEqual(failed.returncode, 1)
        self.assertIn("driver_error", failed.stdout)
        # The result may be there before the dead letter; a tail waits for it, and a replay does not.
        self.run_command("tail", "--topic", "gpu-dead-letters", "--from-beginning", "--count", "1")
        replayed = self.run_command("replay", "--id", "by-hand")
        self.assertEqual(replayed.stdout.splitlines()[-1],
                         "replayed 1 of 1 dead letters; 0 skipped, 0 not taken by the brokers", replayed.stderr)
        tailed = self.run_command("tail", "--from-beginning", "--count", "2")
        self.stop_well(worker)
        self.assertIn("13, 24", tailed.stdout)

    def test_tail_prints_what_long_jobs_show_while_they_run(self):
        worker = self.start(topics={"progress": "gpu-progress"})
        long = "repeat: 4294967295\ntime_ms: 1000\nprogress: {every_ms: 100, outputs: [{buffer: x}]}\n"
        for id in ("by-hand", "other"):
            self.job.write_text(JOB.replace("by-hand", id) + long)
            self.assertEqual(self.run_command("submit", self.job).returncode, 0)
        tailed = self.run_command("tail", "--progress", "--from-beginning", "--id", "other", "--count", "1", "--json")
        self.stop_well(worker)
        line = json.loads(tailed.stdout)
        self.assertEqual((line["topic"], line["message"]["id"], line["message"]["live"]), ("gpu-progress", "other", 1))
        self.assertEqual(line["headers"], [["content-type", "application/msgpack"]])
        self.assertEqual(line["message"]["outputs"], [{"name": "x", "datatype": "FP32", "data": {"f32": [1, 2]}}])
        self.config.write_text("driver: cpu\n")
        unset = self.run_command("tail", "--progress")
        self.assertEqual(unset.returncode, 3)
        self.assertIn("topics.progress is not set", unset.stderr)
        both = self.run_command("tail", "--progress", "--topic", "gpu-results")
        self.assertEqual(both.returncode, 2)

    def test_tail_chooses_by_time_id_and_code_and_prints_json(self):
        worker = self.start()
        before = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        broken = self.folder / "broken.yaml"
        broken.write_text(JOB.replace("by-hand", "broken:12ab").replace("saxpy", "saxpi"))
        self.assertEqual(self.run_command("submit", self.job).returncode, 0)
        self.assertEqual(self.run_command("submit", broken).returncode, 1)

        def tailed(*options):
            done = self.run_command("tail", "--json", *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            return [json.loads(line) for line in done.stdout.splitlines()]

        # they may stand in two partitions, which are read in any order
        second, first = sorted(tailed("--from-beginning", "--count", "2"), key=lambda line: line["message"]["id"] != "broken:12ab")
        self.assertEqual((first["message"]["id"], second["message"]["id"]), ("by-hand", "broken:12ab"))
        self.assertEqual(first["message"]["outputs"][0]["data"], {"f32": [13, 24]})
        self.assertIn(["gpu-worker-status", "ok"], first["headers"])
        self.assertEqual([first["topic"], first["offset"], first["key"]], ["gpu-results", 0, None])
        self.assertEqual(tailed("--since", before, "--id", "by-hand", "--count", "1"), [first])
        self.assertEqual(tailed("--since", "1h", "--id", "broken:12ab", "--count", "1"), [second])
        self.assertEqual(tailed("--from-beginning", "--id", "broken", "--count", "1"), [second])  # the name that a client gave
        self.assertEqual(tailed("--from-beginning", "--code", "unknown_program", "--count", "1"), [second])
        (letter,) = tailed("--topic", "gpu-dead-letters", "--since", "1h", "--code", "unknown_program", "--count", "1")
        self.assertEqual(letter["message"]["id"], "broken:12ab")
        wrong = self.run_command("tail", "--since", "yesterday")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("--since is a time such as 2026-11-21T08:30:00Z, 90s", wrong.stderr)
        self.stop_well(worker)

    def test_dead_letters_of_a_file_are_replayed(self):
        jobs, dead = self.folder / "jobs.msgpack", self.folder / "dead.json"
        with open(jobs, "wb") as out:
            subprocess.run([BINARY, "submit", "--encode", self.job], stdout=out, check=True)
        subprocess.run([BINARY, "run", "--config", self.faulty(), "--jobs", jobs, "--results", "/dev/null",
                        "--dead-letters", dead], capture_output=True, timeout=PATIENCE_S)
        worker = self.start()
        dry = self.run_command("replay", "--from", dead, "--all", "--dry-run")
        self.assertEqual(dry.stdout.splitlines()[0], "by-hand: driver_error: to gpu-jobs", dry.stderr)
        self.assertEqual(self.run_command("replay", "--from", dead, "--since", "1h").returncode, 2)
        replayed = self.run_command("replay", "--from", dead, "--code", "driver_error")
        self.assertEqual(replayed.stdout, "replayed 1 of 1 dead letters; 0 skipped, 0 not taken by the brokers\n",
                         replayed.stderr)
        tailed = self.run_command("tail", "--from-beginning", "--count", "1")
        self.stop_well(worker)
        self.assertIn("13, 24", tailed.stdout)

    def faulty(self):
        path = self.folder / "faulty.yaml"
        path.write_text(json.dumps({"driver": "cpu", "retry": {"max_attempts": 1},
                                    "cpu_driver": {"faults": "cuLaunchKernel:launch_out_of_resources@1"}}))
        return path

    def test_a_job_is_cancelled(self):
        worker = self.start()
        cancelled = self.run_command("cancel", "by-hand")
        self.assertEqual((cancelled.returncode, cancelled.stdout), (0, "cancelled 1 on gpu-control\n"))
        self.wait_for_log("cancelled: by-hand")
        answered = self.run_command("submit", self.job)
        self.stop_well(worker)
        self.assertEqual(answered.returncode, 1)
        self.assertIn("cancelled", answered.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
