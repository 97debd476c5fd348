"""What comes back: a dict in the shape of schemas/result.schema.json."""

import numpy

from .datatypes import DTYPES


class JobFailed(Exception):
    """A job that was answered with an error; `result` is the whole answer."""

    def __init__(self, result):
        error = result["error"]
        super().__init__(f'{result["id"]}: {error["code"]}: {error["message"]} {error.get("fix", "")}'.rstrip())
        self.result = result


def _array(output):
    flat = numpy.frombuffer(output["data"], DTYPES[output.get("datatype", "UINT8")])
    return flat.reshape(output["shape"]) if "shape" in output else flat


def arrays(result):
    """{output name: array}; raises JobFailed where the job failed. An output without a datatype is bytes."""
    if result["status"] != "ok":
        raise JobFailed(result)
    return {output["name"]: _array(output) for output in result["outputs"]}
