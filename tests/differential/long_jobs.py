"""Random long jobs, and what they mean: however many rounds a visit to the device has."""

import struct

import numpy

HOUR_MS = 3600 * 1000
ROUNDS_MAX = 300
COUNTS = [1, 2, 9, 60, 250]
ENDS = {"until": 1, "repeat": 2}


def can_be_long(job):
    """A long job changes no residents."""
    return not any("resident" in buffer for buffer in job["buffers"].values())


def make_long(job):
    """Residents are not changed by a long job."""
    job.setdefault("repeat", 1)
    job["time_ms"] = HOUR_MS


def make_draws(random, name):
    """Instances that are done after rounds of their own, or never."""
    count = random.choice([0, 0, *COUNTS])
    lasts = [random.choice([0, 1, random.randint(1, ROUNDS_MAX)]) for _ in range(count or 1)]
    each = {"each": True} if count else {}
    states = b"".join(struct.pack("<II", 0, random.getrandbits(32)) for _ in lasts)
    last = {"each": {"u32": struct.pack(f"<{count}I", *lasts)}} if count else {"u32": lasts[0]}
    entry = random.choice(["draw", "draw_alone"])
    job = {
        "v": 1,
        "id": name,
        "buffers": {"state": {"bytes": 8, "data": states} | each, "done": {"bytes": 4} | each},
        "steps": [{"program": "mix", "entry": entry, "args": ["state", "done", last], "elements": 1}],
        "repeat": random.randint(1, ROUNDS_MAX),
        "until": {"buffer": "done"},
        "outputs": random.choice([[], [{"buffer": "state"}], [{"buffer": "done"}, {"buffer": "state", "offset": 4}]]),
    }
    if count:
        job["count"] = count
    if random.random() < 0.2:
        job["timing"] = True
    return job


def is_draws(job):
    return "until" in job


def lasts_of(job):
    """By instance."""
    [(kind, value)] = job["steps"][0]["args"][2].items()
    return struct.unpack(f"<{job['count']}I", value["u32"]) if kind == "each" else [value]


def rounds_of(job):
    """After how many rounds each instance ends, and why."""
    if not is_draws(job):
        return [(job["repeat"], "repeat")] * job.get("count", 1)
    return [(last, "until") if 0 < last <= job["repeat"] else (job["repeat"], "repeat") for last in lasts_of(job)]


def check_rounds(job, result):
    """What is wrong with what a result says of rounds, in words; None: nothing."""
    found = (result.get("rounds"), result.get("ended"))
    wanted = (None, None)
    if "time_ms" in job or "until" in job:
        rounds, ends = zip(*rounds_of(job))
        wanted = (rounds[0], ends[0])
        if "count" in job:
            wanted = (numpy.array(rounds, "<u4").tobytes(), bytes(ENDS[end] for end in ends))
    return None if found == wanted else f"rounds {found} instead of {wanted}"


def check_launches(job, answer, telemetry):
    """An instance may run on for the rest of a chunk after it was done. Takes what is right out of the answer."""
    wanted = sum(rounds for rounds, _ in rounds_of(job))
    most = job["repeat"] * job.get("count", 1)
    found = telemetry["kernel_launches"]
    each = answer.telemetry["param_bytes"] // answer.telemetry["kernel_launches"]
    answer.telemetry |= {"kernel_launches": found, "param_bytes": each * found}
    return None if wanted <= found <= most else f"telemetry: {found} launches instead of {wanted} to {most}"
