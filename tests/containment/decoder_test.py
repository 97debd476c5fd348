"""Messages that crash whoever decodes them: each costs itself, and becomes a dead letter that nobody decodes again.
usage: decoder_test.py BUILD_FOLDER CRASHING_UNPACK"""

import argparse
import pathlib
import sys
import tempfile
import unittest

from containment_test import letters_of, run_worker
from poison import is_saxpy, saxpy

import gpu_worker as gw

BUILD, CRASHING_UNPACK = map(pathlib.Path, (sys.argv.pop(1), sys.argv.pop(1)))
COUNT = 500
CRASHING = (0, 123, 124, 499)


class DecoderTest(unittest.TestCase):
    def test_a_message_that_crashes_its_decoder_costs_itself(self):
        jobs = [saxpy(f"crash-the-decoder-{n}" if n in CRASHING else f"job-{n}", n) for n in range(COUNT)]
        with tempfile.TemporaryDirectory(prefix="gpu-worker-containment-") as name:
            folder = pathlib.Path(name)
            arguments = argparse.Namespace(build=BUILD, driver="cpu")
            status, log, _ = run_worker(folder, arguments, jobs, LD_PRELOAD=str(CRASHING_UNPACK.resolve()))
            results = list(gw.read_results(folder / "results"))
            letters = letters_of(folder, "dlq.source.offset", "dlq.error.code", "dlq.attempts")
        deaths = sum("the executor died" in line for _, line in log)
        print(f"{COUNT} messages, {len(CRASHING)} of which crash their decoder: {len(results)} results, {deaths} deaths, "
              f"dead letters (offset, code, attempts): {letters}")
        self.assertEqual(status, 0, "\n".join(line for _, line in log[-60:]))
        self.assertEqual({result["id"] for result in results}, {f"job-{n}" for n in range(COUNT) if n not in CRASHING})
        self.assertEqual(len(results), COUNT - len(CRASHING))
        self.assertTrue(all(is_saxpy(result, int(result["id"].removeprefix("job-"))) for result in results))
        self.assertEqual(len(letters), len(CRASHING))
        for _, code, attempts in letters:
            self.assertEqual(code, "worker_crash")
            self.assertGreaterEqual(int(attempts), 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
