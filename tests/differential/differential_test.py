#!/usr/bin/env python3
# Proves: buffers of no bytes; partial copies; overlapping writes and outputs; clears and fills on the device;
# repeat; telemetry of jobs and batches is exact; no job sees bytes of another; checks before any work of the
# GPU; iterations; cooperative launches; statics are found by their digest; one upload for each static; statics
# that are missing or wrong; residents; published sums equal those of jobs and batches.
"""Random jobs through a whole worker, compared byte for byte with a plain model of what they mean."""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts/python"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "schemas"))
import check_job
import gpu_worker as gw
from arrays import run_array
from defects import JOB_BYTES_MAX, RESULT_BYTES_MAX
from features import FEATURES, SLAB_BYTES, features_of
from generate import Generator
from long_jobs import check_launches, check_rounds, is_draws
from model import Model
from worker_process import JOBS_FAILED

FEATURES_FROM = 3000  # jobs: with fewer, a feature may be missing by chance
WORKER_TIMEOUT_S = 1000
SHOWN_BYTES = 16


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path, help="the build folder")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="of the first job; each has the next one")
    parser.add_argument("--driver", default=os.environ.get("GPU_WORKER_TEST_DRIVER", "cpu"))
    parser.add_argument("--batch-jobs", type=int, default=1)
    parser.add_argument("--statics-bytes", type=int, default=0, help="budget of statics; 0: the worker's default")
    parser.add_argument("--graphs", choices=("none", "auto"), default="auto", help="as batch.graphs")
    return parser.parse_args()


# ---- the run ----


def link_programs(build, folder):
    folder.mkdir()
    for program in (build / "tests/differential/mix", build / "share/gpu-worker/programs/saxpy"):
        (folder / program.name).symlink_to(program.resolve())
    return folder


def images_of(programs, driver):
    """The digests of the images that this driver loads."""
    suffix = {"cpu": "so", "cuda": "ptx"}[driver]
    return {
        program.name: "sha256:" + hashlib.sha256((program / f"{program.name}.{suffix}").read_bytes()).hexdigest()
        for program in programs.iterdir()
    }


def write_config(path, programs, blobs, arguments):
    settings = {
        "driver": arguments.driver,
        "ordering": "key",  # for residents: the jobs that use them have no key, and run one after the other
        "lanes": 2,
        "lane_slab_bytes": SLAB_BYTES,
        "programs": {"dir": str(programs)},
        "blobs": {"dir": str(blobs)},
        "limits": {"message_bytes": 4 << 20, "job_bytes": JOB_BYTES_MAX, "result_bytes": RESULT_BYTES_MAX},
        # of known jobs, none is too slow to share
        "batch": {"jobs": arguments.batch_jobs, "span_ms": "10s", "graphs": arguments.graphs},
        "statics": {"budget_bytes": arguments.statics_bytes},
        "telemetry": {"interval_ms": "50ms"},
        "log": {"level": "warn"},
    }
    path.write_text(json.dumps(settings))  # JSON is YAML


def run_worker(build, folder, config, jobs):
    """The results, the headers of the dead letters, and the telemetry; what a worker that dies has not answered is missing."""
    gw.write_jobs(folder / "jobs", jobs)
    command = [build / "bin/gpu-worker", "run", "--config", config]
    for name in ("jobs", "results", "dead-letters", "telemetry"):
        command += [f"--{name}", folder / name]
    status = subprocess.run(command, timeout=WORKER_TIMEOUT_S, check=False).returncode
    results = list(gw.read_results(folder / "results"))
    letters = [json.loads(line) for line in (folder / "dead-letters").read_text().splitlines()]
    reports = list(gw.read_results(folder / "telemetry"))
    return status, results, [dict(letter["headers"]) for letter in letters], reports


# ---- the comparison: each check returns what is wrong, in words, or None ----


def difference(expected, actual):
    if len(expected) != len(actual):
        return f"{len(actual)} bytes instead of {len(expected)}"
    at = next(i for i, (one, other) in enumerate(zip(expected, actual)) if one != other)
    shown = slice(at, at + SHOWN_BYTES)
    return f"from byte {at} on {actual[shown].hex(' ')} instead of {expected[shown].hex(' ')}"


def check_outputs(expected, actual):
    names = [output["name"] for output in expected]
    if [output["name"] for output in actual] != names:
        return f"outputs {[output['name'] for output in actual]} instead of {names}"
    for wanted, found in zip(expected, actual):
        if wanted["data"] != found["data"]:
            return f"output {wanted['name']}: {difference(wanted['data'], found['data'])}"
        if wanted != found:
            described = [{key: value for key, value in one.items() if key != "data"} for one in (found, wanted)]
            return f"output {described[0]} instead of {described[1]}"
    return None


def check_telemetry(job, answer, telemetry):
    for name, wanted in answer.telemetry.items():
        uploaded = sum(answer.static_bytes) - telemetry["static_bytes_saved"] if name == "h2d_bytes" else 0
        if telemetry[name] != wanted + uploaded:
            return f"telemetry: {name} {telemetry[name]} instead of {wanted + uploaded}"
    if telemetry["static_hits"] + telemetry["static_misses"] != len(answer.static_bytes):
        return f"telemetry: {len(answer.static_bytes)} statics, but {telemetry['static_hits']} hits and misses {telemetry['static_misses']}"
    if ("device_ns" in telemetry) != job.get("timing", False):
        return "telemetry: device_ns belongs to timed jobs alone"
    return None


def check_ok(case, model, result):
    answer = run_array(model, case.job) if "count" in case.job else model.run(case.job)
    if result["status"] != "ok":
        return f"{result['error']['code']} instead of ok: {result['error']['message']}"
    if result.get("residents", {}) != answer.generations:
        return f"residents {result.get('residents')} instead of {answer.generations}"
    what = check_rounds(case.job, result) or check_outputs(answer.outputs, result["outputs"])
    if what is None and is_draws(case.job):
        what = check_launches(case.job, answer, result["telemetry"])
    return what or check_telemetry(case.job, answer, result["telemetry"])


def check_error(code, letters, result):
    wanted = ("error", code, [])
    found = (result["status"], result.get("error", {}).get("code"), result["outputs"])
    if found != wanted:
        return f"{found[0]} {found[1]} with {len(found[2])} outputs instead of {code}"
    codes = [letter["dlq.error.code"] for letter in letters]
    return None if codes == [code] else f"dead letters {codes} instead of {[code]}"


def check_case(case, model, results, letters):
    if len(results) != 1:
        return f"{len(results)} results"
    if case.defect:
        return check_error(case.error_code, letters, results[0])
    if model.lacks_resident(case.job):
        return check_error("resident_gone", letters, results[0])
    return check_ok(case, model, results[0]) or (f"{len(letters)} dead letters" if letters else None)


def check_batches(results, jobs_max):
    """Jobs that travelled together tell the same about it, and were no more than allowed."""
    batches = collections.defaultdict(list)
    for result in results:
        if "slices" not in result["telemetry"] and "rounds" not in result:  # these are alone in theirs
            batches[result["telemetry"]["batch"]["id"]].append(result["telemetry"]["batch"])
    batches.pop(0, None)  # failed before they reached one
    return [
        f"batch {number}: {len(records)} jobs tell {records[:4]}"
        for number, records in batches.items()
        if any(record != records[0] for record in records) or not len(records) <= records[0]["jobs"] <= jobs_max
    ]


def check_statics(results, payload_count, budget_bytes):
    """Where the cache holds them all, each payload is uploaded once, whoever asks and however many at a time."""
    misses = sum(result["telemetry"]["static_misses"] for result in results)
    if budget_bytes == 0 and misses > payload_count:
        return [f"{misses} uploads of {payload_count} different statics"]
    return []


def check_reports(reports, results):
    """Telemetry messages have their form, and together say what the results say of jobs and of distinct batches."""
    validator = check_job.load_validator("telemetry")
    problems = [f"telemetry: {error.message}" for report in reports for error in validator.iter_errors(report)]
    jobs = [result["telemetry"] for result in results]
    batches = {job["batch"]["id"]: job["batch"] for job in jobs if job["batch"]["id"] != 0}.values()
    codes = collections.Counter(result.get("error", {}).get("code", "ok") for result in results)
    said = collections.Counter()
    for report in reports:
        for section in ("outcomes", "jobs", "batches"):
            said.update({(section, name): value for name, value in report[section].items()})
    summed = {("outcomes", code): count for code, count in codes.items()}
    for section, messages in (("jobs", jobs), ("batches", batches)):
        summed |= {key: sum(message.get(key[1], 0) for message in messages) for key in said if key[0] == section and key[1] != "count"}
    # an array tells the sum of its slices, a long job that of its chunks, each of which had a batch of its own
    summed["batches", "count"] = sum(batch["sync_points"] for batch in batches)
    return problems + [
        f"telemetry: {key} {said[key]} instead of {summed.get(key)}" for key in said if said[key] != summed.get(key)
    ]


# ---- the report ----


def by_id(items, id_of):
    ret = collections.defaultdict(list)
    for item in items:
        ret[id_of(item)].append(item)
    return ret


def short(value):
    """As the job, but with the first bytes of data alone."""
    if isinstance(value, dict):
        return {key: short(item) for key, item in value.items()}
    if isinstance(value, list):
        return [short(item) for item in value]
    if isinstance(value, bytes):
        return f"<{len(value)} bytes: {value[:SHOWN_BYTES].hex(' ')}>"
    return value


def report_mismatch(case, what, arguments):
    print(f"seed {case.seed}, defect {case.defect}: {what}")
    print(json.dumps(short(case.job), indent=1))
    print(f"alone: {sys.argv[0]} {arguments.build} --driver {arguments.driver} --seed {case.seed} --count 1")


def count_work(results, jobs_max):
    """What the worker says that it has done, beyond what single jobs ask for."""
    telemetry = [result["telemetry"] for result in results]
    batches = {one["batch"]["id"]: one["batch"] for one in telemetry}.values()
    counts = {
        "worker: static hits": sum(one["static_hits"] for one in telemetry),
        "worker: static misses": sum(one["static_misses"] for one in telemetry),
        "worker: launches": sum(batch["launches"] for batch in batches),
        "worker: mapped batches": sum(batch["copies"] == 0 < batch["d2h_bytes"] for batch in batches),
    }
    counts["worker: arrays in several slices"] = sum(one.get("slices", 0) > 1 for one in telemetry)
    if jobs_max > 1:
        counts["worker: shared batches"] = sum(batch["jobs"] > 1 for batch in batches)
        counts["worker: coalesced launches"] = sum(batch["coalesced_launches"] for batch in batches)
    return counts


def report_counts(cases, results, jobs_max):
    """Prints what the run made use of, and returns what it did not."""
    used = collections.Counter(name for case in cases for name in features_of(case))
    counts = {name: used[name] for name in FEATURES} | count_work(results, jobs_max)
    for name, count in counts.items():
        print(f"{count:8} {name}")
    return [name for name, count in counts.items() if count == 0]


def run(arguments, folder):
    programs = link_programs(arguments.build, folder / "programs")
    generator = Generator(images_of(programs, arguments.driver))
    store = gw.BlobStore(folder / "blobs")
    stored = {store.put(bytearray(data)): data for data in generator.stored_payloads()}
    write_config(folder / "config.yaml", programs, folder / "blobs", arguments)
    cases = [generator.case(arguments.seed + i) for i in range(arguments.count)]
    stored |= {store.put(bytearray(data)): data for data in generator.array_payloads.values()}

    status, results, letters, reports = run_worker(arguments.build, folder, folder / "config.yaml", [case.job for case in cases])
    results_of = by_id(results, lambda result: result["id"])
    letters_of = by_id(letters, lambda letter: letter["gpu-worker-job-id"])
    model = Model(stored)
    wrong = 0
    for case in cases:
        what = check_case(case, model, results_of[case.job["id"]], letters_of[case.job["id"]])
        if what and wrong == 0:
            report_mismatch(case, what, arguments)
        wrong += what is not None
    missing = report_counts(cases, results, arguments.batch_jobs) if arguments.count >= FEATURES_FROM else []
    problems = [f"never occurred: {name}" for name in missing]
    problems += check_batches(results, arguments.batch_jobs)
    problems += check_reports(reports, results)
    problems += check_statics(results, len(generator.payloads), arguments.statics_bytes)
    has_failures = letters or any(result["status"] == "error" for result in results)
    if status != (JOBS_FAILED if has_failures else 0):
        problems.append(f"the worker ended with {status}")
    if len(results) > len(cases):
        problems.append(f"{len(results)} results of {len(cases)} jobs")
    for problem in problems:
        print(problem)
    print(f"{arguments.count} jobs from seed {arguments.seed} on {arguments.driver}: {wrong} differ from the model")
    return 1 if wrong or problems else 0


def main():
    with tempfile.TemporaryDirectory(prefix="gpu-worker-differential-") as folder:
        return run(parse_arguments(), pathlib.Path(folder))


if __name__ == "__main__":
    sys.exit(main())
