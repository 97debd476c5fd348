#!/usr/bin/env python3
"""The job format a second time, independent of worker/decode: msgpack, job.schema.json, and the
rules that a schema cannot say. Control messages too.

check_job.py FILE...  prints "<verdict> <file>: <why>" for each; ends with 1 unless all are "ok"
"""

import functools
import json
import math
import pathlib
import struct
import sys
from typing import NamedTuple

import jsonschema
import msgpack

SCHEMAS = pathlib.Path(__file__).parent
DEPTH_MAX = 16
CONTROL_BYTES_MAX = 512
PROGRESS_BYTES_MAX = 64 << 10
VALUE_BYTES = 24  # what the worker needs to unpack one value
DATATYPE_BYTES = {
    "BOOL": 1, "UINT8": 1, "UINT16": 2, "UINT32": 4, "UINT64": 8, "INT8": 1, "INT16": 2, "INT32": 4, "INT64": 8,
    "FP16": 2, "BF16": 2, "FP32": 4, "FP64": 8,
}  # fmt: skip


class Limits(NamedTuple):
    """A worker's limits; these small ones are the golden vectors' (tests/decode/decoding.h has them too)."""

    message_bytes: int = 2048
    arena_bytes: int = 16384
    buffers: int = 8
    steps: int = 4
    args: int = 8
    outputs: int = 8
    writes: int = 4
    buffer_bytes: int = 1 << 40
    launches: int = 1000
    instances: int = 100
    timeout_ms_min: int = 100
    timeout_ms_max: int = 60000
    long_job_ms: int = 3600000


class Refused(Exception):
    """The verdict's code, and why."""

    def __init__(self, code, why):
        super().__init__(why)
        self.code = code


class Pairs(list):
    """A map as it came, duplicates included."""


@functools.cache
def load_validator(name):
    """A validator of a schema of this folder, which knows that "binary" is bytes and 3.0 no integer."""
    checker = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine_many(
        {
            "binary": lambda _, value: isinstance(value, bytes),
            "integer": lambda _, value: isinstance(value, int) and not isinstance(value, bool),
        }
    )
    kind = jsonschema.validators.extend(jsonschema.Draft202012Validator, type_checker=checker)
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    return kind(schema)


def refuse_ext(code, data):
    raise ValueError(f"ext type {code}")


def unpack(payload):
    """Maps become Pairs; text that is no UTF-8 keeps its bytes as surrogates."""
    try:
        return msgpack.unpackb(
            payload, raw=False, unicode_errors="surrogateescape", strict_map_key=False, use_list=True,
            object_pairs_hook=Pairs, ext_hook=refuse_ext,
        )  # fmt: skip
    except Exception as error:  # the library raises whatever its parser meets
        raise Refused("bad_message", f"not msgpack: {error!r}") from error


def count_values(value, depth=0):
    """The value and all nested in it; refuses what nests too deep and timestamps, which are ext types."""
    if isinstance(value, msgpack.Timestamp):
        raise Refused("bad_message", "ext type -1")
    if not isinstance(value, list):
        return 1
    if depth == DEPTH_MAX:
        raise Refused("bad_message", f"nested deeper than {DEPTH_MAX}")
    nested = [item for pair in value for item in pair] if isinstance(value, Pairs) else value
    return 1 + sum(count_values(item, depth + 1) for item in nested)


def is_text(value, bytes_max):
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        return 1 <= len(value.encode("utf-8")) <= bytes_max
    except UnicodeEncodeError:  # surrogates: it was no UTF-8
        return False


def to_tree(value):
    """Pairs to dicts, where every key is a string that comes once."""
    if isinstance(value, Pairs):
        for key, _ in value:
            if not isinstance(key, str):
                raise Refused("bad_job", f"key {key!r} is no string")
        tree = {key: to_tree(item) for key, item in value}
        if len(tree) != len(value):
            raise Refused("bad_job", "a key comes twice")
        return tree
    return [to_tree(item) for item in value] if isinstance(value, list) else value


def require(condition, why, code="bad_job"):
    if not condition:
        raise Refused(code, why)


def instances_of(job, buffer):
    """How many parts the buffer has."""
    return job.get("count", 1) if buffer.get("each") else 1


def is_long(job):
    return not job.keys().isdisjoint({"until", "time_ms", "progress"})


def shown_by(job):
    """The outputs that it shows while it runs."""
    return job.get("progress", {}).get("outputs", [])


def check_limits(job, limits):
    def at_most(count, limit, what):
        require(count <= limit, f"{count} {what}, at most {limit}", "too_large")

    at_most(len(job["buffers"]), limits.buffers, "buffers")
    at_most(len(job["steps"]), limits.steps, "steps")
    at_most(len(job["outputs"]), limits.outputs, "outputs")
    at_most(len(shown_by(job)), limits.outputs, "outputs of progress")
    at_most(job.get("count", 1), limits.instances, "instances")
    for buffer in job["buffers"].values():
        at_most(buffer["bytes"], limits.buffer_bytes, "bytes")
        at_most(instances_of(job, buffer) * buffer["bytes"], limits.buffer_bytes, "bytes in all instances")
        at_most(len(buffer.get("writes", [])), limits.writes, "writes")
    for step in job["steps"]:
        at_most(len(step["args"]), limits.args, "args")
    at_most(job.get("time_ms", 1), limits.long_job_ms, "milliseconds of a long job")
    rounds = 1 if is_long(job) else job.get("repeat", 1)  # a long job is bounded round by round
    at_most(rounds * sum(step.get("iterations", 1) for step in job["steps"]), limits.launches, "launches")
    if "timeout_ms" in job:
        require(job["timeout_ms"] >= limits.timeout_ms_min, f"timeout_ms under {limits.timeout_ms_min}")
        at_most(job["timeout_ms"], limits.timeout_ms_max, "milliseconds")


def check_names(job):
    """Lengths in bytes, and UTF-8: JSON Schema counts characters."""
    names = list(job["buffers"])
    names += [buffer["resident"] for buffer in job["buffers"].values() if "resident" in buffer]
    names += [step["program"].split("@")[0] for step in job["steps"]]
    names += [step["entry"] for step in job["steps"] if "entry" in step]
    names += [output["as"] for output in [*job["outputs"], *shown_by(job)] if "as" in output]
    for name in names:
        require(is_text(name, 128), f"bad name {name!r}")
    require("reply_to" not in job or is_text(job["reply_to"], 249), "bad reply_to")


def check_buffer(job, name, buffer):
    size = buffer["bytes"]
    is_each = buffer.get("each", False)
    require(not is_each or "count" in job, f"{name}: each without count")
    require(not is_each or "static" not in buffer, f"{name}: a static is shared")
    for holder in (buffer, buffer.get("init", {})):
        total = size * instances_of(job, buffer)
        require("data" not in holder or len(holder["data"]) == total, f"{name}: length of data is not bytes")
    for write in buffer.get("writes", []):
        require(("instance" in write) == is_each, f"{name}: only a write of an each buffer names an instance")
        require(write.get("instance", 0) < job.get("count", 1), f"{name}: no such instance")
        require(write["offset"] + len(write["data"]) <= size, f"{name}: write past the end")
    if "datatype" in buffer:
        element = DATATYPE_BYTES[buffer["datatype"]]
        require(size % element == 0, f"{name}: no whole number of elements")
        if "shape" in buffer:
            require(math.prod(buffer["shape"]) * element == size, f"{name}: shape is not bytes")


def check_step(job, step):
    for arg in step["args"]:
        if isinstance(arg, str):
            require(arg in job["buffers"], f"no buffer {arg!r}")
        elif "each" in arg:
            require("count" in job, "each without count")
            [(kind, values)] = arg["each"].items()
            if kind == "words":
                require(len(values) % (4 * job["count"]) == 0, "not as many words for each instance")
            else:
                require(len(values) == job["count"] * (4 if kind.endswith("32") else 8), "not a value for each instance")
        elif "f32" in arg:
            try:
                struct.pack("<f", arg["f32"])
            except OverflowError:
                raise Refused("bad_job", f"{arg['f32']} does not fit f32") from None


def check_outputs(job, outputs):
    names = [output.get("as", output["buffer"]) for output in outputs]
    require(len(set(names)) == len(names), "an output's name comes twice")
    for output in outputs:
        require(output["buffer"] in job["buffers"], f"no buffer {output['buffer']!r}")
        buffer = job["buffers"][output["buffer"]]
        require("count" not in job or buffer.get("each", False), "an output of a shared buffer")
        size = buffer["bytes"]
        offset = output.get("offset", 0)
        require(offset + output.get("bytes", 0) <= size, "output past the end")


def check_shown(job):
    """Progress has outputs as any, but for how large they may be."""
    check_outputs(job, shown_by(job))
    total = 0
    for output in shown_by(job):
        size = job["buffers"][output["buffer"]]["bytes"]
        total += output.get("bytes", size - output.get("offset", 0)) * job.get("count", 1)
    require(total <= PROGRESS_BYTES_MAX, f"progress: {total} bytes, at most {PROGRESS_BYTES_MAX}", "too_large")


def check_until(job):
    """The buffer says for each instance whether it is done: it begins anew with each job, and has no other reader."""
    name = job["until"]["buffer"]
    require(name in job["buffers"], f"until: no buffer {name!r}")
    buffer = job["buffers"][name]
    require(buffer["bytes"] == 4, f"until: {name} has {buffer['bytes']} bytes, not 4")
    require(buffer.get("each", False) == ("count" in job), f"until: {name} has not a part for each instance")
    require(not {"static", "blob", "resident"} & buffer.keys(), f"until: {name} is none of the job's own")
    require(buffer.get("datatype", "UINT32") == "UINT32", f"until: {name} is {buffer.get('datatype')}, not UINT32")


def check(payload, limits=Limits()):
    """Raises Refused unless `payload` is a job that a worker with these limits accepts."""
    pairs = unpack(payload)
    values = count_values(pairs)
    require(isinstance(pairs, Pairs), "no map", "bad_message")
    require(any(key == "id" and is_text(item, 256) for key, item in pairs), "no valid id", "bad_message")
    require(len(payload) <= limits.message_bytes, "message too large", "too_large")
    require(values * VALUE_BYTES <= limits.arena_bytes, "too many values", "too_large")
    job = to_tree(pairs)
    for error in load_validator("job").iter_errors(job):
        raise Refused("bad_job", f"{error.json_path}: {error.message[:200]}")
    check_names(job)
    check_limits(job, limits)
    for name, buffer in job["buffers"].items():
        check_buffer(job, name, buffer)
    for step in job["steps"]:
        check_step(job, step)
    check_outputs(job, job["outputs"])
    if "until" in job:
        check_until(job)
    check_shown(job)


def check_control(payload):
    """Raises Refused unless `payload` is a control message: whatever is wrong is one kind of wrong."""
    try:
        pairs = unpack(payload)
        count_values(pairs)
        message = to_tree(pairs)
    except Refused as refused:
        raise Refused("bad_message", str(refused)) from None
    require(len(payload) <= CONTROL_BYTES_MAX, "message too large", "bad_message")
    for error in load_validator("control").iter_errors(message):
        raise Refused("bad_message", f"{error.json_path}: {error.message[:200]}")
    require(is_text(message["id"], 256), "no valid id", "bad_message")


def verdict(payload, checker=check):
    """("ok", "") or the error's code as it stands on the wire, and why."""
    try:
        checker(payload)
    except Refused as refused:
        return refused.code, str(refused)
    return "ok", ""


def main(names):
    verdicts = []
    for name in names:
        code, why = verdict(pathlib.Path(name).read_bytes())
        verdicts.append(code)
        print(f"{code} {name}: {why}".encode("utf-8", "backslashreplace").decode())
    return 0 if all(code == "ok" for code in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
