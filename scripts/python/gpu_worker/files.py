"""Files of messages, which `gpu-worker run --jobs FILE --results FILE` reads and writes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Union

import msgpack  # type: ignore[import-untyped]

from .job import encode

Path = Union[str, "os.PathLike[str]"]


def write_jobs(path: Path, jobs: Iterable[Mapping[str, Any]]) -> None:
    with open(path, "wb") as file:
        for job in jobs:
            file.write(encode(job))


def read_results(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the results of a file, one after the other."""
    with open(path, "rb") as file:
        yield from msgpack.Unpacker(file, max_buffer_size=0)
