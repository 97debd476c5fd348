"""Jobs that cost an executor its GPU or its life, among jobs that do no harm."""

import pathlib
import random
import sys

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/python"), str(ROOT / "tests/flow")]
import gpu_worker as gw

HANG_TIMEOUT_MS = 500
TABLE = numpy.zeros(64, "<u4")
CRASH = {"cpu": "worker_crash"}

# entry: (the code of the verdict on each driver; an entry stands only for the drivers that are named)
CODES = {
    "bad_address": CRASH | {"cuda": "gpu_illegal_address"},
    "overrun": {"cpu": "gpu_illegal_address"},  # behind a static; on a GPU nothing need notice
    "failed_assert": CRASH | {"cuda": "gpu_assert"},
    "trap": CRASH | {"cuda": "gpu_fault"},
    "endless": {"cpu": "gpu_hang", "cuda": "gpu_hang"},
}
MORE_ARGS = {"bad_address": [gw.u64(16)], "overrun": ["table", gw.u32(TABLE.size)]}


def saxpy(id, number, size=4):
    """y = 2x + y over x = number, y = 1: every element of the result is 2 number + 1."""
    return gw.job(
        id,
        buffers={"x": gw.upload(numpy.full(size, number, "<f4")), "y": gw.upload(numpy.ones(size, "<f4"))},
        steps=[gw.step("saxpy", [gw.f32(2), "x", "y", gw.u32(size)], elements=size)],
        outputs=["y"])


def is_saxpy(result, number):
    return bool(numpy.all(gw.arrays(result)["y"] == 2 * number + 1))


def is_verdict(result, code):
    """Convicted by name, after a death in company and one alone."""
    error = result.get("error", {})
    return error.get("code") == code and error["attempts"] >= 2


def poisonous(id, entry):
    buffers = {"y": gw.zeros((1,), "<u4")}
    if entry == "overrun":
        buffers["table"] = gw.static(TABLE, with_data=True)
    return gw.job(
        id, buffers=buffers, outputs=["y"], timeout_ms=HANG_TIMEOUT_MS if entry == "endless" else 30_000,
        steps=[gw.step("poison", ["y", *MORE_ARGS.get(entry, [])], entry=entry, grid=[1])])


def as_array(job, count):
    """So many instances of it; its statics are shared."""
    buffers = {}
    for name, buffer in job["buffers"].items():
        buffers[name] = dict(buffer)
        if "static" not in buffer:
            buffers[name]["each"] = True
            if "data" in buffer:
                buffers[name]["data"] = bytes(buffer["data"]) * count
    return job | {"count": count, "buffers": buffers}


class Mixture:
    """Some of them arrays: `count` jobs of which `poison_count`, at random places, are poisonous, by turns in every way."""

    def __init__(self, count, poison_count, driver, seed, with_arrays=True):
        entries = [entry for entry, codes in CODES.items() if driver in codes]
        places = random.Random(seed).sample(range(count), poison_count)
        self.count = count
        self.poison = {place: entries[i % len(entries)] for i, place in enumerate(places)}
        self.codes = {place: CODES[entry][driver] for place, entry in self.poison.items()}
        self.jobs = [poisonous(f"job-{n}", self.poison[n]) if n in self.poison else saxpy(f"job-{n}", n)
                     for n in range(count)]
        for n in range(0, count, 3) if with_arrays else ():
            self.jobs[n] = as_array(self.jobs[n], 1 + n % 50)

    def long_jobs(self, launches):
        """The jobs, each with launches that add nothing before the one that counts. Arrays have many as they are."""
        for place, job in enumerate(self.jobs):
            if place not in self.poison and "count" not in job:
                adds_nothing = gw.step("saxpy", [gw.f32(0), *job["steps"][0]["args"][1:]], elements=1, iterations=launches)
                job["steps"].insert(0, adds_nothing)
        return self.jobs

    def check(self, results, dead_letters):
        """What became of everybody: counts by name, and the places of what went wrong."""
        answers = {n: [] for n in range(self.count)}
        for result in results:
            answers[int(result["id"].removeprefix("job-"))].append(result)
        innocents = [n for n in answers if n not in self.poison]
        failed = {n for n in innocents if any(result["status"] != "ok" for result in answers[n])}
        return {
            "innocents lost": [n for n in innocents if not answers[n]],
            "innocents convicted": sorted(failed),
            "innocents wrong": [n for n in innocents if n not in failed and answers[n] and not is_saxpy(answers[n][0], n)],
            "answered twice": [n for n in answers if len(answers[n]) > 1],
            "culprits not named": [
                n for n, code in self.codes.items()
                if not answers[n] or not all(is_verdict(result, code) for result in answers[n])],
            "dead letters wrong": sorted(
                set(self.codes.items()) ^ {(int(id.removeprefix("job-")), code) for id, code in dead_letters}),
        }
