"""Jobs are plain dicts in the shape of schemas/job.schema.json; these functions spell their parts."""

import hashlib
import math

import numpy

from .datatypes import DATATYPES, little_endian


def digest(array):
    """The name of the array's bytes, as statics and blobs carry it."""
    return "sha256:" + hashlib.sha256(little_endian(array).data).hexdigest()


def _describe(shape, dtype):
    dtype = numpy.dtype(dtype).newbyteorder("<")
    return {"bytes": math.prod(shape) * dtype.itemsize, "datatype": DATATYPES[dtype], "shape": list(shape)}


def _describe_array(array):
    return _describe(numpy.shape(array), numpy.asarray(array).dtype)


def upload(array):
    """A buffer whose bytes travel in the job."""
    return _describe_array(array) | {"data": little_endian(array).tobytes()}


def static(array, with_data=False):
    """A buffer named by digest and kept on the device; with the data, it need not be in the blob store."""
    described = _describe_array(array) | {"static": digest(array)}
    return described | {"data": little_endian(array).tobytes()} if with_data else described


def blob(array):
    """A buffer named by digest and read from the blob store for this job alone."""
    return _describe_array(array) | {"blob": digest(array)}


def zeros(shape, dtype):
    """A buffer that the device clears."""
    return _describe(shape, dtype)


def u32(value):
    return {"u32": int(value)}


def i32(value):
    return {"i32": int(value)}


def u64(value):
    return {"u64": int(value)}


def i64(value):
    return {"i64": int(value)}


def f32(value):
    return {"f32": float(value)}


def f64(value):
    return {"f64": float(value)}


def step(program, args, **options):
    """One launch, or `iterations` of them. Options: entry, grid or elements, block, shared_bytes, iterations."""
    return {"program": program, "args": list(args), **options}


def job(id, buffers, steps, outputs, **options):
    """A whole job. An output is the name of a buffer or a dict. Options: repeat, timing, deadline_ms, timeout_ms."""
    listed = [{"buffer": output} if isinstance(output, str) else output for output in outputs]
    return {"v": 1, "id": id, "buffers": buffers, "steps": list(steps), "outputs": listed, **options}
