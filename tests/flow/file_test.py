"""`gpu-worker run --jobs FILE --results FILE`: the worker without any broker.
usage: file_test.py BUILD_FOLDER"""

import array
import os
import subprocess
import unittest

from worker_flow import BINARY, BUILD, PATIENCE_S, FlowTest, is_saxpy, saxpy

import check_job
import gpu_worker as gw
import msgpack
import numpy


def saxpy_array(n, count):
    """y = k x + y of three floats, where x is {k, k + 1, k + 2} of instance k, and y is n."""
    x = array.array("f", [k + i for k in range(count) for i in range(3)]).tobytes()
    y = array.array("f", [n] * 3 * count).tobytes()
    k = array.array("f", range(count)).tobytes()
    each = {"bytes": 12, "each": True, "datatype": "FP32", "shape": [3]}
    step = gw.step("saxpy", [{"each": {"f32": k}}, "x", "y", {"u32": 3}], elements=3)
    buffers = {"x": each | {"data": x}, "y": each | {"data": y}}
    return {"v": 1, "id": f"array-{n}", "count": count, "buffers": buffers, "steps": [step], "outputs": [{"buffer": "y"}]}


class FileTest(FlowTest):
    def run_jobs(self, jobs, *options):
        path = self.folder / "jobs"
        path.write_bytes(jobs)
        results = self.folder / "results"
        run = subprocess.run(
            [BINARY, "run", "--driver", "cpu", "--jobs", path, "--results", results, *options],
            capture_output=True, text=True, timeout=PATIENCE_S)
        return run, list(gw.read_results(results))

    def test_a_hundred_thousand_jobs_give_a_hundred_thousand_correct_results(self):
        count = 100_000
        run, results = self.run_jobs(b"".join(msgpack.packb(saxpy(n)) for n in range(count)))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual({result["id"] for result in results}, {f"job-{n}" for n in range(count)})
        self.assertEqual(len(results), count)
        for result in results:
            self.assertTrue(is_saxpy(result, int(result["id"].removeprefix("job-"))), result)

    def test_arrays_beside_single_jobs_give_what_their_instances_give_alone(self):
        jobs = b""
        for n in range(200):
            jobs += msgpack.packb(saxpy_array(n, count=1 + n * 37 % 3000)) + msgpack.packb(saxpy(n))
        run, results = self.run_jobs(jobs)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(results), 400)
        for result in results:
            kind, _, n = result["id"].partition("-")
            if kind == "job":
                self.assertTrue(is_saxpy(result, int(n)), result)
                continue
            [output] = result["outputs"]
            count = 1 + int(n) * 37 % 3000
            self.assertEqual(output["shape"], [count, 3])
            expected = [k * x + int(n) for k in range(count) for x in (k, k + 1, k + 2)]
            self.assertEqual(output["data"], array.array("f", expected).tobytes(), result["id"])
            self.assertEqual(result["telemetry"]["instances"], count)
            self.assertEqual(result["telemetry"]["kernel_launches"], count)
            self.assertGreaterEqual(result["telemetry"]["slices"], 1)

    def test_long_jobs_show_how_far_they_are_in_a_file(self):
        long = {"repeat": 2**32 - 1, "time_ms": 1000}
        every = {"every_ms": 100, "outputs": [{"buffer": "y"}, {"buffer": "y", "offset": 4, "bytes": 4, "as": "part"}]}
        single = saxpy(1) | long | {"progress": every}
        several = saxpy_array(1, count=3) | long | {"progress": every}
        silent = saxpy(2) | long
        path = self.folder / "progress"
        run, results = self.run_jobs(b"".join(map(msgpack.packb, (single, several, silent))), "--progress", path)
        self.assertEqual((run.returncode, len(results)), (0, 3), run.stderr)
        validator, rounds = check_job.load_validator("progress"), {"job-1": [], "array-1": []}
        for shown in gw.read_results(path):
            validator.validate(shown)
            rounds[shown["id"]].append(shown["rounds"])
            count = 3 if shown["id"] == "array-1" else 1
            self.assertEqual((shown["v"], shown["attempt"], shown["live"]), (1, 1, count))
            y, part = (numpy.frombuffer(output["data"], "<f4") for output in shown["outputs"])
            self.assertEqual(shown["outputs"][0].get("shape"), [3, 3] if count == 3 else [4])
            self.assertEqual(part.tolist(), y.reshape(count, -1)[:, 1].tolist())
            if count == 1:
                self.assertEqual(y.tolist(), [2 * shown["rounds"] + 1] * 4)
        ends = {result["id"]: int(numpy.max(gw.ends(result).rounds)) for result in results}
        for id, shown in rounds.items():
            self.assertGreater(len(shown), 0, id)
            self.assertEqual(shown, sorted(set(shown)))
            self.assertLessEqual(shown[-1], ends[id])

    def test_a_million_instances_of_nothing_end_well_or_with_a_clear_error(self):
        nothing = {"v": 1, "count": 1_000_000, "buffers": {}, "outputs": [], "timeout_ms": 120000}
        steps = [gw.step("saxpy", [{"f32": 1.0}, "x", "y", {"u32": 0}], grid=[1])]
        buffers = {"x": {"bytes": 0}, "y": {"bytes": 0, "each": True}}
        million = nothing | {"id": "million", "steps": steps, "buffers": buffers}
        run, results = self.run_jobs(
            msgpack.packb(million) + msgpack.packb(million | {"id": "more", "count": 1_000_001}))
        codes = {result["id"]: result.get("error", {}).get("code") for result in results}
        self.assertEqual(codes, {"million": None, "more": "too_large"}, run.stderr)

    def test_jobs_come_from_standard_input_and_results_go_to_standard_output(self):
        run = subprocess.run(
            [BINARY, "run", "--driver", "cpu", "--jobs", "-", "--results", "-"],
            input=msgpack.packb(saxpy(5)), capture_output=True, timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue(is_saxpy(msgpack.unpackb(run.stdout), 5))

    def through_a_pipe(self, numbers, sizes, *options, **popen):
        """One job after the other; the log of the worker."""
        with subprocess.Popen(
                [BINARY, "run", "--driver", "cpu", "--jobs", "-", "--results", "-", *options],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, **popen) as worker:
            results = msgpack.Unpacker()
            for number in numbers:
                worker.stdin.write(msgpack.packb(saxpy(number, size=sizes[number % len(sizes)])))
                while (result := next(results, None)) is None:
                    read = worker.stdout.read(1 << 16)
                    self.assertTrue(read, "the worker has ended")
                    results.feed(read)
                self.assertTrue(is_saxpy(result, number), result)
            worker.stdin.close()
            log = worker.stderr.read().decode()
            self.assertEqual(worker.wait(PATIENCE_S), 0, log)
            return log

    def test_jobs_that_come_one_at_a_time_are_answered_one_at_a_time_however_lanes_wait(self):
        for lane_wait in ("block", "spin"):
            config = self.folder / f"{lane_wait}.yaml"
            config.write_text(f"lane_wait: {lane_wait}\nlanes: 1\n")
            # the results of larger ones are no single write to a pipe
            self.through_a_pipe(range(60), (4, 3000, 100_000), "--config", config)

    def test_lanes_that_spin_without_a_core_of_their_own_are_warned_of_once(self):
        one = min(os.sched_getaffinity(0))
        config = self.folder / "spin.yaml"
        config.write_text("lane_wait: spin\nlanes: 2\n")
        log = self.through_a_pipe(range(3), (4,), "--config", config, preexec_fn=lambda: os.sched_setaffinity(0, {one}))
        warning = "lane_wait: spin needs more CPUs than lanes: 1 CPUs, 2 lanes; lower lanes"
        self.assertEqual(log.count(warning), 1, log)

    def test_a_job_that_fails_is_a_result_and_a_dead_letter_and_the_exit_code_says_so(self):
        broken = saxpy(1) | {"id": "broken", "steps": [gw.step("nope", [], grid=[1])]}
        letters = self.folder / "letters"
        run, results = self.run_jobs(
            msgpack.packb(broken) + msgpack.packb(saxpy(2)), "--dead-letters", letters)
        self.assertEqual(run.returncode, 7, run.stderr)
        codes = {result["id"]: result.get("error", {}).get("code") for result in results}
        self.assertEqual(codes, {"broken": "unknown_program", "job-2": None})
        self.assertEqual(len(letters.read_text().splitlines()), 1)
        self.assertIn("unknown_program", letters.read_text())

    def test_each_job_ahead_of_bytes_that_end_the_file_is_answered(self):
        config = self.folder / "small.yaml"
        config.write_text("limits:\n  message_bytes: 64KiB\nretry:\n  base_ms: 500ms\n  max_attempts: 2\n")
        waiting = saxpy(2) | {"id": "waiting", "steps": [gw.step("nope", [], grid=[1])]}  # is tried again
        ends = {"no msgpack": b"\xc1", "an ext value": b"\xd4\x01\x00", "cut": b"\xa5hel",
                "too large": msgpack.packb(bytes(100_000))}
        for name, end in ends.items():
            with self.subTest(name):
                run, results = self.run_jobs(
                    msgpack.packb(saxpy(1)) + msgpack.packb(waiting) + end, "--config", config)
                self.assertIn("what follows it cannot be read", run.stderr)
                codes = {result["id"]: result.get("error", {}).get("code") for result in results if result["id"]}
                self.assertEqual(codes, {"job-1": None, "waiting": "unknown_program"}, run.stderr)

    def test_nvml_that_hangs_changes_no_exit_code(self):
        self.use_environment({"LD_LIBRARY_PATH": str((BUILD / "tests/gpu/fake_nvml").resolve()), "FAKE_NVML": "hung"})
        run, results = self.run_jobs(b"".join(msgpack.packb(saxpy(n)) for n in range(10)))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(results), 10)
        self.assertIn("NVML hangs", run.stderr)

    def test_the_debug_log_tells_how_long_each_stage_took(self):
        config = self.folder / "config.yaml"
        config.write_text("log: {level: debug}\n")
        run, results = self.run_jobs(msgpack.packb(saxpy(1)), "--config", config)
        batch = results[0]["telemetry"]["batch"]["id"]
        self.assertRegex(run.stderr, rf"batch {batch}: 1 jobs, 1 launches, stage \d+ ns, enqueue \d+ ns, wait \d+ ns")
        self.assertRegex(run.stderr, rf"job \S+/0/0: batch {batch}, decode \d+ ns, publish \d+ ns")

    def test_a_broken_stream_keeps_what_came_before_and_ends_with_one_clear_error(self):
        good = msgpack.packb(saxpy(1))
        letters = self.folder / "letters"
        run, results = self.run_jobs(good + b"\xdf\xff\xff\xff\xff", "--dead-letters", letters)
        self.assertEqual(run.returncode, 1)
        self.assertEqual([result["id"] for result in results], ["job-1"])
        self.assertEqual(len(letters.read_text().splitlines()), 1)
        errors = [line for line in run.stderr.splitlines() if line.startswith("gpu-worker run:")]
        self.assertEqual(len(errors), 1, run.stderr)
        self.assertIn(str(len(good)), errors[0])

    def test_a_gpu_that_is_asked_for_and_not_there_is_one_clear_error(self):
        run, _ = self.run_jobs(msgpack.packb(saxpy(1)), "--driver", "cuda")
        if run.returncode == 0:
            self.skipTest("this machine has a GPU")
        self.assertEqual(run.returncode, 4, run.stderr)
        self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)
        self.assertIn("driver: cpu", run.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
