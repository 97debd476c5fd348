"""Arrays that programs take in other ways than whole and once: statics, and rows; line.py has residents."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, Optional

import numpy
import numpy.typing

from .datatypes import DTYPES, Array, little_endian
from .job import Buffer, describe_array, digest


class Kept:
    """What statics and residents share: bytes with a shape and a type."""

    def __init__(self, array: numpy.typing.ArrayLike) -> None:
        self._described = describe_array(array)
        self._content = little_endian(array).tobytes()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._described["shape"])

    @property
    def dtype(self) -> numpy.dtype[Any]:
        return DTYPES[self._described["datatype"]]

    @property
    def described(self) -> Buffer:
        """`bytes`, `datatype` and `shape`."""
        return dict(self._described)

    @property
    def sent(self) -> Buffer:
        """The buffer as a job has it."""
        return self.described


@dataclasses.dataclass(frozen=True)
class Rows:
    """A buffer of which each row of a map() has a part: the first axis."""

    array: numpy.typing.ArrayLike

    def __post_init__(self) -> None:
        if isinstance(self.array, (Kept, Mapping)):
            raise TypeError("gw.rows() takes an array; what stays on the device, or is a buffer already, is whole for all rows: "
                            "pass it alone")

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise TypeError("gw.rows() says to a map() what each row has a part of, and nothing to anybody else: pass the array alone")


def rows(array: numpy.typing.ArrayLike) -> Rows:
    """Says to a map() that each row has a part of this buffer, along the first axis."""
    return Rows(array)


class Static(Kept):
    """An input that never changes, named by the digest of its bytes. The client keeps a copy, and sends the bytes to
    workers that do not have them. `Client.static()` makes it."""

    def __init__(self, array: numpy.typing.ArrayLike) -> None:
        super().__init__(array)
        self.digest = digest(numpy.frombuffer(self._content, numpy.uint8))
        self._process = os.getpid()
        self._is_seeded = False
        self._seeding: dict[int, str] = {}  # by partition: the job on its way there that has the bytes

    def array(self) -> Array:
        """The content as an array."""
        return numpy.frombuffer(self._content, self.dtype).reshape(self.shape)

    def buffer(self, with_data: bool) -> Buffer:
        named = {**self._described, "static": self.digest}
        return {**named, "data": self._content} if with_data else named

    # The client calls these, one thread at a time.

    def is_seeded(self) -> bool:
        """Whether a job that names it has succeeded. Then most workers have it."""
        if self._process != os.getpid():  # what was under way is the parent's
            self._process, self._seeding = os.getpid(), {}
        return self._is_seeded

    def seeded_partition(self) -> Optional[int]:
        """A partition to which a job with the bytes is under way."""
        return next(iter(self._seeding), None)

    def claim(self, partition: int, id: str) -> bool:
        """Whether the job of this id must carry the bytes, because no other job takes them to the partition."""
        return self._seeding.setdefault(partition, id) == id

    def settle(self, id: str, is_ok: bool) -> None:
        self._is_seeded = self._is_seeded or is_ok
        self._seeding = {partition: other for partition, other in self._seeding.items() if other != id}
