"""What makes a job fail: each defect spoils a valid job in one way, and names the error code that must come of it."""

import hashlib

JOB_BYTES_MAX = 16 << 20  # limits.job_bytes of the configuration under test
RESULT_BYTES_MAX = 4 << 20  # limits.result_bytes
NO_DIGEST = "sha256:" + "0" * 64
PAST_MS = 1


def _add_xor_shift(job, buffer, **options):
    args = [buffer, {"u32": 0}]
    job["steps"].append({"program": "mix", "entry": "xor_shift", "args": args, "elements": 1, **options})


def _add_buffer(job, **buffer):
    name = f"spoiled-{len(job['buffers'])}"
    job["buffers"][name] = buffer
    return name


def _unknown_program(maker, job):
    maker.random.choice(job["steps"])["program"] = "nowhere"


def _unknown_image(maker, job):
    step = maker.random.choice(job["steps"])
    step["program"] = f'{step["program"].split("@")[0]}@{NO_DIGEST}'


def _unknown_entry(maker, job):
    maker.random.choice(job["steps"])["entry"] = "nowhere"


def _missing_argument(maker, job):
    maker.random.choice(job["steps"])["args"].pop()


def _wrong_value_type(maker, job):
    step = maker.random.choice(job["steps"])
    index = maker.random.choice([i for i, arg in enumerate(step["args"]) if isinstance(arg, dict)])
    step["args"][index] = {"i32": 1} if "u32" in step["args"][index] else {"u32": 1}


def _value_for_buffer(maker, job):
    step = maker.random.choice(job["steps"])
    index = maker.random.choice([i for i, arg in enumerate(step["args"]) if isinstance(arg, str)])
    step["args"][index] = {"u64": 0}


def _written_static(maker, job):
    _add_xor_shift(job, maker.add_buffer("UINT32", "static"))


def _half_element(maker, job):
    _add_xor_shift(job, _add_buffer(job, bytes=6))


def _other_datatype(maker, job):
    _add_xor_shift(job, _add_buffer(job, bytes=8, datatype="FP32"))


def _no_static(maker, job):
    name = _add_buffer(job, bytes=8)
    args = [name, name, {"u32": 1}, {"u32": 1}]
    job["steps"].append({"program": "mix", "entry": "gather", "args": args, "elements": 1})


def _number_past_end(maker, job):
    args = [_add_buffer(job, bytes=8), {"u32": maker.random.choice([3, 2**32 - 1])}]
    job["steps"].append({"program": "mix", "entry": "xor_shift", "args": args, "elements": 1})


def _sum_past_end(maker, job):
    name = _add_buffer(job, bytes=8)
    args = [name, {"u64": maker.random.choice([5, 2**64 - 4])}, name, {"u64": 0}, {"u64": 4}]
    job["steps"].append({"program": "mix", "entry": "copy_range", "args": args, "elements": 1})


def _number_not_between(maker, job):
    table = maker.add_buffer("UINT32", "static", bytes_min=4)
    args = [_add_buffer(job, bytes=8), table, {"u32": 0}, {"u32": 1}]
    job["steps"].append({"program": "mix", "entry": "gather", "args": args, "elements": 1})


def _few_elements(maker, job):
    args = [_add_buffer(job, bytes=40), {"u32": 1}, {"i32": 1}, {"u64": 1}, {"i64": 1}, {"f32": 1.0}, {"f64": 1.0}]
    job["steps"].append({"program": "mix", "entry": "scalars", "args": args, "elements": 1})


def _little_shared(maker, job):
    args = [_add_buffer(job, bytes=8), {"u32": 2}]
    job["steps"].append(
        {"program": "mix", "entry": "reverse_blocks", "args": args, "elements": 2, "block": [65], "shared_bytes": 256})


def _large_block(maker, job):
    _add_xor_shift(job, _add_buffer(job, bytes=8), block=[1025])


def _large_shared(maker, job):
    _add_xor_shift(job, _add_buffer(job, bytes=8), shared_bytes=1 << 30)


def _large_cooperative_grid(maker, job):
    _add_xor_shift(job, _add_buffer(job, bytes=8), cooperative=True, elements=1 << 30)


def _large_result(maker, job):
    job["outputs"].append({"buffer": _add_buffer(job, bytes=RESULT_BYTES_MAX)})  # no room for the rest


def _large_job(maker, job):
    _add_buffer(job, bytes=JOB_BYTES_MAX)
    job["buffers"]["more"] = {"bytes": 1}


def _missing_blob(maker, job):
    _add_buffer(job, bytes=8, blob=NO_DIGEST)


def _short_blob(maker, job):
    _add_buffer(job, bytes=9, blob=maker.stored_digest())


def _missing_static(maker, job):
    _add_buffer(job, bytes=8, static=NO_DIGEST)


def _short_static(maker, job):
    _add_buffer(job, bytes=9, static=maker.stored_digest())


def _other_static_data(maker, job):
    """Data of a digest that no valid job names: a static that is warm is not looked at again."""
    data = maker.random.randbytes(24)
    _add_buffer(job, bytes=16, static="sha256:" + hashlib.sha256(data).hexdigest(), data=data[:16])


def _past_deadline(maker, job):
    job["deadline_ms"] = PAST_MS


def _forbidden_reply_to(maker, job):
    job["reply_to"] = "elsewhere"


def _output_past_end(maker, job):
    job["outputs"].append({"buffer": _add_buffer(job, bytes=8), "offset": 4, "bytes": 5})


_DEFECTS = {
    "unknown_program": [_unknown_program, _unknown_image],
    "unknown_entry": [_unknown_entry],
    "bad_argument": [
        _missing_argument, _wrong_value_type, _value_for_buffer, _written_static, _half_element, _other_datatype,
        _no_static, _number_past_end, _sum_past_end, _number_not_between, _few_elements, _little_shared,
    ],
    "bad_launch": [_large_block, _large_shared, _large_cooperative_grid],
    "result_too_large": [_large_result],
    "too_large": [_large_job],
    "blob_missing": [_missing_blob],
    "static_missing": [_missing_static],
    "digest_mismatch": [_short_blob, _short_static, _other_static_data],
    "deadline_exceeded": [_past_deadline],
    "reply_to_forbidden": [_forbidden_reply_to],
    "bad_job": [_output_past_end],
}  # fmt: skip
DEFECTS = {spoil.__name__.strip("_"): spoil for spoils in _DEFECTS.values() for spoil in spoils}
DEFECT_CODES = {spoil.__name__.strip("_"): code for code, spoils in _DEFECTS.items() for spoil in spoils}

# Of two faults the answer names the one that stands first here (schemas/README.md, Which code).
_ORDER = ["output_past_end", "forbidden_reply_to", "past_deadline", "large_result", "unknown_program", "large_job", "missing_static"]


def _both(first, second):
    def spoil(maker, job):
        for name in maker.random.sample([first, second], 2):
            DEFECTS[name](maker, job)

    return spoil


_PAIRS = {f"{first}, {second}": _both(first, second) for first, second in zip(_ORDER, _ORDER[1:])}
DEFECT_CODES |= {name: DEFECT_CODES[name.split(", ")[0]] for name in _PAIRS}
DEFECTS |= _PAIRS
