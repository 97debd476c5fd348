"""Whether a result answers a job. Anybody may have written what is in the topic of results: it is looked at here before
anything is made of it."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Mapping
from typing import Any, Optional

import msgpack  # type: ignore[import-untyped]
import numpy

from .handles import Kept
from .job import LONG, Job
from .result import END_BYTES, ENDED, arrays_shown
from .watch import Progress

# What a result has besides its outputs: telemetry, an error, the instances that failed; for each output and resident a name.
REST_BYTES, NAMED_BYTES = 64 * 1024, 1024
REST_PARTS, OUTPUT_PARTS = 64, 2  # lists and maps
SHOWN_BYTES_MAX, SHOWN_NAMES_MAX = 1024 * 1024, 4096  # of a message of progress, which has 64 KiB of outputs at most
U32_MAX = 2**32 - 1
DIGEST = re.compile("sha256:[0-9a-f]{64}")
ADVICE = "see who else writes to the topic of results"
NO_RESULT = f"the answer is no result as schemas/result.schema.json has it: {ADVICE}"


@dataclasses.dataclass(frozen=True)
class Output:
    """One that a job asks for, as its result has it."""

    name: str
    datatype: Optional[str]
    shape: Optional[list[int]]
    bytes: int

    @classmethod
    def of(cls, output: Mapping[str, Any], job: Job) -> Output:
        buffer = job["buffers"].get(output["buffer"], {})
        buffer = buffer.sent if isinstance(buffer, Kept) else buffer
        whole, count = buffer.get("bytes", 0), job.get("count")
        size = output.get("bytes", whole - output.get("offset", 0))
        shape = buffer.get("shape") if size == whole else None
        if shape is not None and count is not None:
            shape = [count, *shape]
        return cls(output.get("as", output["buffer"]), buffer.get("datatype"), shape, size * (count or 1))

    @classmethod
    def found(cls, output: Mapping[str, Any], size: int) -> Output:
        """What a result has; of a blob the size is not known before it is read."""
        return cls(output["name"], output.get("datatype"), output.get("shape"),
                   len(output["data"]) if "data" in output else size)


@dataclasses.dataclass(frozen=True)
class Rounds:
    """What a long job may have had."""

    most: int
    has_until: bool

    @classmethod
    def of(cls, job: Job) -> Optional[Rounds]:
        """None if the job is no long one."""
        return cls(job.get("repeat", 0), "until" in job) if job.keys() & LONG else None

    def fit(self, rounds: Any, ended: Any, count: Optional[int]) -> bool:
        """Whether a result may say this of a job of so many instances."""
        known = ENDED[1 if self.has_until else 2:]
        if count is None:
            return type(rounds) is int and 1 <= rounds <= self.most and ended in known
        if not isinstance(rounds, bytes) or not isinstance(ended, bytes):
            return False
        if (len(rounds), len(ended)) != (4 * count, count):
            return False
        numbers = numpy.frombuffer(rounds, "<u4")
        codes = bytes(ENDED.index(name) for name in known)
        return bool((numbers >= 1).all() and (numbers <= self.most).all()) and not ended.translate(None, codes)


@dataclasses.dataclass(frozen=True)
class Showing:
    """What a long job may show of itself."""

    outputs: tuple[Output, ...]
    count: Optional[int]
    most: int

    @classmethod
    def of(cls, job: Job) -> Optional[Showing]:
        """None if the job asks for no progress."""
        if "progress" not in job:
            return None
        outputs = tuple(Output.of(output, job) for output in job["progress"].get("outputs", []))
        return cls(outputs, job.get("count"), job.get("repeat", 0))

    @property
    def bytes(self) -> int:
        return sum(output.bytes for output in self.outputs)

    def progress(self, found: Mapping[str, Any]) -> Progress:
        """What a message of read_shown() shows. ValueError for one that this job cannot have shown."""
        attempt, rounds, live = numbers = [found[key] for key in ("attempt", "rounds", "live")]
        are_in_range = 1 <= attempt <= U32_MAX and 1 <= rounds <= self.most and 0 <= live <= (self.count or 1)
        are_good = are_in_range and not any(isinstance(number, bool) for number in numbers)
        if not are_good or tuple(Output.found(output, 0) for output in found["outputs"]) != self.outputs:
            raise ValueError(f"the progress does not fit the job; {ADVICE}")
        return Progress(attempt, rounds, live, arrays_shown(found["outputs"], self.count))


def read_shown(message: bytes) -> Optional[dict[str, Any]]:
    """A message of the topic of progress, which may be anybody's. None for one that is no such message, or so large
    that no worker sends it; little is allocated for it."""
    if len(message) > SHOWN_BYTES_MAX:
        return None
    try:
        found = _unpack(message, SHOWN_NAMES_MAX, SHOWN_NAMES_MAX)
    except Exception:  # the library raises whatever its parser meets
        return None
    needed = {"id": str, "attempt": int, "rounds": int, "live": int, "outputs": list, "source": dict}
    place = {"topic": str, "partition": int, "offset": int}
    is_one = _has(found, needed, {}) and _has(found["source"], place, {}) and all(
        _is_output(output) and "data" in output for output in found["outputs"])
    return dict(found) if is_one else None


@dataclasses.dataclass(frozen=True)
class Expected:
    """What a good answer to a job has."""

    outputs: tuple[Output, ...]
    count: Optional[int]
    buffers: int
    rounds: Optional[Rounds]
    showing: Optional[Showing]

    @classmethod
    def of(cls, job: Job) -> Expected:
        outputs = tuple(Output.of(output, job) for output in job["outputs"])
        return cls(outputs, job.get("count"), len(job["buffers"]), Rounds.of(job), Showing.of(job))

    @property
    def sizes(self) -> list[int]:
        """The bytes of each output."""
        return [output.bytes for output in self.outputs]

    @property
    def has_until(self) -> bool:
        return self.rounds is not None and self.rounds.has_until

    @property
    def ends_bytes(self) -> int:
        """The bytes of `rounds` and `ended`."""
        return 0 if self.rounds is None else END_BYTES * (self.count or 1)

    def read(self, message: bytes) -> dict[str, Any]:
        """The result in a message. ValueError for one that cannot be the answer; little is allocated for it."""
        names = len(self.outputs) + self.buffers
        if len(message) > REST_BYTES + NAMED_BYTES * names + sum(self.sizes) + self.ends_bytes:
            raise ValueError(f"the answer has {len(message)} bytes, more than the job asks for: {ADVICE}")
        result = _unpack(message, REST_PARTS + names, REST_PARTS + OUTPUT_PARTS * names)
        if not _is_result(result):
            raise ValueError(NO_RESULT)
        self._check(result)
        return dict(result)

    def _check(self, result: Mapping[str, Any]) -> None:
        wanted = () if result["status"] == "error" else self.outputs
        found = tuple(map(Output.found, result["outputs"], itertools.chain(self.sizes, itertools.repeat(0))))
        if found != wanted:
            other = next((pair for pair in zip(found, wanted) if pair[0] != pair[1]),
                         (f"{len(found)} outputs", f"{len(wanted)}"))
            raise ValueError(f"the answer does not fit the job: it has {other[0]}, and not {other[1]}; {ADVICE}")
        count = result.get("telemetry", {}).get("instances") if found else self.count
        failed = [one["instance"] for one in result.get("failed", [])]
        if count != self.count or not all(0 <= one < (self.count or 0) for one in failed):
            raise ValueError(f"the answer does not fit the job: it has other instances than {self.count}; {ADVICE}")
        if not self._ends_fit(result):
            raise ValueError(f"the answer does not fit the job: such a job has no such `rounds` and `ended`; {ADVICE}")

    def _ends_fit(self, result: Mapping[str, Any]) -> bool:
        if self.rounds is None or result["status"] != "ok":
            return not result.keys() & {"rounds", "ended"}
        return self.rounds.fit(result.get("rounds"), result.get("ended"), self.count)


def _unpack(message: bytes, items: int, parts: int) -> Any:
    """What msgpack says, of at most so many lists and maps with at most so many items."""
    left = [parts]

    def count(part: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise ValueError(NO_RESULT)
        return part

    return msgpack.unpackb(message, object_hook=count, list_hook=count, max_array_len=items, max_map_len=items, max_ext_len=0)


def _has(found: Any, needed: Mapping[str, type], others: Mapping[str, type]) -> bool:
    return isinstance(found, dict) and needed.keys() <= found.keys() and all(
        isinstance(found[key], kind) for key, kind in {**needed, **others}.items() if key in found)


def _is_output(found: Any) -> bool:
    return _has(found, {"name": str}, {"datatype": str, "shape": list, "data": bytes, "blob": str}) and (
        ("data" in found) != ("blob" in found)) and ("blob" not in found or DIGEST.fullmatch(found["blob"]) is not None)


def _is_result(found: Any) -> bool:
    """Whether all that a client looks at has the form of the schema."""
    if not _has(found, {"status": str, "outputs": list}, {"error": dict, "failed": list, "residents": dict, "telemetry": dict}):
        return False
    error = {"code": str, "message": str}
    return (
        found["status"] in ("ok", "partial", "error")
        and ("error" in found) == (found["status"] != "ok")
        and ("error" not in found or _has(found["error"], error, {"fix": str, "retry": str, "attempts": int}))
        and all(map(_is_output, found["outputs"]))
        and all(_has(one, {"instance": int, **error}, {}) for one in found.get("failed", []))
        and all(isinstance(generation, int) for generation in found.get("residents", {}).values()))
