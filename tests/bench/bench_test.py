"""What gpu-worker bench prints; how much it measures is no test's business.
usage: bench_test.py BINARY"""

import json
import re
import subprocess
import sys
import tempfile
import unittest

BINARY = sys.argv.pop(1)
HANGS_AFTER_S = 600
# Each lane has large jobs to warm up, which a thread sanitizer copies slowly.
CONFIG = tempfile.NamedTemporaryFile("w", suffix=".yaml")
CONFIG.write("lanes: 2\n")
CONFIG.flush()
FEW_LANES = ("--config", CONFIG.name)
RATE = re.compile(r"\| (.+) \| (\d+) \| (\d+) \| (\d+) % \| (\d+) \.\. (\d+) % \|")


def bench(*arguments):
    return subprocess.run([BINARY, "bench", *arguments], capture_output=True, text=True, timeout=HANGS_AFTER_S)


def rows(which, rounds, *more):
    """What --json prints: a row each line. Nothing else is printed."""
    done = bench(which, "--driver", "cpu", "--rounds", str(rounds), "--ms", "1", "--json", *more)
    if (done.returncode, done.stderr) != (0, ""):
        raise AssertionError(done)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Smoke(unittest.TestCase):
    def test_each_bench_prints_a_table(self):
        """`state` and `isolation` are `engine` with other settings."""
        small = {"arrays": ("--instances", "8"), "cost": (), "engine": (), "flat": ("--many", "100"),
                 "graphs": ("--instances", "2", "--iterations", "2"), "latency": (), "pools": (),
                 "scale": ("--devices", "1", "--instances", "4", "--iterations", "2"), "statics": (),
                 "sweep": ("--instances", "2", "--iterations", "2")}
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
            config.write("lanes: 1\nlane_depth: 1\n")
            config.flush()
            for which, more in small.items():
                done = bench(which, "--driver", "cpu", "--config", config.name, "--rounds", "1", "--ms", "1", *more)
                self.assertEqual((done.returncode, done.stderr), (0, ""), which)
                self.assertRegex(done.stdout, r"\n\| .+ \|\n", which)


class Bench(unittest.TestCase):
    def assert_figures(self, row, *names, facts_too=()):
        """A row has these figures and no other, each in order, and no facts but the usual ones and those named."""
        facts = {name: value for name, value in row.items() if not isinstance(value, dict)}
        self.assertEqual("cpu", row["driver"])
        self.assertEqual({"bench", "driver", "processors", "rounds", "work", *facts_too}, set(facts))
        self.assertEqual(set(names), set(row) - set(facts))
        for name in names:
            self.assertEqual(["least", "median", "most"], list(row[name]), name)
            self.assertLessEqual(row[name]["least"], row[name]["median"], name)
            self.assertLessEqual(row[name]["median"], row[name]["most"], name)

    def test_engine_prints_a_ratio_for_each_kind_of_work_and_what_a_single_job_takes(self):
        done = bench("engine", "--driver", "cpu", "--rounds", "1", "--ms", "1", *FEW_LANES)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        bare, with_messages = done.stdout.split("| work | message loop, jobs/s |")
        self.assertEqual(len({name for name, *_ in RATE.findall(bare)}), 7, done.stdout)
        self.assertEqual(len({name for name, *_ in RATE.findall(with_messages)}), 2, done.stdout)
        self.assertRegex(done.stdout, r"one job at a time: baseline [\d.]+ us, worker [\d.]+ us")

    def test_state_compares_the_same_work_with_and_without_a_state_file(self):
        done = bench("state", "--driver", "cpu", "--rounds", "1", "--ms", "1", *FEW_LANES)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len(RATE.findall(done.stdout)), 7, done.stdout)
        self.assertIn("without state file", done.stdout)

    def test_isolation_compares_tenants_that_change_seldom_and_always_with_none(self):
        done = bench("isolation", "--driver", "cpu", "--rounds", "1", "--ms", "1", *FEW_LANES)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rates = RATE.findall(done.stdout)
        self.assertEqual(len({name for name, *_ in rates}), 16, done.stdout)
        self.assertIn("not isolated", done.stdout)

    def test_json_has_the_figures_of_each_row_under_names(self):
        found = rows("state", 1, *FEW_LANES)
        self.assertEqual(7, len(found))
        for row in found:
            self.assert_figures(row, "baseline_jobs_per_s", "worker_jobs_per_s", "ratio_percent")
            self.assertEqual("state", row["bench"])

    def test_pools_compares_both_kinds_of_memory_with_free_lists_behind_mutexes_by_one_to_16_threads(self):
        found = rows("pools", 3)
        self.assertEqual({f"{memory}, {threads}, {held} held" for memory in ("device", "pinned") for held in (1, 8)
                          for threads in ("alone", "2 threads", "4 threads", "8 threads", "16 threads")},
                         {row["work"] for row in found})
        for row in found:
            self.assert_figures(row, *(f"{side}_{figure}" for side in ("baseline", "pool")
                                       for figure in ("operations_per_s", "p50_ns", "p99_ns")))
            for side in ("baseline", "pool"):
                self.assertGreater(row[f"{side}_operations_per_s"]["least"], 0)
                self.assertLessEqual(row[f"{side}_p50_ns"]["least"], row[f"{side}_p99_ns"]["most"])

    def test_pools_prints_a_table_of_the_same(self):
        done = bench("pools", "--driver", "cpu", "--rounds", "1", "--ms", "1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
        self.assertEqual(2 + 20, len(lines), done.stdout)
        self.assertEqual(1, len({line.count("|") for line in lines}), done.stdout)

    def test_arrays_compares_array_jobs_with_single_jobs_and_the_link(self):
        found = rows("arrays", 1, "--instances", "8")
        self.assertEqual({"2 x 4 KiB in, 4 KiB out", "64 B in, 16 B out, one shared static"},
                         {row["work"] for row in found})
        rates = ("link_instances_per_s", "single_instances_per_s", "array_instances_per_s")
        for row in found:
            self.assert_figures(row, *rates, "ratio_percent", "times_single")
            for rate in rates:
                self.assertGreater(row[rate]["least"], 0)

    def test_arrays_prints_a_table_of_the_same(self):
        done = bench("arrays", "--driver", "cpu", "--rounds", "1", "--ms", "1", "--instances", "8")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
        self.assertEqual(2 + 2, len(lines), done.stdout)
        self.assertEqual(1, len({line.count("|") for line in lines}), done.stdout)

    def test_scale_measures_one_device_and_two_at_a_time_with_each_kind_of_work(self):
        found = rows("scale", 1, "--devices", "2", "--instances", "4", "--iterations", "2")
        self.assertEqual(7, len({row["work"] for row in found}))
        self.assertEqual(7 * [1, 2], [row["devices"] for row in found])
        for row in found:
            self.assert_figures(row, "jobs_per_s", "linear_percent", "cpu_cores", "to_device_mb_per_s", "to_host_mb_per_s",
                                facts_too=["devices"])
            for name in ("jobs_per_s", "linear_percent", "cpu_cores"):
                self.assertGreater(row[name]["least"], 0, (row["work"], name))
            if row["devices"] == 1:
                self.assertEqual({"least": 100.0, "median": 100.0, "most": 100.0}, row["linear_percent"])

    def test_scale_prints_a_table_of_the_same(self):
        done = bench("scale", "--driver", "cpu", "--rounds", "1", "--ms", "1", "--devices", "1", "--instances", "4",
                     "--iterations", "2")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
        self.assertEqual(2 + 7, len(lines), done.stdout)
        self.assertEqual(1, len({line.count("|") for line in lines}), done.stdout)

    def test_scale_says_which_executor_could_not_work(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
            config.write('{"cpu_driver": {"faults": "cuStreamCreate:not_supported@*"}}')
            config.flush()
            done = bench("scale", "--driver", "cpu", "--config", config.name, "--devices", "1")
        self.assertNotEqual(0, done.returncode)
        self.assertIn("cuStreamCreate", done.stderr)
        self.assertRegex(done.stderr, r"an executor ended with code \d+")

    def test_scale_reads_a_configuration_that_comes_through_a_pipe(self):
        done = subprocess.run(
            [BINARY, "bench", "scale", "--driver", "cpu", "--config", "-", "--devices", "1", "--rounds", "1", "--ms", "1",
             "--instances", "4", "--iterations", "2"], input="lanes: 1\n", capture_output=True, text=True, timeout=HANGS_AFTER_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_statics_compares_a_warm_static_with_none_and_jobs_by_how_many_of_their_statics_are_there(self):
        warm, *by_hits = rows("statics", 1)
        self.assert_figures(warm, "without_ns", "with_ns", "added_ns", "added_cpu_ns")
        for name in ("without_ns", "with_ns"):
            self.assertGreater(warm[name]["least"], 0)
        self.assertEqual(5, len({row["work"] for row in by_hits}))
        for row in by_hits:
            self.assert_figures(row, "hit_percent", "jobs_per_s", "ratio_percent")
            self.assertGreater(row["jobs_per_s"]["least"], 0)
        self.assertEqual(100, by_hits[0]["hit_percent"]["least"])
        self.assertEqual(100, by_hits[0]["ratio_percent"]["least"])
        # Of as many jobs, each kind finds no more statics than the one before.
        found = [row["hit_percent"]["most"] for row in by_hits]
        self.assertEqual(sorted(found, reverse=True), found)
        self.assertLess(found[-1], 50)

    def test_statics_prints_tables_of_the_same(self):
        done = bench("statics", "--driver", "cpu", "--rounds", "1", "--ms", "1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        warm, by_hits = ([line for line in part.splitlines() if line.startswith("|")]
                         for part in done.stdout.split("\n\n")[1:])
        for lines, count in ((warm, 1), (by_hits, 5)):
            self.assertEqual(2 + count, len(lines), done.stdout)
            self.assertEqual(1, len({line.count("|") for line in lines}), done.stdout)

    def test_flat_compares_many_statics_keys_partitions_and_programs_with_one(self):
        found = rows("flat", 1, "--many", "200")
        self.assertEqual([(work, count) for work in ("statics", "keys", "partitions", "programs") for count in (1, 2, 200)],
                         [(row["work"], row["count"]) for row in found])
        for row in found:
            self.assert_figures(row, "jobs_per_s", "ratio_percent", facts_too=["count"])
            self.assertGreater(row["jobs_per_s"]["least"], 0)
            if row["count"] == 1:
                self.assertEqual(100, row["ratio_percent"]["least"])

    def test_sweep_compares_the_main_job_as_single_jobs_with_one_array(self):
        [row] = rows("sweep", 3, "--instances", "8", "--iterations", "2")
        self.assert_figures(row, "array_jobs_per_s", "single_jobs_per_s", "ratio_percent", facts_too=["jobs"])
        self.assertEqual(8, row["jobs"])
        self.assertGreater(min(row["array_jobs_per_s"]["least"], row["single_jobs_per_s"]["least"]), 0)

    def test_sweep_prints_a_table_of_the_same(self):
        done = bench("sweep", "--driver", "cpu", "--rounds", "1", "--instances", "2", "--iterations", "2")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
        self.assertEqual(2 + 1, len(lines), done.stdout)
        self.assertEqual(1, len({line.count("|") for line in lines}), done.stdout)

    def test_graphs_compares_jobs_of_many_launches_with_graphs_and_without(self):
        found = rows("graphs", 1, "--instances", "2", "--iterations", "8")
        self.assertEqual(4, len({row["work"] for row in found}))
        for row in found:
            self.assert_figures(row, "none_launches_per_s", "auto_launches_per_s", "ratio_percent", facts_too=["launches_a_job"])
            self.assertEqual(8, row["launches_a_job"])
            self.assertGreater(min(row["none_launches_per_s"]["least"], row["auto_launches_per_s"]["least"]), 0)

    def test_graphs_prints_a_table_of_the_same(self):
        done = bench("graphs", "--driver", "cpu", "--rounds", "1", "--instances", "2", "--iterations", "2")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
        self.assertEqual(2 + 4, len(lines), done.stdout)
        self.assertEqual(1, len({line.count("|") for line in lines}), done.stdout)

    def test_latency_compares_single_jobs_of_three_sizes_with_the_baseline(self):
        found = rows("latency", 3)
        self.assertEqual(3, len({row["work"] for row in found}))
        for row in found:
            self.assert_figures(row, *(f"{side}_{figure}_us" for side in ("baseline", "worker", "added")
                                       for figure in ("p50", "p99")))
            for side in ("baseline", "worker"):
                self.assertGreater(row[f"{side}_p50_us"]["least"], 0)
                self.assertLessEqual(row[f"{side}_p50_us"]["least"], row[f"{side}_p99_us"]["least"])

    def test_latency_prints_a_table_of_the_same(self):
        done = bench("latency", "--driver", "cpu", "--rounds", "1", "--ms", "1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
        self.assertEqual(2 + 3, len(lines), done.stdout)
        self.assertEqual(1, len({line.count("|") for line in lines}), done.stdout)

    def test_cost_tells_the_time_of_each_range_and_thread_and_they_add_up_to_the_process(self):
        found = {row["work"]: row for row in rows("cost", 1)}
        switches = found.pop("voluntary context switches")
        self.assert_figures(switches, "baseline_switches", "worker_switches")
        for row in found.values():
            self.assert_figures(row, "cpu_ns", "share_percent")
        sums = {name: found.pop(name)["cpu_ns"]["median"]
                for name in ("all of these", "whole process", "whole process that traces, untraced job",
                             "baseline, whole process")}
        for name in ("lane: stage", "lane: enqueue", "lane: other", "intake: other"):
            self.assertIn(name, found)
        parts = sum(row["cpu_ns"]["median"] for row in found.values())
        self.assertAlmostEqual(parts, sums["all of these"], delta=len(found))  # each is rounded
        self.assertAlmostEqual(sums["all of these"], sums["whole process"], delta=0.1 * sums["whole process"])
        for name in ("whole process that traces, untraced job", "baseline, whole process"):
            self.assertGreater(sums[name], 0)

    def test_cost_prints_tables_of_the_same(self):
        done = bench("cost", "--driver", "cpu", "--rounds", "1", "--ms", "1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"\| lane: stage \| \d+ \| \d+ \.\. \d+ \| [\d.]+ % \|\n")
        self.assertRegex(done.stdout, r"\| voluntary context switches \| [\d.]+ \| [\d.]+ \| [\d.]+ \.\. [\d.]+ \|\n")

    def test_wrong_arguments_are_one_line(self):
        for arguments in ([], ["engines"], ["engine", "--rounds", "0"], ["engine", "--rounds", "100"],
                          ["engine", "--ms", "x"], ["arrays", "--instances", "0"], ["arrays", "--instances", "65537"],
                          ["flat", "--many", "99"], ["flat", "--many", "100001"], ["scale", "--devices", "65"],
                          ["scale", "--board", "3"], ["scale", "--iterations", "0"], ["scale", "--ms", "0"],
                          ["sweep", "--iterations", "1001"], ["graphs", "--iterations", "10001"],
                          ["engine", "--driver", "gpu"], ["engine", "engine"]):
            done = bench(*arguments)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), arguments)


if __name__ == "__main__":
    unittest.main()
