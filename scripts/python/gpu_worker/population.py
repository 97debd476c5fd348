"""The rows of a map() as array jobs: one message with many instances."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Optional

from .datatypes import Array, little_endian
from .handles import Static
from .job import LONG, PROGRESS_BYTES, Job, describe_array
from .line import Resident
from .result import END_BYTES

# Brokers and workers take messages of a million bytes by default. This leaves room for the rest of a message.
MESSAGE_BYTES = 768 * 1024
DEVICE_BYTES = 256 * 1024 * 1024
CLEARED = {"bytes", "datatype", "shape", "fill"}  # the keys of a buffer that every instance can have for itself


def _is_cleared(buffer: Any) -> bool:
    return isinstance(buffer, Mapping) and buffer.keys() <= CLEARED


@dataclasses.dataclass(frozen=True)
class Population:
    """All rows of a map(). `first` is the job of the first row, with what all rows share."""

    first: Job
    buffers: Mapping[str, Array]  # those with a part for each row
    values: Mapping[int, tuple[str, Array]]  # by the argument's place: its type, and the value or the words of each row
    cleared: frozenset[str]  # the others that the kernel writes: each instance has its own

    @classmethod
    def of(
        cls, first: Job, buffers: Mapping[str, Array], values: Mapping[int, tuple[str, Array]], written: Iterable[str]
    ) -> Optional[Population]:
        """None if an array job cannot express it."""
        cleared = frozenset(written) - buffers.keys()
        shared = [buffer for name, buffer in first["buffers"].items() if name not in buffers and name not in cleared]
        if not all(_is_cleared(first["buffers"][name]) for name in cleared):
            return None
        if any(isinstance(buffer, Resident) or isinstance(buffer, Mapping) and buffer.keys() & {"resident", "each"}
               for buffer in shared):
            return None
        read = [*first["outputs"], *first.get("progress", {}).get("outputs", [])]
        if not {output["buffer"] for output in read} <= buffers.keys() | cleared:
            return None  # all rows would give it back
        return cls(first, buffers, values, cleared)

    def _bytes(self, name: str) -> int:
        """Of one instance."""
        return int(self.buffers[name][0].nbytes if name in self.buffers else self.first["buffers"][name]["bytes"])

    def _read(self, outputs: Iterable[Mapping[str, Any]]) -> int:
        """The bytes of an instance in these."""
        return sum(output.get("bytes", self._bytes(output["buffer"]) - output.get("offset", 0)) for output in outputs)

    def rows_at_once(self, most: int, brings_statics: bool) -> int:
        """How many rows fit into a job, its result and the device; `most` at most."""
        shared = [buffer for name, buffer in self.first["buffers"].items() if name not in self.buffers]
        apart: int = sum(len(buffer.get("data", b"")) for buffer in shared if isinstance(buffer, Mapping))
        if brings_statics:
            apart += sum(buffer.described["bytes"] for buffer in shared if isinstance(buffer, Static))
        sent = sum(map(self._bytes, self.buffers)) + sum(column[0].nbytes for _, column in self.values.values())
        answered = self._read(self.first["outputs"])
        if self.first.keys() & LONG:
            answered += END_BYTES
        shown = self._read(self.first.get("progress", {}).get("outputs", []))
        held = sum(map(self._bytes, self.buffers.keys() | self.cleared))
        limits: list[tuple[int, int]] = [
            (MESSAGE_BYTES - apart, sent), (MESSAGE_BYTES, answered), (DEVICE_BYTES, held), (PROGRESS_BYTES, shown)]
        return min([most, *(room // size for room, size in limits if size > 0)])

    def job(self, first: int, end: int) -> Job:
        """The array job of these rows."""
        buffers = dict(self.first["buffers"])
        for name, rows in self.buffers.items():
            part = little_endian(rows[first:end])
            buffers[name] = {**describe_array(part[0]), "each": True, "data": part.tobytes()}
        for name in self.cleared:
            buffers[name] = {**buffers[name], "each": True}
        (step,) = self.first["steps"]
        args = list(step["args"])
        for place, (kind, column) in self.values.items():
            args[place] = {"each": {kind: column[first:end].tobytes()}}
        return {**self.first, "count": end - first, "buffers": buffers, "steps": [{**step, "args": args}]}
