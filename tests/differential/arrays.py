"""Random array jobs, made of random single jobs, and what they mean: each instance is a single job."""

import copy
import hashlib
import struct

from model import WRITTEN_ARGS, kernel_of

COUNTS = [1, 2, 3, 7, 30, 200]
TOTAL_BYTES_MAX = 256 << 10  # of all instances
RESIDENT_ALIGNMENT = 16  # of the parts of a resident
EACH_CHANCE = 0.5  # of what may be shared
BLOB_CHANCE = 0.3  # that the bytes of all instances are in the blob store, and not in the message
# The arguments that may be another for each instance: none of them says how far a kernel goes.
FREE_ARGS = {
    "add_u32": (2,), "scale_u64": (1, 2), "scalars": range(1, 7), "saxpy": (0,), "words_by_value": (2,), "words_in_buffer": (2,),
    "draw": (2,), "draw_alone": (2,),
}  # fmt: skip
FORMATS = {"u32": "<I", "i32": "<i", "u64": "<Q", "i64": "<q", "f32": "<f", "f64": "<d"}


def _written(job):
    """With the words by which blocks wait for each other."""
    written = WRITTEN_ARGS | {"turn": (0, 1, 2)}
    return {step["args"][i] for step in job["steps"] for i in written.get(kernel_of(step)[1], (0,))}


def can_be_array(job):
    return all(buffer["bytes"] % RESIDENT_ALIGNMENT == 0 for buffer in job["buffers"].values() if "resident" in buffer)


def _parts(random, data, count):
    """The bytes of all instances: those of the single job, from another place on in each."""
    words = [data[i : i + 8] for i in range(0, len(data), 8)]
    starts = [random.randrange(len(words) or 1) for _ in range(count)]
    return b"".join(b"".join(words[start:] + words[:start]) if len(data) % 8 == 0 else data for start in starts)


def _values(random, kind, count):
    if kind[0] == "f":
        return [random.randint(-8192, 8191) / 4096 for _ in range(count)]
    low = 0 if kind[0] == "u" else -(2 ** (int(kind[1:]) - 1))
    return [random.getrandbits(int(kind[1:])) + low for _ in range(count)]


def make_array(random, job):
    """Turns a single job into an array. Returns what is to be in the blob store for it, {digest: bytes}."""
    payloads = {}
    size = sum(buffer["bytes"] for buffer in job["buffers"].values()) + 1
    count = job["count"] = random.choice([count for count in COUNTS if count * size <= TOTAL_BYTES_MAX] or [1])
    written = _written(job)
    for name, buffer in job["buffers"].items():
        may_be_shared = name not in written and not ("resident" in buffer and buffer.get("writes"))
        if "static" in buffer or (may_be_shared and ("resident" in buffer or random.random() >= EACH_CHANCE)):
            buffer.pop("init", None)  # all read a resident that is there, or get resident_gone
            continue
        buffer["each"] = True
        if "resident" in buffer:  # of that many bytes for each instance, and that many instances
            buffer["resident"] += f"-of-{count}"
            if "data" in buffer["init"]:
                buffer["init"]["data"] = _parts(random, buffer["init"]["data"], count)
        if "blob" in buffer:  # it has the bytes of one instance
            del buffer["blob"]
        if "data" in buffer:
            buffer["data"] = _parts(random, buffer["data"], count)
            if buffer["data"] and random.random() < BLOB_CHANCE:
                data = buffer.pop("data")
                buffer["blob"] = "sha256:" + hashlib.sha256(data).hexdigest()
                payloads[buffer["blob"]] = data
        for write in buffer.get("writes", []):
            write["instance"] = random.randrange(count)
    for step in job["steps"]:
        for i in FREE_ARGS.get(kernel_of(step)[1], ()):
            if random.random() < EACH_CHANCE:
                [(kind, value)] = step["args"][i].items()
                if kind == "words":
                    values = random.randbytes(4 * len(value) * count)
                else:
                    values = b"".join(struct.pack(FORMATS[kind], value) for value in _values(random, kind, count))
                step["args"][i] = {"each": {kind: values}}
    job["outputs"] = [output for output in job["outputs"] if job["buffers"][output["buffer"]].get("each")]
    return payloads


# ---- what an array means ----


def _instance_of_arg(arg, index, count):
    if not isinstance(arg, dict) or "each" not in arg:
        return arg
    [(kind, values)] = arg["each"].items()
    if kind == "words":
        size = len(values) // count
        return {kind: [word for (word,) in struct.iter_unpack("<I", _part(values, index, size))]}
    return {kind: struct.unpack_from(FORMATS[kind], values, index * struct.calcsize(FORMATS[kind]))[0]}


def _part(data, index, size):
    return data[index * size : (index + 1) * size]


def instance_of(job, index, payloads):
    """The single job that an instance is; `payloads` is what the blob store holds."""
    ret = copy.copy(job)
    del ret["count"]
    ret["buffers"] = {}
    for name, whole in job["buffers"].items():
        buffer = ret["buffers"][name] = dict(whole)
        if not buffer.pop("each", False):
            continue
        size = buffer["bytes"]
        data = payloads[buffer.pop("blob")] if "blob" in buffer else buffer.get("data")
        if data is not None:
            buffer["data"] = _part(data, index, size)
        if "resident" in buffer:
            buffer["resident"] += f"/{index}"
            buffer["init"] = {key: _part(value, index, size) if key == "data" else value for key, value in buffer["init"].items()}
        if buffer.get("writes"):
            none = {"instance": index, "offset": 0, "data": b""}  # a resident of all is updated, wherever it is written
            buffer["writes"] = [write for write in buffer["writes"] if write["instance"] == index] or [none]
    ret["steps"] = [step | {"args": [_instance_of_arg(arg, index, job["count"]) for arg in step["args"]]} for step in job["steps"]]
    return ret


def _shared_bytes(job):
    """What goes up once, however many instances there are."""
    shared = [buffer for buffer in job["buffers"].values() if not buffer.get("each") and "static" not in buffer]
    return sum(
        buffer["bytes"] * ("data" in buffer or "blob" in buffer)
        + sum(len(write["data"]) for write in buffer.get("writes", []))
        for buffer in shared
    )


def run_array(model, job):
    count = job["count"]
    answers = [model.run(instance_of(job, i, model.payloads)) for i in range(count)]
    ret = answers[0]
    for i, output in enumerate(ret.outputs):
        output["data"] = b"".join(answer.outputs[i]["data"] for answer in answers)
        if "shape" in output:
            output["shape"] = [count, *output["shape"]]
    for name in ret.telemetry:
        ret.telemetry[name] = sum(answer.telemetry[name] for answer in answers)
    ret.telemetry["h2d_bytes"] -= (count - 1) * _shared_bytes(job)
    ret.telemetry["instances"] = count
    ret.generations = {name.removesuffix("/0"): generation for name, generation in ret.generations.items()}
    return ret
