"""What comes back: a dict in the shape of schemas/result.schema.json."""

import numpy

from .datatypes import DTYPES


class JobFailed(Exception):
    """A job that was answered with an error; `result` is the whole answer."""

    def __init__(self, result):
        error = result["error"]
        super().__init__(f'{result["id"]}: {error["code"]}: {error["message"]} {error.get("fix", "")}'.rstrip())
        self.result = result


def _bytes(output, store):
    if "data" in output:
        return output["data"]
    if store is None:
        raise ValueError(f'output {output["name"]} is blob {output["blob"]}: pass the store that holds it')
    return store.get(output["blob"])


def _array(output, store):
    flat = numpy.frombuffer(_bytes(output, store), DTYPES[output.get("datatype", "UINT8")])
    return flat.reshape(output["shape"]) if "shape" in output else flat


def arrays(result, store=None):
    """{output name: array}; raises JobFailed where the job failed. An output without a datatype is bytes. Large outputs
    may have gone to the blob store (`results.inline_max_bytes`): `store` is its BlobStore."""
    if result["status"] != "ok":
        raise JobFailed(result)
    return {output["name"]: _array(output, store) for output in result["outputs"]}
