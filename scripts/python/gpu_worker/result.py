"""What comes back: a dict in the shape of schemas/result.schema.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

import msgpack  # type: ignore[import-untyped]
import numpy

from .blobs import Store
from .datatypes import DTYPES, Array


def _harmless(text: str) -> str:
    """The text with numbers for what a terminal would act on, or a reader of lines takes for the end of one."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class JobFailed(Exception):
    """A job that was answered with an error.

    `code` is a row of the table in schemas/README.md, `message` says what happened and `fix` what to do; `retry` is who
    can make it succeed (`worker`, `sender`, `never`), and `attempts` how often the worker tried. `name` is the
    sender's own, and `result` the whole answer.

    Where only some instances of an array have failed (`instances_failed`), `failed` says which and why, `instances` are
    their numbers, and `arrays()` has the outputs of all others, with zeros in their places. Otherwise both are empty.
    """

    def __init__(self, result: Mapping[str, Any], name: Optional[str] = None) -> None:
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
        super().__init__(_harmless(f"{self.name}: {self.code}: {self.message} {self.fix}".rstrip()))

    def __reduce__(self) -> Any:
        return type(self), (self.result, self.name)

    def arrays(self, store: Optional[Store] = None) -> dict[str, Array]:
        """{output name: array} of an array some of whose instances have failed, as the function arrays(); else empty."""
        return _arrays(self.result, store)


def _is_result(result: Any) -> bool:
    if not isinstance(result, dict):
        return False
    outputs, error, residents = (result.get(key, {}) for key in ("outputs", "error", "residents"))
    return (
        isinstance(outputs, list) and all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in outputs)
        and isinstance(error, dict) and (result.get("status") == "ok" or {"code", "message"} <= error.keys())
        and isinstance(residents, dict) and all(isinstance(generation, int) for generation in residents.values()))


def result_of(message: bytes) -> dict[str, Any]:
    """The result in a message. Raises ValueError for what no worker sends: others may write to the topic, too."""
    result = msgpack.unpackb(message)
    if not _is_result(result):
        raise ValueError("the answer is no result as schemas/result.schema.json has it: see who else writes to the topic")
    return dict(result)


def _bytes(output: Mapping[str, Any], store: Optional[Store]) -> bytes:
    if "data" in output:
        data: bytes = output["data"]
        return data
    if store is None:
        raise ValueError(f'output {output["name"]} is blob {output["blob"]}: pass the store that holds it')
    return store.get(output["blob"])


def _array(output: Mapping[str, Any], store: Optional[Store], instances: Optional[int]) -> Array:
    flat = numpy.frombuffer(bytearray(_bytes(output, store)), DTYPES[output.get("datatype", "UINT8")])
    if "shape" in output:
        return flat.reshape(output["shape"])
    return flat if instances is None else flat.reshape(instances, -1)


def _arrays(result: Mapping[str, Any], store: Optional[Store]) -> dict[str, Array]:
    instances = result.get("telemetry", {}).get("instances")
    return {output["name"]: _array(output, store, instances) for output in result["outputs"]}


def arrays(result: Mapping[str, Any], store: Optional[Store] = None) -> dict[str, Array]:
    """{output name: array}; raises JobFailed where the job failed. An output without a datatype is bytes. Of an array job
    the first axis has the instances. Large outputs may have gone to the blob store (`results.inline_max_bytes`): `store`
    holds them."""
    if result["status"] != "ok":
        raise JobFailed(result)
    return _arrays(result, store)
