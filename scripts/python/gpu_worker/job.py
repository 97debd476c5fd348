"""Jobs are plain dicts in the shape of schemas/job.schema.json; these functions spell their parts."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

import msgpack  # type: ignore[import-untyped]
import numpy
import numpy.typing

from .datatypes import DATATYPES, little_endian

Buffer = dict[str, Any]
Step = dict[str, Any]
Output = Union[str, Mapping[str, Any]]
Job = dict[str, Any]

LONG = {"until", "time_ms", "progress"}  # each makes a job a long one
PROGRESS_BYTES = 64 * 1024  # of all that a job shows at a time


def digest(array: numpy.typing.ArrayLike) -> str:
    """The name of the array's bytes, as statics and blobs carry it.

    >>> digest(numpy.zeros(2, "<f4"))
    'sha256:af5570f5a1810b7af78caf4bc70a660f0df51e42baf91d4de5b2328de0e83dfc'
    """
    return "sha256:" + hashlib.sha256(little_endian(array).data).hexdigest()


def describe(shape: Iterable[int], dtype: numpy.typing.DTypeLike) -> Buffer:
    """The keys that every buffer has: bytes, datatype, shape."""
    shape = [int(extent) for extent in shape]
    exact = numpy.dtype(dtype).newbyteorder("<")
    if exact not in DATATYPES:
        raise TypeError(f"no buffer can hold {exact}; it takes {', '.join(str(known) for known in DATATYPES)}")
    return {"bytes": math.prod(shape) * exact.itemsize, "datatype": DATATYPES[exact], "shape": shape}


def describe_array(array: numpy.typing.ArrayLike) -> Buffer:
    return describe(numpy.shape(array), numpy.asarray(array).dtype)


def upload(array: numpy.typing.ArrayLike) -> Buffer:
    """A buffer whose bytes travel in the job.

    >>> upload(numpy.array([1, 2], "<u2"))
    {'bytes': 4, 'datatype': 'UINT16', 'shape': [2], 'data': b'\\x01\\x00\\x02\\x00'}
    """
    return {**describe_array(array), "data": little_endian(array).tobytes()}


def static(array: numpy.typing.ArrayLike, with_data: bool = False) -> Buffer:
    """A buffer that stays on the device, named by its digest. With the data, the blob store need not have it."""
    described = {**describe_array(array), "static": digest(array)}
    return {**described, "data": little_endian(array).tobytes()} if with_data else described


def blob(array: numpy.typing.ArrayLike) -> Buffer:
    """A buffer from the blob store, named by its digest, for this job only."""
    return {**describe_array(array), "blob": digest(array)}


def zeros(shape: Iterable[int], dtype: numpy.typing.DTypeLike) -> Buffer:
    """A buffer that the device clears.

    >>> zeros([2, 3], "<f4")
    {'bytes': 24, 'datatype': 'FP32', 'shape': [2, 3]}
    """
    return describe(shape, dtype)


def u32(value: int) -> dict[str, int]:
    return {"u32": int(value)}


def i32(value: int) -> dict[str, int]:
    return {"i32": int(value)}


def u64(value: int) -> dict[str, int]:
    return {"u64": int(value)}


def i64(value: int) -> dict[str, int]:
    return {"i64": int(value)}


def f32(value: float) -> dict[str, float]:
    return {"f32": float(value)}


def f64(value: float) -> dict[str, float]:
    return {"f64": float(value)}


def step(program: str, args: Iterable[Any], **options: Any) -> Step:
    """One launch, or `iterations` of them. Options: entry, grid or elements, block, shared_bytes, iterations."""
    return {"program": program, "args": list(args), **options}


def _listed(outputs: Iterable[Output]) -> list[dict[str, Any]]:
    return [{"buffer": output} if isinstance(output, str) else dict(output) for output in outputs]


def progress(every_ms: int, outputs: Iterable[Output] = ()) -> dict[str, Any]:
    """What a long job shows while it runs, and how often: every 100 ms at most. An output is the name of a buffer or a
    dict; those of all instances have 64 KiB at most.

    >>> progress(500, ["loss"])
    {'every_ms': 500, 'outputs': [{'buffer': 'loss'}]}
    """
    return {"every_ms": int(every_ms), "outputs": _listed(outputs)}


def job(
    id: str, buffers: Mapping[str, Any], steps: Sequence[Step], outputs: Sequence[Output], **options: Any
) -> Job:
    """A whole job. An output is the name of a buffer or a dict. Options: repeat, timing, deadline_ms, timeout_ms; of a
    long job also time_ms, progress (as progress() makes it), and until, which is the name of the buffer that says when
    it is done."""
    if isinstance(options.get("until"), str):
        options["until"] = {"buffer": options["until"]}
    if "progress" in options:
        options["progress"] = progress(**options["progress"])
    return {"v": 1, "id": id, "buffers": dict(buffers), "steps": list(steps), "outputs": _listed(outputs), **options}


def check(job: Mapping[str, Any]) -> None:
    """Raises ValueError or TypeError for what is no job at all. The rest is checked by the worker."""
    for key, kind in {"id": str, "buffers": Mapping, "steps": Sequence, "outputs": Sequence}.items():
        if key not in job:
            raise ValueError(f"the job has no '{key}': gw.job() makes a whole one")
        if not isinstance(job[key], kind):
            raise TypeError(f"'{key}' of the job is {job[key]!r}, and has to be a {kind.__name__.lower()}")
    shown = job.get("progress", {})
    if not isinstance(shown, Mapping):
        raise TypeError(f"'progress' of the job is {shown!r}: gw.progress() makes one")
    for output in [*job["outputs"], *shown.get("outputs", [])]:
        if not isinstance(output, Mapping) or not isinstance(output.get("buffer"), str):
            raise TypeError(f"an output of the job is {output!r}, and has to be like {{'buffer': 'y'}}")


def encode(job: Mapping[str, Any]) -> bytes:
    """The message of a job."""
    packed: bytes = msgpack.packb(job)
    return packed
