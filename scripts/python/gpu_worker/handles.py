"""Arrays that stay on the device: statics and residents."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Optional

import numpy
import numpy.typing

from .datatypes import DTYPES, Array, little_endian
from .job import Buffer, describe_array, digest

if TYPE_CHECKING:
    from .line import Line


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


class Resident(Kept):
    """A buffer on the device that jobs change, for the jobs of one key; as a `with` block it ends when they are answered.

    After a worker has lost it, the client makes it again where it knows what it held: what it was made from while no job
    has changed it, or what the last job that changed it gave back as a whole. Else its jobs fail with `resident_gone`,
    and `seed()` says what the next one begins from. Made by `Client.resident()`.
    """

    def __init__(self, line: Line, label: str, array: numpy.typing.ArrayLike, each: bool = False) -> None:
        super().__init__(array)
        self._sent: Buffer = self.described
        if each:  # array jobs name the part of one instance
            self._sent = {**describe_array(numpy.asarray(array)[0]), "each": True}
        self._label = label
        self._line = line
        self._renew()

    def _renew(self) -> None:
        self.name = f"{self._label}.{self._line.draw()}"
        self._generation = 0  # after the last of its jobs that was answered well
        self._content_generation = 0  # when it held `_content`
        self._is_sown = False  # a job that makes it is on its way, or was answered

    @property
    def line(self) -> Line:
        return self._line

    @property
    def sent(self) -> Buffer:
        return dict(self._sent)

    def seed(self, array: numpy.typing.ArrayLike) -> None:
        """The next job begins with this array. Raises RuntimeError while jobs are under way."""
        if describe_array(array) != self._described:
            raise ValueError(f"resident {self._label} is {self._described}, and not {describe_array(array)}")
        with self._line.idle():
            self._content = little_endian(array).tobytes()
            self._renew()

    def __enter__(self) -> Resident:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self._line.wait()

    # The line calls these, under its lock.

    def is_known(self) -> bool:
        return self._content_generation == self._generation

    def lose(self) -> None:
        """The next job creates it again."""
        self._is_sown = False

    def buffer(self) -> Buffer:
        named = {**self._sent, "resident": self.name}
        if self._is_sown:
            return named
        self._is_sown = True
        return {**named, "init": {"data": self._content}}

    def note(self, generation: int, whole: Optional[bytes]) -> None:
        """A job succeeded. It left this generation; `whole` is the content, if the job read all of it back."""
        if generation < self._generation:
            return
        self._generation = generation
        if whole is not None:
            self._content, self._content_generation = whole, generation
