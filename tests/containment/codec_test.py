"""Messages that crash whoever decodes or encodes them: each costs itself.
usage: codec_test.py BUILD_FOLDER CRASHING_CODEC"""

import argparse
import pathlib
import sys
import tempfile
import unittest

from containment_test import letters_of, run_worker
from poison import is_saxpy, is_verdict, saxpy

import gpu_worker as gw
from worker_environment import for_faults
from worker_process import JOBS_FAILED

BUILD, CRASHING_CODEC = map(pathlib.Path, (sys.argv.pop(1), sys.argv.pop(1)))
COUNT = 500
CRASHING = (0, 123, 124, 499)


class CodecTest(unittest.TestCase):
    def run_jobs(self, jobs):
        """Results by id, and dead letters as offset, code and attempts, of a worker whose codec crashes."""
        with tempfile.TemporaryDirectory(prefix="gpu-worker-containment-") as name:
            folder = pathlib.Path(name)
            arguments = argparse.Namespace(build=BUILD, driver="cpu")
            status, log, _ = run_worker(folder, arguments, jobs, for_faults(CRASHING_CODEC))
            results = list(gw.read_results(folder / "results"))
            letters = letters_of(folder, "dlq.source.offset", "dlq.error.code", "dlq.attempts")
        deaths = sum("the executor died" in line for _, line in log)
        print(f"{len(jobs)} messages, {len(CRASHING)} of which crash: {len(results)} results, {deaths} deaths, "
              f"dead letters (offset, code, attempts): {letters}")
        self.assertEqual(status, JOBS_FAILED, "\n".join(line for _, line in log[-60:]))
        self.assertEqual(len({result["id"] for result in results}), len(results), "nobody is answered twice")
        self.assertEqual(len(letters), len(CRASHING))
        for _, code, attempts in letters:
            self.assertEqual(code, "worker_crash")
            self.assertGreaterEqual(int(attempts), 2)
        return {result["id"]: result for result in results}

    def assert_innocents_are_answered(self, results):
        for n in set(range(COUNT)) - set(CRASHING):
            self.assertTrue(is_saxpy(results.pop(f"job-{n}"), n))

    def test_a_message_that_crashes_its_decoder_gets_a_dead_letter_alone(self):
        jobs = [saxpy(f"job-{n}", n) for n in range(COUNT)]
        for n in CRASHING:
            jobs[n]["steps"][0]["program"] = "crash-the-decoder"
        results = self.run_jobs(jobs)
        self.assert_innocents_are_answered(results)
        self.assertEqual(results, {})

    def test_a_job_whose_outputs_crash_the_encoder_is_convicted(self):
        jobs = [saxpy(f"job-{n}", n) for n in range(COUNT)]
        for n in CRASHING:
            jobs[n]["outputs"] = [{"buffer": "y", "as": "crash-the-encoder"}]
        results = self.run_jobs(jobs)
        self.assert_innocents_are_answered(results)
        self.assertEqual(set(results), {f"job-{n}" for n in CRASHING})
        for result in results.values():
            self.assertTrue(is_verdict(result, "worker_crash"), result)

    def test_a_job_whose_every_answer_crashes_the_encoder_gets_a_dead_letter_alone(self):
        results = self.run_jobs(
            [saxpy(f"crash-the-answers{n}" if n in CRASHING else f"job-{n}", n) for n in range(COUNT)])
        self.assert_innocents_are_answered(results)
        self.assertEqual(results, {})


if __name__ == "__main__":
    unittest.main(verbosity=2)
