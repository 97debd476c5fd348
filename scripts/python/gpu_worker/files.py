"""Streams of messages in files, as `gpu-worker run --jobs FILE --results FILE` takes and writes them."""

import msgpack


def write_jobs(path, jobs):
    with open(path, "wb") as file:
        for job in jobs:
            file.write(msgpack.packb(job))


def read_results(path):
    """Yields the results of a file, one after the other."""
    with open(path, "rb") as file:
        yield from msgpack.Unpacker(file, max_buffer_size=0)
