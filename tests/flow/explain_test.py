"""gpu-worker explain: where a job is and what became of it, as a real Apache Kafka and a worker know it.
usage: explain_test.py BUILD_FOLDER [TEST...], for the classes with Kafka its host:port in GPU_WORKER_TEST_KAFKA."""

import json
import unittest

from worker_environment import for_faults
from worker_flow import SLOWER, FlowTest, KafkaFlowTest, gw, lag, reserve_address, saxpy

import msgpack
import numpy


def wrong(name, program="no-such-program"):
    job = saxpy(1)
    job["id"] = name
    job["steps"][0]["program"] = program
    return job


class Explain:
    """For tests with a configuration `self.settings`."""

    def explain(self, name, *options, status=0):
        done = self.run_to_end(self.settings, "explain", *options, name)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def explain_json(self, name, status=0):
        return json.loads(self.explain(name, "--json", status=status))


class EmbeddedTest(Explain, FlowTest):
    def test_what_became_of_a_job_is_said_in_sentences(self):
        address = self.folder / "address"
        self.settings = {
            "driver": "cpu", "lanes": 1, "broker": "embedded", "embedded": {"address_file": str(address)},
            "http": {"listen": reserve_address(self)}, "retry": {"max_attempts": 1}}
        worker = self.start_worker(self.settings)
        self.wait_until(address.exists, "the embedded broker is there")
        for name, program in (("good", "saxpy"), ("bad\x1b[31m", "nonsense"), ("named:12ab", "nonsense"), ("twice:1", "saxpy"),
                              ("twice:2", "saxpy")):
            job = self.folder / "job.yaml"
            job.write_text(json.dumps({
                "id": name, "outputs": [{"buffer": "y"}],
                "buffers": {key: {"data": {"f32": [1, 2]}, "datatype": "FP32"} for key in "xy"},
                "steps": [{"program": program, "args": [{"f32": 10}, "x", "y", {"u32": 2}], "elements": 2}]}))
            self.run_to_end(self.settings, "submit", job)
        self.assertIn("It succeeded. Its result: gpu-results/", self.explain("good"))
        self.wait_until(lambda: len(self.explain_json("bad\x1b[31m")["answers"]) == 2, "its dead letter is there, too")
        said = self.explain("bad\x1b[31m")
        for part in ("It failed with unknown_program: ", "Fix: ", "A dead letter of it (unknown_program): gpu-dead-letters/",
                     "for the program nonsense.", "gpu-worker replay --id"):
            self.assertIn(part, said)
        self.assertNotIn("\x1b", said)
        self.assertEqual(self.explain_json("bad\x1b[31m")["verdict"], "failed")
        said = self.explain("named")  # a client's id: the name of a job, and a token
        self.assertIn("It failed with unknown_program: ", said)
        self.assertRegex(said, "Its message: gpu-jobs/[0-9]+/[0-9]+, published ")
        self.assertIn(", under the id 'named:12ab'", said)
        self.assertIn("gpu-worker replay --id named:12ab", said)
        self.assertEqual([job["id"] for job in self.explain_json("named")["jobs"]], ["named:12ab"])
        self.assertIn("Several jobs have this name", self.explain("twice"))
        self.assertNotIn("Several", self.explain("twice:1"))
        self.assertIn("has the id 'name'", self.explain("name", status=1))
        self.assertIn("has the id 'nobody'", self.explain("nobody", status=1))
        self.stop_well(worker)
        done = self.run_to_end(self.settings, "explain", "good")
        self.assertEqual(done.returncode, 5, done.stderr)


class KafkaTest(Explain, KafkaFlowTest):
    def setUp(self):
        super().setUp()
        self.settings = self.config(http={"listen": reserve_address(self)}, retry={"max_attempts": 2, "base_ms": "1ms"})
        self.settings["topics"]["control"] = self.topics.control

    def produce_jobs(self, *jobs):
        self.produce(*map(msgpack.packb, jobs), key=b"one partition")

    def test_before_a_worker_takes_it_a_job_waits_and_then_it_has_an_answer(self):
        self.produce_jobs(saxpy(0), saxpy(1), wrong("wrong"))
        said = self.explain("job-1")
        self.assertIn("has finished nothing of its partition so far", said)
        self.assertIn("The worker cannot be asked", said)
        found = self.explain_json("job-1")
        self.assertEqual((found["verdict"], found["jobs"][0]["topic"]), ("waiting", self.topics.jobs))
        self.run_to_end(self.settings, "cancel", "job-1")
        self.assertIn(f"It was asked to be cancelled: {self.topics.control}/", self.explain("job-1"))
        worker = self.start_worker(self.settings)
        self.wait_for_no_lag()
        self.assertEqual(self.explain_json("job-0")["verdict"], "succeeded")
        self.assertEqual(self.explain_json("job-1")["verdict"], "cancelled")
        found = self.explain_json("wrong")
        self.assertEqual(found["verdict"], "failed")
        self.assertEqual([answer["is_dead_letter"] for answer in found["answers"]], [False, True])
        result = found["answers"][0]
        self.assertEqual((result["code"], result["retry"]), ("unknown_program", "worker"))
        self.assertGreater(len(result["fix"]), 0)
        self.stop_well(worker)
        self.settings["topics"] |= {"results": self.topics.telemetry, "telemetry": self.topics.results}
        self.assertEqual(self.explain_json("job-0")["verdict"], "finished", "its answer is not found, and its offset is committed")

    def test_how_many_are_before_a_job_and_that_a_worker_has_them(self):
        self.settings |= SLOWER
        worker = self.start_worker(self.settings)
        self.produce_jobs(*map(saxpy, range(1500)))
        self.wait_until(lambda: lag(self.servers, self.topics), "some are finished", is_met=lambda left: left < 1490)
        worker.kill()  # so that nothing moves while it is asked
        said = self.explain("job-1499")
        self.assertRegex(said, r"It has no answer yet: \d+ messages of its partition before it are not finished")
        before = int(said.split("no answer yet: ")[1].split()[0])
        self.assertTrue(0 < before < 1499, before)

    def test_a_blob_store_that_is_away_is_named(self):
        self.settings["blobs"] = {"url": f"http://{reserve_address(self)}/", "cache_dir": str(self.folder)}
        job = saxpy(1)
        job["buffers"]["x"] = gw.blob(numpy.full(4, 1, "<f4"))
        worker = self.start_worker(self.settings)
        self.produce_jobs(job)
        for part in ("(blob_store)", "have failed and wait to be tried again", "GPU 0 of this worker reads its partition"):
            self.wait_until(lambda: part in self.explain("job-1"), part)
        self.assertIn("It has no answer yet", self.explain("job-1"))
        self.assertEqual(self.explain_json("job-1")["verdict"], "waiting")
        worker.kill()

    def test_poison_and_what_is_refused_because_of_it_are_named(self):
        self.use_environment(for_faults())
        self.settings |= {"suspend": {"convictions": 1}, "cpu_driver": {"faults": "cuLaunchKernel:illegal_address@1"}}
        worker = self.start_worker(self.settings)
        self.produce_jobs(saxpy(1))
        self.wait_until(lambda: self.explain_json("job-1")["verdict"] == "failed", "it is convicted")
        self.assertIn("It failed with gpu_illegal_address: ", self.explain("job-1"))
        self.produce_jobs(saxpy(2))
        self.wait_until(lambda: self.explain_json("job-2")["verdict"] == "failed", "it is refused")
        self.assertIn("It failed with suspended: ", self.explain("job-2"))
        self.stop_well(worker)


if __name__ == "__main__":
    unittest.main(verbosity=2)
