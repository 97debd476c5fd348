"""The blob store: payloads that senders and workers share, each named by the digest of its bytes."""

from __future__ import annotations

import base64
import os
import pathlib
import re
import secrets
import ssl
import urllib.error
import urllib.parse
import urllib.request
from typing import Optional, Protocol, Union

import numpy.typing

from .datatypes import little_endian
from .job import digest

TIMEOUT_S = 120


class Store(Protocol):
    """What a client needs from a blob store. You may pass a class of your own."""

    def get(self, name: str) -> bytes: ...

    def put(self, array: numpy.typing.ArrayLike) -> str: ...


def _checked(name: str, data: bytes, where: object) -> bytes:
    if digest(bytearray(data)) != name:
        raise ValueError(f"{where} does not hold {name}")
    return data


def _place_of(name: str) -> str:
    """Where its bytes are below a folder or a URL. 256 folders share them, so that none gets long. Names come from
    messages: nothing else than a digest leads anywhere."""
    if not re.fullmatch("sha256:[0-9a-f]{64}", name):
        raise ValueError(f"{name!r} is no digest, such as results name blobs by")
    hexadecimal = name.removeprefix("sha256:")
    return f"{hexadecimal[:2]}/{hexadecimal}"


class BlobStore:
    """A folder: `blobs.dir` of the workers' configuration."""

    def __init__(self, folder: Union[str, os.PathLike[str]]) -> None:
        self.folder = pathlib.Path(folder)

    def path(self, name: str) -> pathlib.Path:
        """The file of "sha256:<hex>"."""
        return self.folder / _place_of(name)

    def get(self, name: str) -> bytes:
        """The bytes of that name. Raises FileNotFoundError if the store does not have them."""
        return _checked(name, self.path(name).read_bytes(), self.path(name))

    def put(self, array: numpy.typing.ArrayLike) -> str:
        """Stores the array's bytes and returns their name. A reader never sees a part of them."""
        name = digest(array)
        path = self.path(name)
        try:
            os.utime(path)  # workers remove what was not used for long
            return name
        except FileNotFoundError:
            pass
        path.parent.mkdir(parents=True, exist_ok=True)
        # Workers know this form of name: if a writer crashes, their next sweep removes the file.
        unfinished = path.parent / f".gpu-worker.{secrets.token_hex(8)}"
        with open(unfinished, "xb") as file:
            file.write(little_endian(array).data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(unfinished, path)
        return name


class HttpBlobStore:
    """GET and PUT below a URL: `blobs.url` of the workers' configuration, which may carry credentials."""

    def __init__(self, url: str, context: Optional[ssl.SSLContext] = None, timeout_s: float = TIMEOUT_S) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"{url} is neither http:// nor https://")
        parts = urllib.parse.urlsplit(url)
        credentials, _, host = parts.netloc.rpartition("@")  # kept apart, so that no error shows them
        self._url = parts._replace(netloc=host).geturl().rstrip("/")
        words = ":".join(map(urllib.parse.unquote, credentials.split(":", 1)))
        self._authorization = "Basic " + base64.b64encode(words.encode()).decode() if credentials else None
        self._context = context
        self._timeout_s = timeout_s

    def _request(self, name: str, method: str, data: Optional[bytes] = None) -> bytes:
        request = urllib.request.Request(f"{self._url}/{_place_of(name)}", data, method=method)
        request.add_header("Content-Type", "application/octet-stream")
        if self._authorization is not None:
            request.add_unredirected_header("Authorization", self._authorization)
        with urllib.request.urlopen(request, timeout=self._timeout_s, context=self._context) as response:
            body: bytes = response.read()
        return body

    def get(self, name: str) -> bytes:
        """The bytes of that name. Raises FileNotFoundError if the store does not have them."""
        try:
            return _checked(name, self._request(name, "GET"), self._url)
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            raise FileNotFoundError(f"{self._url} has no {name}") from error

    def put(self, array: numpy.typing.ArrayLike) -> str:
        """Stores the array's bytes and returns their name."""
        name = digest(array)
        self._request(name, "PUT", little_endian(array).tobytes())
        return name


def open_store(store: Union[None, str, os.PathLike[str], Store]) -> Optional[Store]:
    """Opens a folder or a URL; returns a store as it is."""
    if isinstance(store, str) and "://" in store:
        return HttpBlobStore(store)
    if isinstance(store, (str, os.PathLike)):
        return BlobStore(store)
    return store
