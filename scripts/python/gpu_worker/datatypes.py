"""Element types by their names in the Open Inference Protocol. NumPy has no BF16; its bytes travel as UINT16."""

from __future__ import annotations

from typing import Any, Optional

import numpy
import numpy.typing

Array = numpy.typing.NDArray[Any]

DATATYPES: dict[numpy.dtype[Any], str] = {
    numpy.dtype(dtype): name
    for dtype, name in {
        "?": "BOOL", "<u1": "UINT8", "<u2": "UINT16", "<u4": "UINT32", "<u8": "UINT64", "<i1": "INT8", "<i2": "INT16",
        "<i4": "INT32", "<i8": "INT64", "<f2": "FP16", "<f4": "FP32", "<f8": "FP64",
    }.items()
}
DTYPES: dict[str, numpy.dtype[Any]] = {name: dtype for dtype, name in DATATYPES.items()}
DTYPES["BF16"] = numpy.dtype("<u2")


def name_of(dtype: numpy.dtype[Any]) -> Optional[str]:
    """None where no buffer can hold it."""
    return DATATYPES.get(dtype.newbyteorder("<"))


def _is_plain(value: Any) -> bool:
    """Whether these are numbers of Python, alone or in nested lists. They have no type of their own."""
    return all(map(_is_plain, value)) if isinstance(value, (list, tuple)) else type(value) in (bool, int, float)


def array_of(value: Any, wanted: Optional[numpy.dtype[Any]]) -> Array:
    """The value as an array. Numbers of Python take the type that is wanted; ValueError if it cannot hold them. What has a
    type keeps it."""
    if isinstance(value, numpy.ndarray):
        return value
    found = numpy.asarray(value)
    is_other_kind = found.dtype.kind == "O" or found.dtype.kind == "f" and wanted is not None and wanted.kind != "f"
    if wanted is None or found.size > 0 and is_other_kind or not _is_plain(value):
        return found
    with numpy.errstate(over="ignore", invalid="ignore"):
        taken = found.astype(wanted)
    fits = numpy.isfinite(taken) == numpy.isfinite(found) if wanted.kind == "f" else taken == found
    if not fits.all():
        raise ValueError(f"{found[~fits].item(0)} is no {wanted}")
    return taken


def little_endian(array: numpy.typing.ArrayLike) -> Array:
    """The array in the form of messages: row-major and little-endian. Copied only if it has another form."""
    array = numpy.asarray(array)
    return numpy.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
