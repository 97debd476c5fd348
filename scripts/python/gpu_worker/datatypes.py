"""Element types by their names in the Open Inference Protocol. NumPy has no BF16; its bytes travel as UINT16."""

from __future__ import annotations

from typing import Any

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


def little_endian(array: numpy.typing.ArrayLike) -> Array:
    """The array in the form of messages: row-major and little-endian. Copied only if it has another form."""
    array = numpy.asarray(array)
    return numpy.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
