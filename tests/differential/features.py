"""What a job makes use of, by name: a test whose jobs never use a feature proves nothing about it."""

from defects import DEFECTS
from model import KERNELS, kernel_of

READ_WHOLE_BYTES = 64 << 10  # smaller buffers come back whole, with their group
SLAB_BYTES = 64 << 10  # lane_slab_bytes of the configuration under test


def _sources(*keys):
    return lambda job: any(all(key in buffer for key in keys) for buffer in job["buffers"].values())


def _any_buffer(predicate):
    return lambda job: any(predicate(buffer) for buffer in job["buffers"].values())


def _any_step(predicate):
    return lambda job: any(predicate(step) for step in job["steps"])


def _writes_of(job):
    return [(buffer, write) for buffer in job["buffers"].values() for write in buffer.get("writes", [])]


def _has_writes_over(*keys):
    return lambda job: any(any(key in buffer for key in keys) for buffer, _ in _writes_of(job))


def _overlap(job):
    for buffer in job["buffers"].values():
        ranges = [(w["offset"], w["offset"] + len(w["data"])) for w in buffer.get("writes", [])]
        for i, (start, end) in enumerate(ranges):
            if any(max(start, other) < min(end, other_end) for other, other_end in ranges[:i]):
                return True
    return False


def _asked(job):
    """The bytes that each output reads, with its buffer."""
    for output in job["outputs"]:
        buffer = job["buffers"][output["buffer"]]
        yield buffer, output.get("bytes", buffer["bytes"] - output.get("offset", 0))


def _any_output(predicate):
    return lambda job: any(predicate(buffer, count) for buffer, count in _asked(job))


def _shares_buffer(job):
    names = [output["buffer"] for output in job["outputs"]]
    return len(names) > len(set(names))


def _brings_later(buffers):
    missing = set()
    for buffer in buffers:
        if "data" in buffer and buffer.get("static") in missing:
            return True
        if "static" in buffer and "data" not in buffer:
            missing.add(buffer["static"])
    return False


def _takes_one_buffer_twice(step):
    names = [arg for arg in step["args"] if isinstance(arg, str)]
    return len(names) > len(set(names))


def _own_bytes(job):
    return sum(buffer["bytes"] for buffer in job["buffers"].values() if not {"static", "resident"} & set(buffer))


_OF_VALID_JOBS = {
    "source: data": _any_buffer(lambda b: "data" in b and "static" not in b),
    "source: blob": _sources("blob"),
    "source: blob of all instances": _any_buffer(lambda b: "blob" in b and "each" in b),
    "source: fill": _sources("fill"),
    "source: none": _any_buffer(lambda b: not {"data", "blob", "fill", "static", "resident"} & set(b)),
    "source: resident": _sources("resident"),
    "source: resident and static": lambda job: _sources("resident")(job) and _sources("static")(job),
    "source: static with data": _sources("static", "data"),
    "source: static by digest": _any_buffer(lambda b: "static" in b and "data" not in b),
    "source: static whose data a later buffer has": lambda job: _brings_later(list(job["buffers"].values())),
    "buffer: empty": _any_buffer(lambda b: b["bytes"] == 0),
    "buffer: datatype": _sources("datatype"),
    "buffer: shape": _any_buffer(lambda b: len(b.get("shape", [])) > 1),
    "buffer: shape of a scalar": _any_buffer(lambda b: b.get("shape") == []),
    "buffer: unused": lambda job: set(job["buffers"]) - {arg for s in job["steps"] for arg in s["args"] if isinstance(arg, str)},
    "writes: over data": _has_writes_over("data", "blob"),
    "writes: over a resident": _has_writes_over("resident"),
    "writes: over a fill": lambda job: any(not {"data", "blob", "resident"} & set(buffer) for buffer, _ in _writes_of(job)),
    "writes: overlapping": _overlap,
    "writes: of nothing": lambda job: any(not write["data"] for _, write in _writes_of(job)),
    "step: default entry": _any_step(lambda s: "entry" not in s),
    "step: pinned image": _any_step(lambda s: "@" in s["program"]),
    "step: elements": _any_step(lambda s: "elements" in s),
    "step: elements along x of a block with more sides": _any_step(lambda s: "elements" in s and len(s.get("block", [])) > 1),
    "step: grid": _any_step(lambda s: "grid" in s),
    "step: grid of 2 dimensions": _any_step(lambda s: len(s.get("grid", [])) == 2),
    "step: grid of 3 dimensions": _any_step(lambda s: len(s.get("grid", [])) == 3),
    "step: block": _any_step(lambda s: "block" in s),
    "step: block of 3 dimensions": _any_step(lambda s: len(s.get("block", [])) == 3),
    "step: shared memory": _any_step(lambda s: "shared_bytes" in s),
    "step: iterations": _any_step(lambda s: "iterations" in s),
    "step: cooperative": _any_step(lambda s: "cooperative" in s),
    "step: in phases": _any_step(lambda s: s.get("entry") == "turn" and "shared_bytes" in s),
    "step: one buffer twice": _any_step(_takes_one_buffer_twice),
    "job: several steps": lambda job: len(job["steps"]) > 1,
    "job: repeat": lambda job: "repeat" in job,
    "job: timing": lambda job: "timing" in job,
    "job: deadline": lambda job: "deadline_ms" in job,
    "job: outgrows the slab": lambda job: _own_bytes(job) > SLAB_BYTES,
    "array: of one instance": lambda job: job.get("count") == 1,
    "array: of many instances": lambda job: job.get("count", 0) >= 30,
    "array: data of each": lambda job: _any_buffer(lambda b: b.get("each") and "data" in b)(job),
    "array: writes of an instance": lambda job: any(b.get("each") and w["data"] for b, w in _writes_of(job)),
    "array: shared data": lambda job: "count" in job and _any_buffer(lambda b: "each" not in b and "data" in b)(job),
    "array: arguments of each": _any_step(lambda s: any(isinstance(arg, dict) and "each" in arg for arg in s["args"])),
    "array: words of each": _any_step(lambda s: any(isinstance(arg, dict) and "words" in arg.get("each", {}) for arg in s["args"])),
    "array: parts that are not aligned": _any_buffer(lambda b: b.get("each") and b["bytes"] % 16 != 0),
    "array: resident of each": _any_buffer(lambda b: b.get("each") and "resident" in b),
    "array: resident that all read": lambda job: "count" in job and _any_buffer(lambda b: "resident" in b and "each" not in b)(job),
    "array: timing": lambda job: "count" in job and "timing" in job,
    "long: until an instance is done": lambda job: "until" in job,
    "long: array": lambda job: "until" in job and "count" in job,
    "long: time": lambda job: "time_ms" in job,
    "outputs: none": lambda job: not job["outputs"],
    "outputs: whole": _any_output(lambda buffer, count: 0 < count == buffer["bytes"]),
    "outputs: range": _any_output(lambda buffer, count: 0 < count < buffer["bytes"]),
    "outputs: empty": _any_output(lambda buffer, count: count == 0),
    "outputs: of a resident": _any_output(lambda buffer, count: count > 0 and "resident" in buffer),
    "outputs: of a static": _any_output(lambda buffer, count: count > 0 and "static" in buffer),
    "outputs: several of one buffer": _shares_buffer,
    "outputs: small part of a large buffer": _any_output(
        lambda buffer, count: buffer["bytes"] > READ_WHOLE_BYTES and 0 < count < buffer["bytes"] / 8
    ),
} | {
    f"kernel: {kernel[0]}/{kernel[1]}": _any_step(lambda step, kernel=kernel: kernel_of(step) == kernel)
    for kernel in KERNELS
}  # fmt: skip

FEATURES = [*_OF_VALID_JOBS, *(f"defect: {name}" for name in DEFECTS)]


def features_of(case):
    if case.defect:
        return [f"defect: {case.defect}"]
    return [name for name, predicate in _OF_VALID_JOBS.items() if predicate(case.job)]
