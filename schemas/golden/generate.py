#!/usr/bin/env python3
"""Writes the golden vectors: messages, and beside each what every decoder must say of it.

generate.py [FOLDER]  writes valid/, invalid/, control/, results/, progress/, telemetry/ and runs/ there (this folder if
                      none is named)
"""

import copy
import hashlib
import json
import math
import pathlib
import struct
import sys

import msgpack

DIGEST = "sha256:" + hashlib.sha256(b"golden").hexdigest()
X = struct.pack("<4f", 1, 2, 3, 4)
U64_MAX = 2**64 - 1


class Pairs(list):
    """A map written as it stands: duplicates and keys of any type."""


def pack(value):
    """What msgpack.packb() does, for Pairs and raw bytes too."""
    packer = msgpack.Packer()
    if isinstance(value, Raw):
        return value.bytes
    if isinstance(value, (dict, Pairs)):
        pairs = value.items() if isinstance(value, dict) else value
        return packer.pack_map_header(len(value)) + b"".join(pack(key) + pack(item) for key, item in pairs)
    if isinstance(value, list):
        return packer.pack_array_header(len(value)) + b"".join(map(pack, value))
    return packer.pack(value)


class Raw:
    """Bytes that go into the message as they are."""

    def __init__(self, raw):
        self.bytes = raw


def saxpy():
    return {
        "v": 1,
        "id": "job-1",
        "buffers": {"x": {"bytes": 16, "data": X}, "y": {"bytes": 16}},
        "steps": [{"program": "saxpy", "args": [{"f32": 2.0}, "x", "y", {"u32": 4}], "elements": 4}],
        "outputs": [{"buffer": "y"}],
    }


def with_(path, value):
    """The small job with the value at a path such as "buffers.x.bytes" or "steps.0.grid" put in."""
    job = saxpy()
    at = job
    *folders, last = path.split(".")
    for part in folders:
        at = at[int(part) if isinstance(at, list) else part]
    at[int(last) if isinstance(at, list) else last] = value
    return job


def without(path):
    job = saxpy()
    at = job
    *folders, last = path.split(".")
    for part in folders:
        at = at[int(part) if isinstance(at, list) else part]
    del at[last]
    return job


def buffer_x(**keys):
    """The small job where x is this buffer."""
    return with_("buffers.x", keys)


def step(**keys):
    """The small job with these keys added to its step; None takes one away."""
    job = saxpy()
    job["steps"][0].update(keys)
    job["steps"][0] = {key: value for key, value in job["steps"][0].items() if value is not None}
    return job


def arg(value):
    return with_("steps.0.args.0", value)


def nest(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


def plus(*pairs):
    """The small job with more pairs, which may repeat its keys."""
    return Pairs([*saxpy().items(), *pairs])


def everything():
    return {
        "v": 1,
        "id": "every-key",
        "reply_to": "results-of-mine",
        "buffers": {
            "data": {"bytes": 16, "data": X, "datatype": "FP32", "shape": [2, 2]},
            "cold": {"bytes": 16, "static": DIGEST, "data": X},
            "warm": {"bytes": 16, "static": DIGEST},
            "blob": {"bytes": 16, "blob": DIGEST, "writes": [{"offset": 12, "data": b"tail"}]},
            "ones": {"bytes": 16, "fill": 255},
            "state": {"bytes": 16, "resident": "weights", "init": {"fill": 0}, "expect": 7},
            "empty": {"bytes": 0, "data": b"", "datatype": "FP64", "shape": [3, 0]},
            "done": {"bytes": 4, "datatype": "UINT32"},
        },
        "steps": [
            {
                "program": f"saxpy@{DIGEST}",
                "entry": "main",
                "args": ["data", {"u32": 1}, {"i32": -1}, {"u64": 1}, {"i64": -1}, {"f32": 1.5}, {"words": [1, 2]}],
                "grid": [1, 2, 3],
                "block": [32, 2],
                "shared_bytes": 1024,
                "iterations": 2,
                "cooperative": True,
            },
            {"program": "second", "args": [{"f64": -0.5}], "elements": U64_MAX},
        ],
        "repeat": 3,
        "outputs": [{"buffer": "data"}, {"buffer": "data", "offset": 4, "bytes": 8, "as": "middle"}],
        "until": {"buffer": "done"},
        "time_ms": 60000,
        "progress": {"every_ms": 1000, "outputs": [{"buffer": "data", "offset": 4, "bytes": 8, "as": "middle"}]},
        "timing": True,
        "deadline_ms": 1800000000000,
        "timeout_ms": 1000,
    }


def array(**keys):
    """Three instances of the small job, with these keys; None takes one away."""
    job = saxpy() | {
        "count": 3,
        "buffers": {
            "x": {"bytes": 8, "each": True, "data": X[:8] * 3},
            "y": {"bytes": 16, "each": True, "writes": [{"instance": 2, "offset": 4, "data": b"1234"}]},
            "z": {"bytes": 16, "data": X},
        },
    } | keys  # fmt: skip
    return {key: value for key, value in job.items() if value is not None}


def array_buffer(**keys):
    """An array where x is this buffer."""
    return array(buffers=array()["buffers"] | {"x": keys})


def array_arg(value, **keys):
    return array(steps=[array()["steps"][0] | {"args": [value, "x", "y", {"u32": 4}]}], **keys)


def arrays():
    """(name, description, message)"""
    yield "array", "three instances, two buffers of each and one that they share", array()
    yield "array_of_one", "one instance is an array, too", array_arg(
        {"each": {"f64": bytes(8)}}, count=1, buffers={"x": {"bytes": 4}, "y": {"bytes": 4, "each": True}})  # fmt: skip
    yield "array_longest", "exactly the limit of instances", array_buffer(bytes=16, each=True) | {"count": 100}
    for kind in ("u32", "i32", "f32", "u64", "i64", "f64"):
        size = 4 if kind.endswith("32") else 8
        yield f"array_arg_{kind}", "a value for each instance", array_arg({"each": {kind: bytes(3 * size)}})
    yield "array_arg_words", "two words for each instance", array_arg({"each": {"words": bytes(24)}})
    yield "array_arg_no_words", "no word for each instance", array_arg({"each": {"words": b""}})
    yield "array_blob", "a blob with the parts of all instances", array_buffer(bytes=16, each=True, blob=DIGEST)
    yield "array_resident", "a resident with the parts of all", array_buffer(
        bytes=2, each=True, resident="w", init={"data": b"123456"})  # fmt: skip
    yield "array_of_nothing", "instances without any bytes", array(buffers={}, outputs=[], steps=[
        {"program": "p", "args": [], "grid": [1]}])  # fmt: skip
    yield "each_false", "each: false is as if it were not there", buffer_x(bytes=16, each=False, data=X)
    yield "array_shape", "a shape is an instance's", array_buffer(
        bytes=8, each=True, data=X[:8] * 3, datatype="FP32", shape=[2])  # fmt: skip


def bad_arrays():
    yield "count_0", "no instance", array(count=0)
    yield "count_negative", "a negative number of instances", array(count=-1)
    yield "count_float", "a count that is a float", array(count=3.0)
    yield "count_missing", "each, but no count", array(count=None)
    yield "each_integer", "1 for true", array_buffer(bytes=16, each=1)
    yield "each_static", "a static for each instance", array_buffer(bytes=16, each=True, static=DIGEST)
    yield "each_data_of_one", "the data of one instance", array_buffer(bytes=16, each=True, data=X)
    yield "each_data_long", "one byte too many", array_buffer(bytes=16, each=True, data=X * 3 + b"1")
    yield "shared_data_of_all", "the data of three for a shared buffer", array_buffer(bytes=16, data=X * 3)
    yield "each_init_short", "a seed for one instance", array_buffer(
        bytes=2, each=True, resident="w", init={"data": b"12"})  # fmt: skip
    yield "write_without_instance", "a write that names no instance", array_buffer(
        bytes=16, each=True, writes=[{"offset": 0, "data": b"1"}])  # fmt: skip
    yield "write_shared_instance", "a write of a shared buffer that names one", array_buffer(
        bytes=16, writes=[{"instance": 0, "offset": 0, "data": b"1"}])  # fmt: skip
    yield "write_instance_past_end", "a write of an instance that is not there", array_buffer(
        bytes=16, each=True, writes=[{"instance": 3, "offset": 0, "data": b"1"}])  # fmt: skip
    yield "write_past_instance", "a write past the end of its instance", array_buffer(
        bytes=16, each=True, writes=[{"instance": 0, "offset": 15, "data": b"12"}])  # fmt: skip
    yield "single_write_instance", "a write of a single job that names an instance", buffer_x(
        bytes=16, writes=[{"instance": 0, "offset": 0, "data": b"1"}])  # fmt: skip
    yield "each_arg_without_count", "values for each instance of a single job", arg({"each": {"f32": bytes(4)}})
    yield "each_arg_short", "a value too few", array_arg({"each": {"f32": bytes(8)}})
    yield "each_arg_width", "values of another width", array_arg({"each": {"f64": bytes(12)}})
    yield "each_arg_words", "words for two of three instances", array_arg({"each": {"words": bytes(8)}})
    yield "each_arg_half_word", "bytes that are no whole words", array_arg({"each": {"words": bytes(18)}})
    yield "each_arg_array", "values that are no binary", array_arg({"each": {"f32": [1.0, 2.0, 3.0]}})
    yield "each_arg_two", "values of two types", array_arg({"each": {"f32": bytes(12), "u32": bytes(12)}})
    yield "each_arg_empty", "values of no type", array_arg({"each": {}})
    yield "each_arg_buffer", "a name instead of values", array_arg({"each": "x"})
    yield "each_arg_key_integer", "a type that is an integer", array_arg({"each": Pairs([(1, bytes(12))])})
    yield "output_shared", "an output of a shared buffer", array(outputs=[{"buffer": "z"}])


def large_arrays():
    yield "count_too_large", "one instance more than allowed", array_buffer(bytes=16, each=True) | {"count": 101}
    yield "count_largest", "as many as a number can say", array(count=2**32 - 1)
    yield "each_bytes_too_large", "over the limit with all instances", array_buffer(bytes=1 << 39, each=True)
    yield "each_bytes_overflow", "a total that 64 bits cannot hold", array_buffer(bytes=1 << 40, each=True) | {
        "count": 100}  # fmt: skip


def long(done=None, **keys):
    """The small job, until its buffer `done` says so, which is this; with these keys, of which None takes one away."""
    job = saxpy() | {"repeat": 5000, "until": {"buffer": "done"}}
    job["buffers"]["done"] = {"bytes": 4} if done is None else done
    return {key: value for key, value in (job | keys).items() if value is not None}


def long_array(done=None, **keys):
    """Three instances, each of which is done by itself."""
    buffers = array()["buffers"] | {"done": {"bytes": 4, "each": True} if done is None else done}
    return long(**array(buffers=buffers) | keys)


def long_jobs():
    """(name, description, message)"""
    yield "long", "a job until its kernel says that it is done", long()
    yield "long_time", "a job that ends with what it has, and never before its time", long(until=None, time_ms=10000)
    yield "long_until_and_time", "whichever comes first", long(time_ms=10000)
    yield "long_time_shortest", "the least time", long(time_ms=1)
    yield "long_time_longest", "exactly the most time", long(time_ms=3600000)
    yield "long_array", "three instances, each of which is done by itself", long_array()
    yield "long_array_typed", "the same, with a type and a shape", long_array(
        {"bytes": 4, "each": True, "datatype": "UINT32", "shape": [1]})  # fmt: skip
    yield "long_array_begun", "an instance that is done before the first round", long_array(
        {"bytes": 4, "each": True, "data": struct.pack("<3I", 0, 7, 0)})  # fmt: skip
    yield "long_array_patched", "the same, by a write", long_array(
        {"bytes": 4, "each": True, "writes": [{"instance": 1, "offset": 0, "data": b"\x07\0\0\0"}]})  # fmt: skip
    yield "long_array_time", "an array for a time", long_array(until=None, time_ms=10000)
    yield "long_array_of_one", "one instance is an array, too", long(
        {"bytes": 4, "each": True}, count=1, outputs=[{"buffer": "done"}])  # fmt: skip
    yield "long_each_false", "each: false is as if it were not there", long({"bytes": 4, "each": False})
    yield "long_fill", "a fill, which is no blob", long({"bytes": 4, "fill": 0})
    yield "long_typed", "a number for the only instance", long({"bytes": 4, "datatype": "UINT32", "shape": []})
    yield "long_output", "an output that says who is done", long(outputs=[{"buffer": "y"}, {"buffer": "done"}])
    yield "long_until_y", "a buffer of any name, which is an argument as well", long(
        buffers={"x": {"bytes": 4}, "y": {"bytes": 4}}, until={"buffer": "y"})  # fmt: skip
    yield "long_repeat_1", "one round at most", long(repeat=1)
    yield "long_repeat_largest", "the limit of launches bounds a round, and not all of them", long(
        repeat=2**32 - 1, steps=[saxpy()["steps"][0] | {"iterations": 500}] * 2)  # fmt: skip
    yield "long_keys_reversed", "the order of keys means nothing: until may come before buffers", Pairs(
        reversed(long_array(time_ms=1).items()))  # fmt: skip


def showing(*outputs, every_ms=1000, **more):
    """The small job, which shows these outputs and how far it is."""
    return long(until=None, progress={"every_ms": every_ms, "outputs": list(outputs)}, **more)


def showing_bytes(*sizes, **more):
    """A job with buffers of so many bytes, each of which is an output of progress."""
    buffers = {f"b{place}": {"bytes": size, "each": "count" in more} for place, size in enumerate(sizes)}
    step = {"program": "p", "args": [], "grid": [1]}
    return showing(*({"buffer": name} for name in buffers), buffers=buffers | {"done": {"bytes": 4}}, steps=[step],
                   outputs=[], **more)  # fmt: skip


def showing_jobs():
    """(name, description, message)"""
    yield "progress", "progress alone makes a job a long one", long(until=None, progress={"every_ms": 1000})
    yield "progress_until", "a job that shows whether it is done", long(
        progress={"every_ms": 1000, "outputs": [{"buffer": "done"}]})  # fmt: skip
    yield "progress_often", "as often as may be", showing(every_ms=100)
    yield "progress_rarely", "as rarely as a number can say", showing(every_ms=2**32 - 1)
    yield "progress_no_outputs", "no outputs, in so many words", showing()
    yield "progress_outputs", "a buffer, and a part of it", showing(
        {"buffer": "x"}, {"buffer": "x", "offset": 4, "bytes": 8, "as": "middle"})  # fmt: skip
    yield "progress_output_again", "an output of progress has the name of one of the result", showing({"buffer": "y"})
    yield "progress_output_empty", "an output that starts at the end", showing({"buffer": "y", "offset": 16})
    yield "progress_array", "what each instance has", long_array(
        progress={"every_ms": 1000, "outputs": [{"buffer": "y", "bytes": 4}]})  # fmt: skip
    yield "progress_largest", "exactly as many bytes as may be", showing_bytes(65536)
    yield "progress_largest_by_outputs", "the same in two outputs", showing_bytes(1, 65535)
    yield "progress_largest_by_instances", "the same in four instances", showing_bytes(16384, count=4)
    yield "progress_of_nothing", "outputs without any bytes", showing_bytes(0, 0, count=100)
    yield "progress_large_buffer", "a small part of a large buffer", showing(
        {"buffer": "x", "offset": (1 << 40) - 4}, buffers={"x": {"bytes": 1 << 40}, "y": {"bytes": 16}})  # fmt: skip


def bad_showing_jobs():
    yield "progress_without_repeat", "nobody says how many rounds at most", showing(repeat=None)
    yield "progress_nil", "nil for absent", long() | {"progress": None}
    yield "progress_number", "how often without its map", long(progress=1000)
    yield "progress_empty", "nobody says how often", long(progress={})
    yield "progress_outputs_alone", "the same, with outputs", long(progress={"outputs": [{"buffer": "y"}]})
    yield "progress_unknown_key", "a key that nobody knows", long(progress={"every_ms": 1000, "rounds": 10})
    yield "progress_key_twice", "a key twice", long(progress=Pairs([("every_ms", 1000), ("every_ms", 1000)]))
    yield "progress_twice", "two of them", Pairs([*showing().items(), ("progress", {"every_ms": 1000})])
    for name, description, every_ms in (
        ("0", "no time in between", 0), ("99", "a millisecond less than the least", 99),
        ("negative", "a negative time", -100), ("float", "a time that is a float", 1000.0),
        ("text", "a time that is a string", "1s"), ("nil", "nil for a time", None),
        ("2_32", "a time over 32 bits", 2**32),
    ):  # fmt: skip
        yield f"progress_every_{name}", description, showing(every_ms=every_ms)
    yield "progress_outputs_nil", "nil for absent", long(progress={"every_ms": 1000, "outputs": None})
    yield "progress_outputs_map", "outputs that are a map", long(
        progress={"every_ms": 1000, "outputs": {"buffer": "y"}})  # fmt: skip
    yield "progress_output_text", "an output without its map", showing("y")
    yield "progress_output_unknown_key", "an output with an unknown key", showing({"buffer": "y", "best": 1})
    yield "progress_output_unknown_buffer", "an output of no buffer", showing({"buffer": "z"})
    yield "progress_output_past_end", "an output over the end", showing({"buffer": "y", "offset": 8, "bytes": 9})
    yield "progress_output_offset_past_end", "an output past the end", showing({"buffer": "y", "offset": 17})
    yield "progress_output_wraps", "an output that wraps", showing({"buffer": "y", "offset": 8, "bytes": U64_MAX - 4})
    yield "progress_output_name_twice", "two outputs of one name", showing({"buffer": "y"}, {"buffer": "x", "as": "y"})
    yield "progress_output_name_empty", "an output without a name", showing({"buffer": "y", "as": ""})
    yield "progress_output_name_too_long", "65 characters, 130 bytes", showing({"buffer": "y", "as": "ł" * 65})
    yield "progress_output_shared", "an output that all instances share", long_array(
        progress={"every_ms": 1000, "outputs": [{"buffer": "z"}]})  # fmt: skip


def large_showing_jobs():
    yield "progress_too_large", "a byte more than progress may have", showing_bytes(65537)
    yield "progress_too_large_by_outputs", "the same in two outputs", showing_bytes(1, 65536)
    yield "progress_too_large_by_instances", "the same in three instances", showing_bytes(21846, count=3)
    yield "progress_largest_instances", "as much as all instances may have", showing_bytes(1 << 33, 1 << 33, count=100)
    yield "progress_outputs_too_many", "nine outputs", showing(*({"buffer": "y", "as": name} for name in "abcdefghi"))


def bad_long_jobs():
    yield "long_until_without_repeat", "nobody says how many rounds at most", long(repeat=None)
    yield "long_time_without_repeat", "the same, with a time", long(until=None, repeat=None, time_ms=10000)
    yield "long_repeat_0", "no round", long(repeat=0)
    yield "until_nil", "nil for absent", long() | {"until": None}
    yield "until_text", "a name without its map", long(until="done")
    yield "until_empty", "no buffer", long(until={})
    yield "until_unknown_key", "a key that nobody knows", long(until={"buffer": "done", "above": 1})
    yield "until_key_twice", "a key twice", long(until=Pairs([("buffer", "done"), ("buffer", "done")]))
    yield "until_twice", "two ends", Pairs([*long().items(), ("until", {"buffer": "done"})])
    yield "until_buffer_integer", "a buffer without a name", long(until={"buffer": 1})
    yield "until_buffer_empty", "a name of no bytes", long(until={"buffer": ""})
    yield "until_buffer_nul", "a name with a NUL", long(until={"buffer": "done\0"})
    yield "until_unknown_buffer", "a buffer that is not there", long(until={"buffer": "z"})
    for size in (0, 3, 8):
        yield f"until_bytes_{size}", f"{size} bytes for a u32", long({"bytes": size})
    yield "until_static", "a static, which never changes", long({"bytes": 4, "static": DIGEST})
    yield "until_static_brought", "a static that brings its bytes", long(
        {"bytes": 4, "static": DIGEST, "data": b"1234"})  # fmt: skip
    yield "until_blob", "a blob", long({"bytes": 4, "blob": DIGEST})
    yield "until_resident", "a resident, which may be done before", long(
        {"bytes": 4, "resident": "w", "init": {"fill": 0}})  # fmt: skip
    for datatype in ("INT32", "FP32", "UINT8", "UINT16"):
        yield f"until_{datatype.lower()}", f"{datatype} for UINT32", long({"bytes": 4, "datatype": datatype})
    yield "until_each_without_count", "a part for each of no instances", long({"bytes": 4, "each": True})
    yield "until_shared", "one number for three instances", long_array({"bytes": 4})
    yield "until_each_false", "the same, in so many words", long_array({"bytes": 4, "each": False})
    yield "until_bytes_of_all", "the bytes of all instances", long_array({"bytes": 12, "each": True})
    yield "until_each_blob", "a blob of each instance", long_array({"bytes": 4, "each": True, "blob": DIGEST})
    yield "until_each_resident", "a resident of each instance", long_array({"bytes": 4, "each": True, "resident": "w"})
    yield "time_0", "no time", long(time_ms=0)
    yield "time_negative", "a negative time", long(time_ms=-1)
    yield "time_float", "a time that is a float", long(time_ms=10000.0)
    yield "time_text", "a time that is a string", long(time_ms="10s")
    yield "time_nil", "nil for absent", long() | {"time_ms": None}


def large_long_jobs():
    yield "time_too_long", "a millisecond more than the most time", long(time_ms=3600001)
    yield "time_2_32", "a time over 32 bits", long(time_ms=2**32)
    yield "time_longest_number", "as long as a number can say", long(time_ms=U64_MAX)
    yield "long_launches_too_many", "too many launches in a round", long(
        repeat=1, steps=[saxpy()["steps"][0] | {"iterations": 1001}])  # fmt: skip
    yield "long_launches_by_steps", "the same over two steps", long(
        repeat=1, until=None, time_ms=1, steps=[saxpy()["steps"][0] | {"iterations": 501}] * 2)  # fmt: skip


def valid():
    """(name, description, message)"""
    yield from arrays()
    yield from long_jobs()
    yield from showing_jobs()
    yield "saxpy", "a small job", saxpy()
    yield "every_key", "every key that a job may have", everything()
    yield "keys_reversed", "the order of keys means nothing: steps may come before buffers", Pairs(
        reversed(everything().items())
    )
    yield "no_buffers", "scalars only", saxpy() | {"buffers": {}, "outputs": [], "steps": [
        {"program": "p", "args": [], "grid": [1]}]}  # fmt: skip
    yield "no_outputs", "a job for its residents alone", with_("outputs", [])
    yield "id_longest", "256 bytes of id", with_("id", "i" * 256)
    yield "id_utf8", "an id that is not ASCII", with_("id", "łódź/\U0001f600")
    yield "name_longest", "128 bytes of buffer name", with_("buffers." + "n" * 128, {"bytes": 1})
    yield "name_utf8", "a buffer name that is not ASCII", with_("buffers.\u03b8", {"bytes": 1})
    yield "resident_seeded", "a resident seeded with data", buffer_x(bytes=4, resident="w", init={"data": b"1234"})
    yield "resident_must_exist", "a resident without a seed", buffer_x(bytes=4, resident="w")
    yield "fill_smallest", "fill 0", buffer_x(bytes=4, fill=0)
    yield "writes_empty", "no writes", buffer_x(bytes=4, writes=[])
    yield "static_before_its_data", "a static that a later buffer brings", with_(
        "buffers", {"x": {"bytes": 16, "static": DIGEST}, "y": {"bytes": 16, "static": DIGEST, "data": X}})  # fmt: skip
    yield "static_writes_empty", "a static with no writes", buffer_x(bytes=4, static=DIGEST, writes=[])
    yield "write_of_nothing", "an empty write at the very end", buffer_x(bytes=4, writes=[{"offset": 4, "data": b""}])
    yield "writes_overlap", "writes that overlap: the later wins", buffer_x(
        bytes=4, writes=[{"offset": 0, "data": b"aaa"}, {"offset": 1, "data": b"bbb"}])  # fmt: skip
    yield "shape_alone", "a shape without a datatype is not checked", buffer_x(bytes=4, shape=[5])
    yield "datatype_alone", "a datatype without a shape", buffer_x(bytes=4, datatype="FP16")
    yield "shape_scalar", "an empty shape is one element", buffer_x(bytes=4, datatype="FP32", shape=[])
    yield "shape_empty_beats_overflow", "a dimension of 0 empties any shape", buffer_x(
        bytes=0, datatype="FP64", shape=[U64_MAX, U64_MAX, 0])  # fmt: skip
    yield "timeout_shortest", "exactly the least time", with_("timeout_ms", 100)
    yield "timeout_longest", "exactly the most time", with_("timeout_ms", 60000)
    yield "buffer_largest", "exactly the limit of bytes", buffer_x(bytes=1 << 40)
    for size, names in {1: ["BOOL", "UINT8", "INT8"], 2: ["UINT16", "INT16", "FP16", "BF16"],
                        4: ["UINT32", "INT32", "FP32"], 8: ["UINT64", "INT64", "FP64"]}.items():  # fmt: skip
        for name in names:
            yield f"datatype_{name.lower()}", f"{name} has {size} bytes", buffer_x(
                bytes=size * 3, datatype=name, shape=[3])  # fmt: skip
    yield "args_extremes", "the ends of each integer", step(args=[
        {"u32": 2**32 - 1}, {"i32": -(2**31)}, {"i32": 2**31 - 1}, {"u64": U64_MAX}, {"i64": -(2**63)},
        {"i64": 2**63 - 1}])  # fmt: skip
    yield "args_not_finite", "infinities and no number", step(args=[
        {"f32": math.inf}, {"f32": math.nan}, {"f64": -math.inf}])  # fmt: skip
    yield "args_float_from_integer", "2 for 2.0", step(args=[{"f32": 2}, {"f64": -2}])
    yield "args_float32", "a float of 32 bits", step(args=[{"f64": Raw(b"\xca\x3f\x80\x00\x00")}])
    yield "words_empty", "no words", step(args=[{"words": []}])
    yield "integers_wide", "integers in the widest form", buffer_x(bytes=Raw(b"\xd3" + bytes(7) + b"\x04"))
    yield "grid_largest", "the largest dimensions", step(elements=None, grid=[2**32 - 1] * 3)
    yield "launches_largest", "exactly the limit of launches", step(iterations=10) | {"repeat": 100}
    yield "output_empty", "an output that starts at the end", with_("outputs", [{"buffer": "y", "offset": 16}])



def bad_messages():
    """Undecodable: (name, description, message)"""
    yield "empty", "no bytes", Raw(b"")
    yield "not_a_map_nil", "nil", None
    yield "not_a_map_array", "an array", [1, 2, 3]
    yield "not_a_map_text", "a string", "job"
    yield "empty_map", "a map without an id", {}
    yield "json", "JSON text", Raw(b'{"v": 1, "id": "job-1"}')
    yield "id_missing", "everything but the id", without("id")
    yield "id_empty", "an id of no bytes", with_("id", "")
    yield "id_too_long", "257 bytes of id", with_("id", "i" * 257)
    yield "id_integer", "an id that is an integer", with_("id", 7)
    yield "id_binary", "an id that is binary", with_("id", b"job-1")
    yield "id_nul", "an id with a NUL", with_("id", "job\0one")
    yield "id_not_utf8", "an id that is no UTF-8", with_("id", Raw(b"\xa3\xffab"))
    yield "id_overlong_utf8", "an id with an overlong form", with_("id", Raw(b"\xa2\xc0\xaf"))
    yield "id_surrogate", "an id with a surrogate", with_("id", Raw(b"\xa3\xed\xa0\x80"))
    yield "id_only_nested", "an id that stands in a buffer only", {"buffers": {"x": {"id": "job-1"}}}
    whole = pack(saxpy())
    for share in (1, 2, 3):
        yield f"cut_{share}_of_4", "cut off", Raw(whole[: len(whole) * share // 4])
    yield "cut_last_byte", "the last byte is missing", Raw(whole[:-1])
    yield "trailing_byte", "a byte after the map", Raw(whole + b"\0")
    yield "two_jobs", "two jobs in one message", Raw(whole + whole)
    yield "claims_array", "5 bytes that claim 2^32 - 1 items", Raw(b"\xdd\xff\xff\xff\xff")
    yield "claims_map", "5 bytes that claim 2^32 - 1 pairs", Raw(b"\xdf\xff\xff\xff\xff")
    yield "claims_text", "5 bytes that claim 4 GiB of text", Raw(b"\xdb\xff\xff\xff\xff")
    yield "claims_binary", "5 bytes that claim 4 GiB of data", Raw(b"\xc6\xff\xff\xff\xff")
    yield "claims_nested", "arrays that claim one another's bytes", with_("steps", Raw(b"\xdd\0\0\0\x10" * 8))
    yield "claims_buffers", "buffers that claim 2^32 - 1 pairs", with_("outputs", Raw(b"\xdf\xff\xff\xff\xff"))
    yield "deep_17", "one level too deep", saxpy() | {"deep": nest(16)}
    yield "deep_1000", "a thousand levels", Raw(b"\x91" * 1000 + b"\xc0")
    yield "deep_maps", "maps within maps", Raw(b"\x81\xa1k" * 500 + b"\xc0")
    yield "unused_byte", "the byte that msgpack never uses", with_("id", Raw(b"\xc1"))
    yield "ext", "an ext type", saxpy() | {"x": msgpack.ExtType(5, b"1234")}
    yield "timestamp", "a timestamp, which is an ext type", saxpy() | {"deadline_ms": msgpack.Timestamp(1)}
    yield "ext_empty", "an ext type without bytes", saxpy() | {"x": Raw(b"\xc7\x00\x05")}


def bad_top_level():
    yield "deep_16", "as deep as a message may be, under an unknown key", saxpy() | {"deep": nest(15)}
    yield "v_missing", "no version", without("v")
    yield "v_2", "a version that is not spoken", with_("v", 2)
    yield "v_text", "a version that is a string", with_("v", "1")
    yield "v_float", "a version that is a float", with_("v", 1.0)
    yield "v_true", "a version that is a boolean", with_("v", True)
    yield "unknown_key", "a key that nobody knows", saxpy() | {"priority": 1}
    yield "unknown_key_not_utf8", "an unknown key that is no UTF-8", plus((Raw(b"\xa2\xff\x0a"), 1))
    yield "key_integer", "a key that is an integer", plus((1, 1))
    yield "key_binary", "a key that is binary", plus((b"timing", True))
    yield "key_nil", "a key that is nil", plus((None, 1))
    yield "id_twice", "two ids", plus(("id", "job-2"))
    yield "id_after_bad_id", "an id that is no string, then one that is", Pairs([("id", 7), *saxpy().items()])
    yield "steps_twice", "a key twice", plus(("steps", []))
    for key in ("buffers", "steps", "outputs"):
        yield f"{key}_missing", f"no {key}", without(key)
        yield f"{key}_nil", f"{key} is nil", with_(key, None)
        yield f"{key}_text", f"{key} is a string", with_(key, "x")
    yield "steps_empty", "no step", with_("steps", [])
    yield "repeat_0", "nothing to do", with_("repeat", 0)
    yield "repeat_negative", "a negative count", with_("repeat", -1)
    yield "repeat_float", "a count that is a float", with_("repeat", 2.0)
    yield "repeat_too_wide", "a count over 32 bits", with_("repeat", 2**32)
    yield "timing_integer", "1 for true", with_("timing", 1)
    yield "timing_nil", "nil for absent", with_("timing", None)
    yield "deadline_0", "a deadline of 0", with_("deadline_ms", 0)
    yield "timeout_negative", "a negative time", with_("timeout_ms", -5)
    yield "timeout_0", "a time of 0", with_("timeout_ms", 0)
    yield "timeout_short", "less than the least time", with_("timeout_ms", 99)
    yield "reply_to_empty", "a topic without a name", with_("reply_to", "")
    yield "reply_to_nul", "a topic with a NUL", with_("reply_to", "a\0b")
    yield "reply_to_too_long", "250 bytes of topic", with_("reply_to", "t" * 250)


def bad_buffers():
    yield "bytes_missing", "a buffer without bytes", buffer_x(data=X)
    yield "bytes_negative", "negative bytes", buffer_x(bytes=-1)
    yield "bytes_float", "bytes as a float", buffer_x(bytes=16.0)
    yield "bytes_float_2_53", "bytes as a float that integers cannot follow", buffer_x(bytes=2.0**53)
    yield "bytes_text", "bytes as a string", buffer_x(bytes="16")
    yield "buffer_not_a_map", "a buffer that is an integer", with_("buffers.x", 16)
    yield "buffer_unknown_key", "a buffer with an unknown key", buffer_x(bytes=16, size=16)
    yield "buffer_key_twice", "a buffer with a key twice", with_("buffers.x", Pairs([("bytes", 1), ("bytes", 1)]))
    yield "buffer_name_twice", "two buffers of one name", with_(
        "buffers", Pairs([("x", {"bytes": 16}), ("y", {"bytes": 16}), ("x", {"bytes": 16})]))  # fmt: skip
    yield "buffer_name_empty", "a buffer without a name", with_("buffers.", {"bytes": 1})
    yield "buffer_name_too_long", "129 bytes of name", with_("buffers." + "n" * 129, {"bytes": 1})
    yield "buffer_name_too_long_in_bytes", "65 characters, 130 bytes", with_("buffers." + "ł" * 65, {"bytes": 1})
    yield "buffer_name_nul", "a name with a NUL", with_("buffers.a\0b", {"bytes": 1})
    yield "buffer_name_not_utf8", "a name that is no UTF-8", with_(
        "buffers", Pairs([*saxpy()["buffers"].items(), (Raw(b"\xa1\x80"), {"bytes": 1})]))  # fmt: skip
    yield "buffer_name_continuations", "a long name that is no UTF-8 and has no place to cut it", with_(
        "buffers", Pairs([(Raw(b"\xd9\x80" + b"\x80" * 128), {"bytes": 1})]))  # fmt: skip
    yield "buffer_name_integer", "a name that is an integer", with_(
        "buffers", Pairs([*saxpy()["buffers"].items(), (3, {"bytes": 1})]))  # fmt: skip
    yield "data_short", "less data than bytes", buffer_x(bytes=17, data=X)
    yield "data_long", "more data than bytes", buffer_x(bytes=15, data=X)
    yield "data_text", "data as a string", buffer_x(bytes=4, data="1234")
    yield "data_array", "data as an array", buffer_x(bytes=4, data=[1])
    yield "static_data_short", "a static's payload that is too short", buffer_x(bytes=17, static=DIGEST, data=X)
    for name, text in {
        "no_prefix": DIGEST[7:], "upper_case": "sha256:" + DIGEST[7:].upper(), "short": DIGEST[:-1],
        "long": DIGEST + "0", "newline": DIGEST + "\n", "md5": "md5:" + "0" * 32, "binary": DIGEST.encode(),
    }.items():  # fmt: skip
        yield f"digest_{name}", f"a digest: {name.replace('_', ' ')}", buffer_x(bytes=4, static=text)
    sources = {"data": b"1234", "static": DIGEST, "blob": DIGEST, "fill": 1, "resident": "w"}
    for first in sources:
        for second in list(sources)[list(sources).index(first) + 1 :]:
            if (first, second) != ("data", "static"):
                yield f"sources_{first}_{second}", f"both {first} and {second}", buffer_x(
                    bytes=4, **{first: sources[first], second: sources[second]})  # fmt: skip
    yield "fill_256", "a fill over a byte", buffer_x(bytes=4, fill=256)
    yield "fill_negative", "a negative fill", buffer_x(bytes=4, fill=-1)
    yield "resident_empty", "a resident without a name", buffer_x(bytes=4, resident="")
    yield "init_without_resident", "init of what is no resident", buffer_x(bytes=4, init={"fill": 0})
    yield "expect_without_resident", "expect of what is no resident", buffer_x(bytes=4, fill=0, expect=1)
    yield "init_empty", "an init that says nothing", buffer_x(bytes=4, resident="w", init={})
    yield "init_both", "an init that says two things", buffer_x(bytes=1, resident="w", init={"data": b"1", "fill": 0})
    yield "init_data_short", "a seed that is too short", buffer_x(bytes=4, resident="w", init={"data": b"123"})
    yield "init_unknown_key", "an init with an unknown key", buffer_x(bytes=4, resident="w", init={"zero": True})
    yield "expect_negative", "a negative generation", buffer_x(bytes=4, resident="w", expect=-1)
    yield "write_past_end", "a write over the end", buffer_x(bytes=4, writes=[{"offset": 2, "data": b"123"}])
    yield "write_offset_past_end", "an empty write past the end", buffer_x(bytes=4, writes=[{"offset": 5, "data": b""}])
    yield "write_offset_wraps", "an offset that wraps", buffer_x(bytes=4, writes=[{"offset": U64_MAX, "data": b"12"}])
    yield "write_without_data", "a write of no data", buffer_x(bytes=4, writes=[{"offset": 0}])
    yield "write_unknown_key", "a write with a length", buffer_x(
        bytes=4, writes=[{"offset": 0, "data": b"", "bytes": 0}])  # fmt: skip
    yield "writes_map", "writes that are a map", buffer_x(bytes=4, writes={})
    yield "static_writes", "a static never changes", buffer_x(
        bytes=4, static=DIGEST, writes=[{"offset": 0, "data": b"1"}])  # fmt: skip
    yield "datatype_unknown", "a datatype that nobody knows", buffer_x(bytes=4, datatype="float32")
    yield "datatype_odd", "no whole number of elements", buffer_x(bytes=15, datatype="FP32")
    yield "shape_small", "a shape of fewer bytes", buffer_x(bytes=16, datatype="FP32", shape=[3])
    yield "shape_wraps", "a shape whose bytes wrap to the right number", buffer_x(
        bytes=16, datatype="FP32", shape=[2**62 + 4])  # fmt: skip
    yield "shape_wraps_to_0", "a shape whose bytes wrap to 0", buffer_x(
        bytes=0, datatype="FP64", shape=[2**32, 2**32])  # fmt: skip
    yield "shape_negative", "a dimension to be inferred", buffer_x(bytes=16, datatype="FP32", shape=[-1])
    yield "shape_float", "a dimension that is a float", buffer_x(bytes=16, datatype="FP32", shape=[4.0])
    yield "shape_33", "33 dimensions", buffer_x(bytes=16, shape=[1] * 33)


def bad_steps():
    yield "step_text", "a step that is a string", with_("steps.0", "saxpy")
    yield "step_unknown_key", "a step with an unknown key", step(threads=32)
    yield "program_missing", "a step without a program", step(program=None)
    yield "program_empty", "a program without a name", step(program="")
    yield "program_too_long", "129 bytes of program", step(program="p" * 129)
    yield "program_nul", "a program with a NUL", step(program="p\0q")
    yield "program_pin_bad", "a pin that is no digest", step(program="saxpy@sha256:12")
    yield "program_pin_empty", "a pin that is nothing", step(program="saxpy@")
    yield "program_pin_twice", "two pins", step(program=f"saxpy@{DIGEST}@{DIGEST}"[:200])
    yield "program_pin_alone", "a pin of no program", step(program="@" + DIGEST)
    yield "entry_empty", "an entry without a name", step(entry="")
    yield "entry_not_utf8", "an entry that is no UTF-8", step(entry=Raw(b"\xa1\xff"))
    yield "args_missing", "a step without args", step(args=None)
    yield "args_map", "args that are a map", step(args={})
    yield "arg_unknown_buffer", "an argument that names no buffer", arg("z")
    yield "arg_integer", "a number without its type", arg(7)
    yield "arg_empty_map", "a map without a type", arg({})
    yield "arg_two_types", "a map with two types", arg({"u32": 1, "i32": 1})
    yield "arg_same_type_twice", "a map with a type twice", arg(Pairs([("u32", 1), ("u32", 1)]))
    yield "arg_unknown_type", "a type that nobody knows", arg({"u16": 1})
    yield "arg_u32_too_wide", "over 32 bits", arg({"u32": 2**32})
    yield "arg_u32_negative", "below 0", arg({"u32": -1})
    yield "arg_i32_too_wide", "over 31 bits", arg({"i32": 2**31})
    yield "arg_i32_too_low", "below -2^31", arg({"i32": -(2**31) - 1})
    yield "arg_u64_negative", "below 0", arg({"u64": -1})
    yield "arg_i64_too_wide", "over 63 bits", arg({"i64": 2**63})
    yield "arg_i32_float", "a float for an integer", arg({"i32": 1.0})
    yield "arg_f32_too_large", "a float over 32 bits", arg({"f32": 1e300})
    yield "arg_f32_text", "a string for a float", arg({"f32": "1"})
    yield "arg_f64_true", "a boolean for a float", arg({"f64": True})
    yield "arg_words_integer", "words that are no array", arg({"words": 1})
    yield "arg_words_negative", "a word below 0", arg({"words": [0, -1]})
    yield "arg_words_too_wide", "a word over 32 bits", arg({"words": [2**32]})
    yield "grid_and_elements", "both grid and elements", step(grid=[1])
    yield "no_grid_no_elements", "neither grid nor elements", step(elements=None)
    yield "elements_0", "no elements", step(elements=0)
    yield "grid_empty", "a grid of no dimensions", step(elements=None, grid=[])
    yield "grid_4", "a grid of four dimensions", step(elements=None, grid=[1, 1, 1, 1])
    yield "grid_0", "a dimension of 0", step(elements=None, grid=[1, 0])
    yield "grid_too_wide", "a dimension over 32 bits", step(elements=None, grid=[2**32])
    yield "grid_integer", "a grid that is no array", step(elements=None, grid=1)
    yield "block_0", "a block dimension of 0", step(block=[0])
    yield "block_4", "a block of four dimensions", step(block=[1, 1, 1, 1])
    yield "shared_bytes_too_wide", "shared memory over 32 bits", step(shared_bytes=2**32)
    yield "iterations_0", "no iterations", step(iterations=0)
    yield "iterations_too_wide", "iterations over 32 bits", step(iterations=2**32)
    yield "cooperative_integer", "1 for true", step(cooperative=1)


def bad_outputs():
    yield "output_text", "an output that is a string", with_("outputs", ["y"])
    yield "output_without_buffer", "an output of nothing", with_("outputs", [{"as": "y"}])
    yield "output_unknown_buffer", "an output of no buffer", with_("outputs", [{"buffer": "z"}])
    yield "output_unknown_key", "an output with an unknown key", with_("outputs", [{"buffer": "y", "name": "z"}])
    yield "output_past_end", "an output over the end", with_("outputs", [{"buffer": "y", "offset": 8, "bytes": 9}])
    yield "output_offset_past_end", "an output past the end", with_("outputs", [{"buffer": "y", "offset": 17}])
    yield "output_wraps", "an output that wraps", with_("outputs", [{"buffer": "y", "offset": 8, "bytes": U64_MAX - 4}])
    yield "output_name_twice", "two outputs of one name", with_("outputs", [{"buffer": "y"}, {"buffer": "x", "as": "y"}])
    yield "output_name_empty", "an output without a name", with_("outputs", [{"buffer": "y", "as": ""}])
    yield "output_name_not_utf8", "an output whose name is no UTF-8", with_(
        "outputs", [{"buffer": "y", "as": Raw(b"\xa2\xc3\x28")}])  # fmt: skip


def too_large():
    yield "message_too_large", "one byte over the limit of a message", with_("id", "i" * 200) | {
        "buffers": {name: {"bytes": 930, "data": b"d" * 930} for name in "xy"}}  # fmt: skip
    yield "values_too_many", "more msgpack values than the memory of a job", arg({"words": [0] * 1100})
    yield "values_too_many_unknown", "the same where nobody looks for them", saxpy() | {"x": [None] * 1100}
    yield "buffer_too_large", "one byte over the limit of a buffer", buffer_x(bytes=(1 << 40) + 1)
    yield "buffer_2_63", "what no device holds", buffer_x(bytes=2**63)
    yield "buffer_2_64", "the largest integer", buffer_x(bytes=U64_MAX)
    yield "buffers_too_many", "nine buffers", with_("buffers", {name: {"bytes": 16} for name in "xyabcdefg"})
    yield "steps_too_many", "five steps", with_("steps", saxpy()["steps"] * 5)
    yield "args_too_many", "nine arguments", step(args=["x"] * 9)
    yield "writes_too_many", "five writes", buffer_x(bytes=4, writes=[{"offset": 0, "data": b""}] * 5)
    yield "outputs_too_many", "nine outputs", with_("outputs", [{"buffer": "y", "as": name} for name in "abcdefghi"])
    yield "timeout_long", "more than the most time", with_("timeout_ms", 60001)
    yield "timeout_longest_number", "as long as a number can say", with_("timeout_ms", 2**32 - 1)
    yield "launches_too_many", "one launch too many", step(iterations=1001)
    yield "launches_by_repeat", "too many launches by repetition", step(iterations=101) | {"repeat": 10}
    yield "launches_by_steps", "too many launches over two steps", with_(
        "steps", [saxpy()["steps"][0] | {"iterations": 501}] * 2)  # fmt: skip
    yield "launches_2_64", "2^64 launches, which wrap to none", with_(
        "steps", [saxpy()["steps"][0] | {"iterations": 2**31}] * 4) | {"repeat": 2**31}  # fmt: skip


def invalid():
    """(name, description, code, message)"""
    for vectors, code in (
        (bad_messages, "bad_message"),
        (bad_top_level, "bad_job"),
        (bad_buffers, "bad_job"),
        (bad_steps, "bad_job"),
        (bad_outputs, "bad_job"),
        (too_large, "too_large"),
        (bad_arrays, "bad_job"),
        (large_arrays, "too_large"),
        (bad_long_jobs, "bad_job"),
        (large_long_jobs, "too_large"),
        (bad_showing_jobs, "bad_job"),
        (large_showing_jobs, "too_large"),
    ):
        for name, description, message in vectors():
            yield name, description, code, message


def cancel():
    return {"v": 1, "id": "job-1", "action": "cancel"}


def control():
    """(name, description, code, message)"""
    yield "cancel", "a cancel", "ok", cancel()
    yield "cancel_keys_reversed", "the order of keys means nothing", "ok", Pairs(reversed(cancel().items()))
    yield "cancel_id_longest", "256 bytes of id", "ok", cancel() | {"id": "i" * 256}
    yield "cancel_id_utf8", "an id that is not ASCII", "ok", cancel() | {"id": "łódź"}
    yield "cancel_size_16", "an id whose size takes 16 bits", "ok", cancel() | {"id": Raw(b"\xda\0\x02ab")}
    yield "stop", "a stop", "ok", cancel() | {"action": "stop"}
    yield "stop_id_longest", "256 bytes of id", "ok", cancel() | {"id": "i" * 256, "action": "stop"}
    yield "stop_id_missing", "a stop of no job", "bad_message", {"v": 1, "action": "stop"}
    yield "stop_padded", "a stop with a space behind it", "bad_message", cancel() | {"action": "stop "}
    for key in cancel():
        lacking = {other: value for other, value in cancel().items() if other != key}
        yield f"{key}_missing", f"no {key}", "bad_message", lacking
        yield f"{key}_twice", f"{key} twice", "bad_message", Pairs([*cancel().items(), (key, cancel()[key])])
    yield "unknown_key", "a key that is not known", "bad_message", cancel() | {"why": "x"}
    yield "key_integer", "a key that is an integer", "bad_message", Pairs([*cancel().items(), (1, 1)])
    yield "v_2", "a version that is not spoken", "bad_message", cancel() | {"v": 2}
    yield "v_float", "1.0 for 1", "bad_message", cancel() | {"v": 1.0}
    yield "action_unknown", "an action that is not known", "bad_message", cancel() | {"action": "pause"}
    yield "action_upper_case", "an action in capitals", "bad_message", cancel() | {"action": "CANCEL"}
    yield "action_binary", "an action that is binary", "bad_message", cancel() | {"action": b"cancel"}
    yield "id_empty", "an id of no bytes", "bad_message", cancel() | {"id": ""}
    yield "id_too_long", "257 bytes of id", "bad_message", cancel() | {"id": "i" * 257}
    yield "id_integer", "an id that is an integer", "bad_message", cancel() | {"id": 7}
    yield "id_nul", "an id with a NUL", "bad_message", cancel() | {"id": "job\0one"}
    yield "id_not_utf8", "an id that is no UTF-8", "bad_message", cancel() | {"id": Raw(b"\xa3\xffab")}
    yield "id_claims", "an id that claims 4 GiB", "bad_message", cancel() | {"id": Raw(b"\xdb\xff\xff\xff\xff")}
    yield "empty", "no bytes", "bad_message", Raw(b"")
    yield "not_a_map", "a list", "bad_message", [1, "job-1", "cancel"]
    yield "claims_map", "5 bytes that claim 2^32 - 1 pairs", "bad_message", Raw(b"\xdf\xff\xff\xff\xff")
    yield "cut_last_byte", "the last byte is missing", "bad_message", Raw(pack(cancel())[:-1])
    yield "trailing_byte", "a byte after the map", "bad_message", Raw(pack(cancel()) + b"\0")
    yield "too_large", "more bytes than a control message has", "bad_message", cancel() | {"id": "i" * 600}
    yield "job", "a job", "bad_message", saxpy()


def ok_result():
    telemetry = [
        "h2d_bytes", "d2h_bytes", "param_bytes", "kernel_launches", "static_hits", "static_misses",
        "static_bytes_saved", "queue_ns", "decode_ns", "prepare_ns", "stage_ns", "enqueue_ns", "wait_ns", "wall_ns",
    ]  # fmt: skip
    batch = ["id", "jobs", "copies", "h2d_bytes", "d2h_bytes", "launches", "coalesced_launches", "sync_points"]
    return {
        "v": 1,
        "id": "job-1",
        "status": "ok",
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [4], "data": X}],
        "telemetry": {key: 1 for key in telemetry} | {"batch": {key: 1 for key in batch}},
        "source": {"topic": "jobs", "partition": 0, "offset": 42},
        "worker": {"host": "node-1", "device": "GPU-0", "version": "0.1.0"},
    }


def error_result():
    error = {"code": "bad_job", "message": "steps is empty", "fix": "add a step", "retry": "never", "attempts": 1}
    return ok_result() | {"status": "error", "error": error, "outputs": []}


def partial_result():
    error = error_result()["error"] | {"code": "instances_failed", "message": "1 of 2 instances failed", "attempts": 3}
    failed = [{"instance": 1, "code": "gpu_hang", "message": "over its time"}]
    result = ok_result() | {"status": "partial", "error": error, "failed": failed}
    result["outputs"] = [{"name": "y", "datatype": "FP32", "shape": [2, 2], "data": X[:8] + bytes(8)}]
    result["telemetry"] |= {"instances": 2, "slices": 3}
    return result


def with_ends(result, rounds, ended):
    """The result of a long job: both stand behind the outputs, and behind the residents if there are any."""
    place = list(result).index("residents" if "residents" in result else "outputs") + 1
    pairs = list(result.items())
    return dict(pairs[:place] + [("rounds", rounds), ("ended", ended)] + pairs[place:])


def long_results():
    outputs = [{"name": "y", "datatype": "FP32", "shape": [3, 2], "data": X[:8] * 3}]
    of_array = copy.deepcopy(ok_result()) | {"outputs": outputs}
    of_array["telemetry"] |= {"instances": 3, "slices": 1}
    yield "long", "a long job's result", with_ends(ok_result(), 1234, "until")
    for ended in ("repeat", "time", "stop"):
        yield f"long_{ended}", f"a long job's that ended by {ended}", with_ends(ok_result(), 5000, ended)
    yield "long_residents", "a long job's that read a resident", with_ends(
        ok_result() | {"outputs": [], "residents": {"theta": 51}}, 1, "repeat")  # fmt: skip
    yield "long_array", "a long array's: one instance was done, two had no more rounds and no more time", with_ends(
        of_array, struct.pack("<3I", 70, 5000, 4321), bytes([1, 2, 3]))  # fmt: skip


def results():
    yield "ok", "a result", ok_result()
    yield from long_results()
    yield "ok_untyped", "an output without a type", ok_result() | {"outputs": [{"name": "y", "data": b""}]}
    yield "ok_blob", "an output in the blob store", ok_result() | {"outputs": [{"name": "y", "blob": DIGEST}]}
    yield "ok_residents", "a job that updated a resident", ok_result() | {"residents": {"theta": 51}}
    timed = copy.deepcopy(ok_result())
    timed["telemetry"]["device_ns"] = 1
    yield "ok_timed", "a timed job's result", timed
    array_result = copy.deepcopy(ok_result())
    array_result["telemetry"] |= {"instances": 2, "slices": 1}
    array_result["outputs"][0]["shape"] = [2, 2]
    yield "ok_array", "an array's result", array_result
    yield "partial_array", "an array one of whose instances failed", partial_result()
    yield "error", "what a job that broke the format gets", error_result()


def shown(**keys):
    """What the small job shows while it runs."""
    result = ok_result()
    return {
        "v": 1, "id": "job-1", "attempt": 1, "rounds": 1234, "live": 1, "outputs": result["outputs"],
        "source": result["source"],
    } | keys  # fmt: skip


def progress():
    yield "progress", "what a long job shows while it runs", shown()
    yield "progress_no_outputs", "how far it is, and nothing else", shown(outputs=[])
    yield "progress_untyped", "an output without a type", shown(outputs=[{"name": "y", "data": b""}])
    yield "progress_again", "of a job that another worker began before", shown(attempt=2, rounds=1)
    yield "progress_array", "an array, one of whose three instances is done", shown(
        live=2, outputs=[{"name": "y", "datatype": "FP32", "shape": [3, 2], "data": X[:8] * 3}])  # fmt: skip


def telemetry():
    schema = json.loads((pathlib.Path(__file__).parents[1] / "telemetry.schema.json").read_text(encoding="utf-8"))
    sections = ("jobs", "timed", "batches", "intake", "engine", "gauges")
    return {
        "v": 1,
        "worker": {"host": "node-1", "device": "GPU-0", "device_index": 0, "version": "0.1.0"},
        "sequence": 1,
        "unix_ms": 1760000000000,
        "interval_ns": 10000000000,
        "uptime_ns": 10000000000,
        "outcomes": {"ok": 1, "bad_job": 1},
        "oldest_unfinished": {"topic": "gpu-jobs", "partition": 3, "offset": 120, "age_ns": 1},
    } | {section: {key: 1 for key in schema["properties"][section]["properties"]} for section in sections}


def resident(**keys):
    """A job that adds x to the resident w, two floats; with these keys of its buffer."""
    return saxpy() | {"buffers": {"x": {"bytes": 8, "data": X[:8]}, "w": {"bytes": 8, "resident": "w"} | keys}} | {
        "steps": [{"program": "saxpy", "args": [{"f32": 1.0}, "x", "w", {"u32": 2}], "elements": 2}],
        "outputs": [{"buffer": "w"}]}  # fmt: skip


def read_resident(name="w"):
    return saxpy() | {"buffers": {"w": {"bytes": 8, "resident": name}, "y": {"bytes": 8}}} | {
        "steps": [{"program": "saxpy", "args": [{"f32": 1.0}, "w", "y", {"u32": 2}], "elements": 2}],
        "outputs": [{"buffer": "y"}]}  # fmt: skip


def array_of_resident(**keys):
    """Three instances that read the resident w, which they share."""
    return array(
        buffers={"w": {"bytes": 8, "resident": "w"} | keys, "y": {"bytes": 8, "each": True}},
        steps=[{"program": "saxpy", "args": [{"f32": 1.0}, "w", "y", {"u32": 2}], "elements": 2}],
        outputs=[{"buffer": "y"}])  # fmt: skip


def logreg(**keys):
    data = {"bytes": 4, "static": "sha256:" + hashlib.sha256(bytes(4)).hexdigest(), "data": bytes(4)}
    args = ["x", "y", "w", "m", {"f32": 0.1}, {"f32": 0.0}, {"u32": 1}, {"u32": 1}, {"u32": 1}]
    return saxpy() | {"buffers": {"x": data, "y": data, "w": {"bytes": 64}, "m": {"bytes": 64}}, "outputs": [],
                      "steps": [{"program": "logreg_adam", "args": args, "grid": [1]} | keys]}  # fmt: skip


def floats(*values):
    return {"hex": struct.pack(f"<{len(values)}f", *values).hex()}


def faults():
    """(name, description, the job with several faults, the code that is told)"""
    yield "version_before_keys", "another v, and a key that nobody knows", saxpy() | {"v": 2, "priority": 1}, "bad_job"
    large, empty = {"x": {"bytes": 1 << 50}, "y": {"bytes": 16}}, {"steps": []}
    yield "keys_before_values", "an unknown key, and a buffer that is too large", saxpy() | {
        "buffers": large, "priority": 1}, "bad_job"  # fmt: skip
    yield "buffers_before_steps", "no step, and a buffer that is too large", saxpy() | empty | {"buffers": large}, "too_large"
    yield "buffers_before_steps_reversed", "the same, where steps stand first", Pairs(
        reversed((saxpy() | empty | {"buffers": large}).items())), "too_large"  # fmt: skip
    yield "until_before_time_ms", "until of no buffer, and more time than any limit", long(
        until={"buffer": "z"}, time_ms=U64_MAX), "bad_job"  # fmt: skip
    yield "time_ms_before_timing", "more time than any limit, and 1 for true", long(
        time_ms=U64_MAX, timing=1), "too_large"  # fmt: skip
    yield "time_ms_before_progress", "more time than any limit, and progress too often", long(
        time_ms=U64_MAX, progress={"every_ms": 1}), "too_large"  # fmt: skip
    yield "progress_before_timing", "more bytes than progress may have, and 1 for true", showing_bytes(
        65537, timing=1), "too_large"  # fmt: skip
    yield "progress_in_order", "progress too often, and of more bytes than it may have", showing_bytes(
        65537, every_ms=1), "bad_job"  # fmt: skip
    yield "progress_before_repeat", "more bytes than progress may have, and nobody says how many rounds", showing_bytes(
        65537, repeat=None), "too_large"  # fmt: skip
    yield "time_ms_before_repeat", "more time than any limit, and nobody says how many rounds at most", long(
        repeat=None, time_ms=U64_MAX), "too_large"  # fmt: skip
    yield "repeat_before_launches", "nobody says how many rounds at most, and one has too many launches", long(
        repeat=None, steps=step(iterations=2**32 - 1)["steps"]), "bad_job"  # fmt: skip
    yield "launches_of_a_round_before_reply_to", "too many launches in a round, and a topic that is not allowed", long(
        reply_to="elsewhere", steps=step(iterations=2**32 - 1)["steps"]), "too_large"  # fmt: skip
    yield "format_before_reply_to", "no step, and a topic that is not allowed", saxpy() | empty | {
        "reply_to": "elsewhere"}, "bad_job"  # fmt: skip
    yield "reply_to_before_deadline", "a topic that is not allowed, and a deadline that has passed", saxpy() | {
        "reply_to": "elsewhere", "deadline_ms": 1}, "reply_to_forbidden"  # fmt: skip
    yield "deadline_before_program", "a deadline that has passed, and no such program", step(program="none") | {
        "deadline_ms": 1}, "deadline_exceeded"  # fmt: skip
    twice = {name: {"bytes": 4, "resident": "w"} for name in ("w", "again")}
    yield "sources_before_program", "a resident under two names, and no such program", step(program="none") | {
        "buffers": saxpy()["buffers"] | twice}, "bad_argument"  # fmt: skip
    yield "program_before_arguments", "no such program, and an argument too few", step(program="none", args=[]), "unknown_program"
    yield "arguments_before_launch", "an argument too few, and a block that is too large", step(
        args=[], block=[1 << 20]), "bad_argument"  # fmt: skip
    yield "launch_before_bounds", "a block that is too large, and a number over its bound", step(
        args=[{"f32": 1.0}, "x", "y", {"u32": 5}], block=[1 << 20]), "bad_launch"  # fmt: skip
    yield "steps_in_order", "an argument too few, and a second step without a program", step(args=[]) | {
        "steps": [step(args=[])["steps"][0], step(program="none")["steps"][0]]}, "bad_argument"  # fmt: skip
    yield "program_before_statics", "a static that is nowhere, and no such program", step(
        program="none") | {"buffers": saxpy()["buffers"] | {"s": {"bytes": 4, "static": DIGEST}}}, "unknown_program"  # fmt: skip
    yield "residents_before_statics", "a static that is nowhere, and a resident that is not there", saxpy() | {
        "buffers": saxpy()["buffers"] | {"s": {"bytes": 4, "static": DIGEST}, "w": {"bytes": 4, "resident": "w"}}}, "resident_gone"


def ok(**more):
    return {"status": "ok"} | more


def fails(code):
    return {"status": "error", "error": {"code": code}}


def runs():
    """(name, description, jobs, what is in their results): what a worker with the shipped programs and `ordering: key` answers
    to jobs without a key that come one after the other."""
    for name, description, job, code in faults():
        yield f"fault_{name}", description, [job], [fails(code)]
    seed = resident(init={"data": X[:8]})
    yield "array_reads_shared_resident", "all instances read one resident", [seed, array_of_resident()], [
        ok(residents={"w": 1}), ok(residents={"w": 1}, outputs=[
            {"name": "y", "data": floats(2, 4, 2, 4, 2, 4)}])]  # fmt: skip
    yield "array_shared_resident_init", "an array may not create a resident that its instances share, though it is there", [
        seed, array_of_resident(init={"fill": 0})], [ok(), fails("bad_argument")]  # fmt: skip
    yield "array_shared_resident_written", "nor write it", [
        seed, array_of_resident(writes=[{"offset": 0, "data": b"1"}])], [ok(), fails("bad_argument")]  # fmt: skip
    yield "resident_without_key", "jobs without a key share their residents", [seed, resident(), read_resident()], [
        ok(residents={"w": 1}), ok(residents={"w": 2}, outputs=[{"name": "w", "data": floats(3, 6)}]),
        ok(residents={"w": 2}, outputs=[{"name": "y", "data": floats(3, 6)}])]  # fmt: skip
    yield "resident_init_ignored", "init of a resident that is there is ignored", [seed, resident(init={"fill": 0})], [
        ok(residents={"w": 1}), ok(residents={"w": 2}, outputs=[{"name": "w", "data": floats(3, 6)}])]  # fmt: skip
    for name, more, code in (("program", {"steps": [step(program="none")["steps"][0] | {"args": []}]}, "unknown_program"),
                             ("deadline", {"deadline_ms": 1}, "deadline_exceeded"),
                             ("size", {"buffers": resident()["buffers"] | {"w": {"bytes": 4, "resident": "w"}}}, "bad_argument"),
                             ("generation", {"buffers": resident(expect=7)["buffers"]}, "resident_generation")):  # fmt: skip
        yield f"resident_outlives_{name}", "a failure before the job has begun on the device leaves its residents", [
            seed, resident() | more, read_resident()], [ok(), fails(code), ok(residents={"w": 1})]  # fmt: skip
    yield "elements_by_x", "elements divides by the first side of the block alone", [step(
        elements=33, block=[32, 2], args=[{"f32": 1.0}, "x", "y", {"u32": 33}]) | {
        "buffers": {"x": {"bytes": 132, "data": struct.pack("<f", math.inf) * 33}, "y": {"bytes": 132}},
        "outputs": [{"buffer": "y", "offset": 128}]}], [ok(outputs=[{"name": "y", "data": floats(math.inf)}])]  # fmt: skip
    yield "shared_bytes_below_range", "less shared memory than the manifest's least", [logreg(shared_bytes=1024)], [
        fails("bad_argument")]  # fmt: skip
    yield "shared_bytes_above_range", "more than its most", [logreg(shared_bytes=114689)], [fails("bad_argument")]
    yield "shared_bytes_in_range", "the least", [logreg(shared_bytes=16384)], [ok()]
    typed = {"bytes": 16, "datatype": "FP32", "shape": [2, 2]}
    yield "output_of_a_part", "an output of a part has the datatype, and no shape", [saxpy() | {
        "buffers": {"x": {"bytes": 16, "data": X}, "y": typed},
        "outputs": [{"buffer": "y", "bytes": 8}, {"buffer": "y", "as": "whole"}]}], [ok(outputs=[
            {"name": "y", "datatype": "FP32", "data": floats(2, 4)},
            {"name": "whole", "datatype": "FP32", "shape": [2, 2], "data": floats(2, 4, 6, 8)}])]  # fmt: skip
    yield "static_brought_by_a_later_buffer", "the order of a map decides nothing", [saxpy() | {
        "buffers": {"x": {"bytes": 16, "static": STATIC_X}, "again": {"bytes": 16, "static": STATIC_X, "data": X},
                    "y": {"bytes": 16}}}], [ok(outputs=[{"name": "y", "data": floats(2, 4, 6, 8)}])]  # fmt: skip
    yield from receipts()
    yield from long_runs()


def long_runs():
    timed = {"until": None, "time_ms": 3600000, "repeat": 3}
    yield "long_repeat", "a long job with all of its rounds, which its receipt counts", [long(**timed)], [ok(
        outputs=[{"name": "y", "data": floats(6, 12, 18, 24)}], rounds=3, ended="repeat",
        telemetry={"h2d_bytes": 16, "d2h_bytes": 16, "param_bytes": 3 * 24, "kernel_launches": 3})]  # fmt: skip
    yield "long_progress", "a long job that nobody watches", [showing({"buffer": "y"}, every_ms=100, repeat=3)], [ok(
        outputs=[{"name": "y", "data": floats(6, 12, 18, 24)}], rounds=3, ended="repeat",
        telemetry={"d2h_bytes": 16, "kernel_launches": 3})]  # fmt: skip
    yield "long_array_repeat", "a long array", [array_of_x() | {"repeat": 3, "time_ms": 3600000}], [ok(
        outputs=[{"name": "y", "data": floats(*[3, 6] * 3)}], rounds={"hex": "03000000" * 3}, ended={"hex": "02" * 3},
        telemetry={"kernel_launches": 9, "param_bytes": 9 * 24, "instances": 3})]  # fmt: skip
    once = {"steps": step(args=[{"f32": 1.0}, "x", "done", {"u32": 1}])["steps"], "outputs": [{"buffer": "done"}]}
    one = {"bytes": 4, "data": struct.pack("<I", 1)}  # a float whose bits are 1
    yield "long_until", "a long job that is done after its first round", [
        long(buffers={"x": one, "done": {"bytes": 4}}, **once)], [ok(
            outputs=[{"name": "done", "data": {"hex": "01000000"}}], rounds=1, ended="until")]  # fmt: skip
    yield "long_until_each", "an array, one of whose instances is done, and the others have no more rounds", [long(
        count=3, buffers={"x": one | {"each": True, "data": struct.pack("<3I", 0, 1, 0)}, "done": {"bytes": 4, "each": True}},
        repeat=1, **once)], [ok(rounds={"hex": "01000000" * 3}, ended={"hex": "020102"})]  # fmt: skip
    yield "long_until_unwritten", "no kernel writes the buffer of until", [long()], [fails("bad_argument")]
    for name, description, steps in (
        ("first", "a step before the last one writes it", [*once["steps"], saxpy()["steps"][0]]),
        ("twice", "two steps write it", once["steps"] * 2),
        ("again", "the last step writes it, and again", [once["steps"][0] | {"iterations": 2}]),
    ):
        yield f"long_until_{name}", description, [long(steps=steps)], [fails("bad_argument")]
    yield "long_resident", "a long job reads a resident, and changes none", [
        resident(init={"data": X[:8]}), read_resident() | {"repeat": 3, "time_ms": 3600000},
        resident() | {"repeat": 3, "time_ms": 3600000}], [
        ok(), ok(residents={"w": 1}, rounds=3, ended="repeat", outputs=[{"name": "y", "data": floats(6, 12)}]),
        fails("unsupported")]  # fmt: skip


def receipts():
    written = saxpy() | {"repeat": 3, "buffers": {
        "x": {"bytes": 16, "data": X, "writes": [{"offset": 4, "data": X[:4]}, {"offset": 4, "data": X[:4]}]},
        "y": {"bytes": 16, "fill": 0}}}  # fmt: skip
    written["steps"][0]["iterations"] = 2
    yield "receipt", "data and each write count, fills do not; each launch has its arguments", [written], [ok(telemetry={
        "h2d_bytes": 24, "d2h_bytes": 16, "param_bytes": 6 * 24, "kernel_launches": 6,
        "batch": {"jobs": 1, "launches": 6, "coalesced_launches": 0, "sync_points": 1}})]  # fmt: skip
    static = resident(init={"fill": 0})
    static["buffers"]["x"] |= {"static": "sha256:" + hashlib.sha256(X[:8]).hexdigest()}
    yield "receipt_static", "a static counts for the job that brings it to the device, and is saved for the next", [
        static, static], [
        ok(telemetry={"h2d_bytes": 8, "static_misses": 1, "static_hits": 0, "static_bytes_saved": 0}),
        ok(telemetry={"h2d_bytes": 0, "static_misses": 0, "static_hits": 1, "static_bytes_saved": 8})]  # fmt: skip
    yield "receipt_resident", "init counts for the job that creates", [
        resident(init={"data": X[:8]}), resident(init={"data": X[:8]})], [
        ok(telemetry={"h2d_bytes": 16}), ok(telemetry={"h2d_bytes": 8})]  # fmt: skip
    yield "receipt_array", "an array asks for what all of its instances ask for", [array_of_x()], [ok(telemetry={
        "h2d_bytes": 24, "d2h_bytes": 24, "param_bytes": 3 * 24, "kernel_launches": 3, "instances": 3})]  # fmt: skip
    yield "receipt_refused", "a job that reached no batch cost nothing", [step(program="none")], [fails("unknown_program") | {
        "telemetry": {"h2d_bytes": 0, "param_bytes": 0, "kernel_launches": 0, "batch": {"id": 0, "jobs": 0, "launches": 0}}}]  # fmt: skip


STATIC_X = "sha256:" + hashlib.sha256(X).hexdigest()


def array_of_x():
    return array(
        buffers={"x": {"bytes": 8, "each": True, "data": X[:8] * 3}, "y": {"bytes": 8, "each": True}},
        steps=[{"program": "saxpy", "args": [{"f32": 1.0}, "x", "y", {"u32": 2}], "elements": 2}],
        outputs=[{"buffer": "y"}])  # fmt: skip


def write_run(folder, name, description, jobs, results):
    """The jobs one behind the other, as a file of `run --jobs`; their ids are those of their results."""
    folder.mkdir(parents=True, exist_ok=True)
    messages, said = b"", []
    for number, (job, result) in enumerate(zip(jobs, results)):
        pairs = job.items() if isinstance(job, dict) else job
        messages += pack(Pairs((key, f"job-{number}" if key == "id" else value) for key, value in pairs))
        said.append({"id": f"job-{number}"} | result)
    (folder / f"{name}.msgpack").write_bytes(messages)
    (folder / f"{name}.json").write_text(
        json.dumps({"description": description, "results": said}, indent=1) + "\n", encoding="utf-8")


def write(folder, name, message, sidecar):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.msgpack").write_bytes(pack(message))
    (folder / f"{name}.json").write_text(json.dumps(sidecar) + "\n", encoding="utf-8")


def generate(folder):
    for name, description, message in valid():
        write(folder / "valid", name, message, {"description": description, "code": "ok"})
    for name, description, code, message in invalid():
        write(folder / "invalid", name, message, {"description": description, "code": code})
    for name, description, code, message in control():
        write(folder / "control", name, message, {"description": description, "code": code})
    for name, description, message in results():
        write(folder / "results", name, message, {"description": description})
    for name, description, message in progress():
        write(folder / "progress", name, message, {"description": description})
    for run in runs():
        write_run(folder / "runs", *run)
    write(folder / "telemetry", "interval", telemetry(), {"description": "what came in one interval"})


if __name__ == "__main__":
    generate(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent))
