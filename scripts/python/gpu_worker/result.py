"""What comes back: a dict in the shape of schemas/result.schema.json."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional, Union

import numpy

from .blobs import Store, fetch
from .datatypes import DTYPES, Array

ENDED = ("", "until", "repeat", "time", "stop")  # by the number that the result of an array has
END_BYTES = 5  # of an instance in the result of a long array: its rounds and how it ended


def _harmless(text: str) -> str:
    """The text with numbers for what a terminal would act on, or a reader of lines takes for the end of one."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class NotConverged(UserWarning):
    """A long job with `until` was answered well, and was not done: it had no more rounds. Where warnings are errors,
    its future fails with this one."""


class JobFailed(Exception):
    """A job that was answered with an error.

    `code` is a row of the table in schemas/README.md, `message` says what happened and `fix` what to do; `retry` is who
    can make it succeed (`worker`, `sender`, `never`), and `attempts` how often the worker tried. `name` is the
    sender's own, and `result` the whole answer.

    Where only some instances of an array have failed (`instances_failed`), `failed` says which and why, `instances` are
    their numbers, and `arrays()` has the outputs of all others, with zeros in their places. Otherwise both are empty.
    """

    def __init__(
        self, result: Mapping[str, Any], name: Optional[str] = None, sizes: Optional[Sequence[int]] = None
    ) -> None:
        error = result["error"]
        self.name = name or result["id"]
        self.code: str = error["code"]
        self.message: str = error["message"]
        self.fix: str = error.get("fix", "")
        self.retry: str = error.get("retry", "never")
        self.attempts: int = error.get("attempts", 1)
        self.failed: list[dict[str, Any]] = list(result.get("failed", []))
        self.instances: list[int] = [one["instance"] for one in self.failed]
        self.result = result
        self._sizes = sizes  # of its outputs, in bytes
        lines = [f"{self.name}: {self.code}: {self.message}", self.fix]
        super().__init__("\n".join(_harmless(line) for line in lines if line))

    def __reduce__(self) -> Any:
        return type(self), (self.result, self.name, self._sizes)

    def of(self, name: str) -> JobFailed:
        """Returns this failure as that of one row."""
        return type(self)(self.result, name, self._sizes)

    def arrays(self, store: Optional[Store] = None) -> dict[str, Array]:
        """{output name: array} of an array some of whose instances have failed, as the function arrays(); else empty."""
        return _arrays(self.result, store, self._sizes)


def _bytes(output: Mapping[str, Any], store: Optional[Store], size: Optional[int]) -> bytes:
    if "data" in output:
        if not isinstance(output["data"], bytes):  # bytearray() of a number has as many zeros
            raise ValueError(f'output {output["name"]} has {type(output["data"]).__name__} for data')
        data: bytes = output["data"]
        return data
    if store is None:
        raise ValueError(f'output {output["name"]} is blob {output["blob"]}: pass the store that holds it')
    return fetch(store, output["blob"], size)


def _array(output: Mapping[str, Any], store: Optional[Store], instances: Optional[int], size: Optional[int]) -> Array:
    dtype = DTYPES[output.get("datatype", "UINT8")]
    if size is None and "shape" in output:
        size = math.prod(output["shape"]) * dtype.itemsize
    flat = numpy.frombuffer(bytearray(_bytes(output, store, size)), dtype)
    if "shape" in output:
        return flat.reshape(output["shape"])
    return flat if instances is None else flat.reshape(instances, -1)


def _arrays(
    result: Mapping[str, Any], store: Optional[Store], sizes: Optional[Sequence[int]] = None
) -> dict[str, Array]:
    instances = result.get("telemetry", {}).get("instances")
    return {output["name"]: _array(output, store, instances, None if sizes is None else sizes[place])
            for place, output in enumerate(result["outputs"])}


def arrays_of(result: Mapping[str, Any], store: Optional[Store], name: str, sizes: Sequence[int]) -> dict[str, Array]:
    """As arrays(), of outputs of known sizes, in bytes."""
    if result["status"] != "ok":
        raise JobFailed(result, name, sizes)
    return _arrays(result, store, sizes)


def arrays(result: Mapping[str, Any], store: Optional[Store] = None) -> dict[str, Array]:
    """{output name: array}; raises JobFailed where the job failed. An output without a datatype is bytes. Of an array job
    the first axis has the instances. Large outputs may have gone to the blob store (`results.inline_max_bytes`): `store`
    holds them."""
    if result["status"] != "ok":
        raise JobFailed(result)
    return _arrays(result, store)


def arrays_shown(outputs: Sequence[Mapping[str, Any]], instances: Optional[int]) -> dict[str, Array]:
    """The outputs that a long job shows while it runs. None is in the blob store."""
    return {output["name"]: _array(output, None, instances, None) for output in outputs}


class Ends(NamedTuple):
    """How a long job ended: after which round, and by what (`until`, `repeat`, `time`, `stop`). Of an array job each is
    an array with an element for each instance."""

    rounds: Union[int, Array]
    ended: Union[str, Array]


def ends(result: Mapping[str, Any], instance: Optional[int] = None) -> Optional[Ends]:
    """How the long job of this result ended, or the instance of a long array. None if it was no long job, or failed."""
    if "rounds" not in result:
        return None
    rounds, ended = result["rounds"], result["ended"]
    if not isinstance(rounds, bytes):
        return Ends(rounds, ended)
    if instance is not None:
        return Ends(int.from_bytes(rounds[4 * instance:4 * instance + 4], "little"), ENDED[ended[instance]])
    return Ends(numpy.frombuffer(bytearray(rounds), "<u4"), numpy.array(ENDED)[numpy.frombuffer(ended, "u1")])


def warn_unless_done(result: Mapping[str, Any], name: str) -> None:
    """Says of a job with `until` that it had no more rounds: its outputs look like those of one that is done."""
    found = ends(result)
    if found is None:
        return
    open, count = numpy.count_nonzero(numpy.asarray(found.ended) == "repeat"), numpy.size(found.ended)
    if open > 0:
        who = "it was" if isinstance(found.ended, str) else f"{open} of {count} instances were"
        warnings.warn(f"{_harmless(name)}: {who} not done after {numpy.max(found.rounds)} rounds, all that the job may "
                      "run (`repeat`); see `ended`", NotConverged, stacklevel=2)
