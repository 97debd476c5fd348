"""The blob store: a folder that senders and workers share, each file named by the digest of its bytes."""

import os
import pathlib
import secrets

from .job import digest
from .datatypes import little_endian


class BlobStore:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def path(self, name):
        """Where the bytes of "sha256:<hex>" stand: 256 folders keep each of them short."""
        hexadecimal = name.removeprefix("sha256:")
        return self.folder / hexadecimal[:2] / hexadecimal

    def get(self, name):
        """The bytes of that name; FileNotFoundError where the store has none."""
        data = self.path(name).read_bytes()
        if digest(bytearray(data)) != name:
            raise ValueError(f"{self.path(name)} does not hold {name}")
        return data

    def put(self, array):
        """Stores the array's bytes and returns their name. A reader never sees a part of them."""
        name = digest(array)
        path = self.path(name)
        try:
            os.utime(path)  # workers remove what was not used for long
            return name
        except FileNotFoundError:
            pass
        path.parent.mkdir(parents=True, exist_ok=True)
        # A name that workers know: what a writer that crashed leaves is removed by their next sweep.
        unfinished = path.parent / f".gpu-worker.{secrets.token_hex(8)}"
        with open(unfinished, "xb") as file:
            file.write(little_endian(array).data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(unfinished, path)
        return name
