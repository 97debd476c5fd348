"""The blob store: payloads that senders and workers share, each named by the digest of its bytes."""

from __future__ import annotations

import base64
import contextlib
import errno
import http.client
import io
import os
import pathlib
import re
import secrets
import socket
import ssl
import stat
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any, BinaryIO, Optional, Protocol, Union

import numpy.typing

from .datatypes import little_endian
from .job import digest

TIMEOUT_S = 120
SLOW_BYTES_PER_S = 64 * 1024  # what a store must bring once TIMEOUT_S have passed
HEAD_BYTES = 64 * 1024  # of an answer, besides the blob
PIECE_BYTES = 1 << 20


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


def _open_plain(name: str, shelf: int) -> BinaryIO:
    """Opens a file without following a link or waiting. Raises FileNotFoundError for anything but a plain file."""
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=shelf)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        raise FileNotFoundError(errno.ENOENT, "there is no plain file", name) from None
    if stat.S_ISREG(os.fstat(file).st_mode):
        return open(file, "rb")
    os.close(file)
    raise FileNotFoundError(errno.ENOENT, "there is no plain file", name)


class BlobStore:
    """A folder: `blobs.dir` of the workers' configuration. Others may write in it: no link below it is followed."""

    def __init__(self, folder: Union[str, os.PathLike[str]]) -> None:
        self.folder = pathlib.Path(folder)

    def path(self, name: str) -> pathlib.Path:
        """The file of "sha256:<hex>"."""
        return self.folder / _place_of(name)

    @contextlib.contextmanager
    def _shelf(self, name: str, make: bool) -> Iterator[tuple[int, str]]:
        """The folder of the first two digits, and the file's name in it."""
        shelf, file = _place_of(name).split("/")
        if make:
            self.folder.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as opened:
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            opened.callback(os.close, folder)
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(shelf, dir_fd=folder)
            place = os.open(shelf, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            opened.callback(os.close, place)
            yield place, file

    def get(self, name: str, size: Optional[int] = None) -> bytes:
        """The bytes of that name; of another size than `size` they are not read. Raises FileNotFoundError if the store does
        not have them."""
        with self._shelf(name, make=False) as (shelf, file), _open_plain(file, shelf) as blob:
            if size is not None and os.fstat(blob.fileno()).st_size != size:
                raise ValueError(f"{self.path(name)} does not hold {name}: it has not {size} bytes")
            return _checked(name, blob.read() if size is None else blob.read(size), self.path(name))

    def put(self, array: numpy.typing.ArrayLike) -> str:
        """Stores the array's bytes and returns their name. A reader never sees a part of them."""
        name, data = digest(array), little_endian(array).reshape(-1).view(numpy.uint8).data
        with self._shelf(name, make=True) as (shelf, file):
            if not self._touch(file, shelf, data):
                self._write(file, shelf, data)
        return name

    def _touch(self, file: str, shelf: int, data: memoryview) -> bool:
        """Whether these bytes stand there. They are marked as used: workers remove what was not for long."""
        try:
            with _open_plain(file, shelf) as blob:
                status = os.fstat(blob.fileno())
                same = status.st_size == data.nbytes and all(
                    blob.read(PIECE_BYTES) == data[at: at + PIECE_BYTES] for at in range(0, data.nbytes, PIECE_BYTES))
                if same and status.st_nlink == 1:  # with another name it may be somebody else's
                    os.utime(blob.fileno())
                return same
        except FileNotFoundError:
            return False

    def _write(self, file: str, shelf: int, data: memoryview) -> None:
        # Workers know this form of name: if a writer crashes, their next sweep removes the file.
        unfinished = f".gpu-worker.{secrets.token_hex(8)}"
        made = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=shelf)
        try:
            with open(made, "wb") as blob:
                blob.write(data)
                blob.flush()
                os.fsync(blob.fileno())
            os.rename(unfinished, file, src_dir_fd=shelf, dst_dir_fd=shelf)
        except BaseException:
            os.unlink(unfinished, dir_fd=shelf)
            raise


class _Trickle(io.RawIOBase):
    """What a socket brings: at most so many bytes, and not too slowly, whatever they are."""

    def __init__(self, sock: socket.socket, most: Optional[int], timeout_s: float) -> None:
        self._socket, self._raw = sock, sock.makefile("rb", buffering=0)
        self._left = sys.maxsize if most is None else HEAD_BYTES + most
        self._until = time.monotonic() + timeout_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left_s = self._until - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("the blob store is too slow")
        if self._left == 0:
            raise ValueError("the blob store sends more than the blob has")
        self._socket.settimeout(left_s)
        size = self._raw.readinto(memoryview(buffer)[:self._left]) or 0
        self._left -= size
        self._until += size / SLOW_BYTES_PER_S
        return size

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Bounded(urllib.request.HTTPSHandler, urllib.request.HTTPHandler):
    """Reads answers, their heads and those of redirects, through a _Trickle."""

    def __init__(self, most: Optional[int], timeout_s: float, context: Optional[ssl.SSLContext]) -> None:
        super().__init__(context=context)
        self._most, self._timeout_s = most, timeout_s

    def _respond(self, sock: socket.socket, *args: Any, **options: Any) -> http.client.HTTPResponse:
        response = http.client.HTTPResponse(sock, *args, **options)
        response.fp.close()
        response.fp = io.BufferedReader(_Trickle(sock, self._most, self._timeout_s))
        return response

    def do_open(self, http_class: Any, req: urllib.request.Request, **options: Any) -> http.client.HTTPResponse:
        def connect(*args: Any, **more: Any) -> http.client.HTTPConnection:
            connection: http.client.HTTPConnection = http_class(*args, **more)
            connection.response_class = self._respond  # type: ignore[assignment]
            return connection

        return super().do_open(connect, req, **options)


class HttpBlobStore:
    """GET and PUT below a URL: `blobs.url` of the workers' configuration, which may carry credentials."""

    def __init__(self, url: str, context: Optional[ssl.SSLContext] = None, timeout_s: float = TIMEOUT_S) -> None:
        if not url.startswith(("http://", "https://")) or "?" in url or "#" in url:  # it may carry a password: it is not shown
            raise ValueError("the URL of a blob store is http:// or https://, without a query")
        parts = urllib.parse.urlsplit(url)
        credentials, _, host = parts.netloc.rpartition("@")  # kept apart, so that no error shows them
        self._url = parts._replace(netloc=host).geturl().rstrip("/")
        words = ":".join(map(urllib.parse.unquote, credentials.split(":", 1)))
        self._authorization = "Basic " + base64.b64encode(words.encode()).decode() if credentials else None
        self._context = context
        self._timeout_s = timeout_s

    def _request(self, name: str, method: str, most: Optional[int], data: Optional[bytes] = None) -> bytes:
        request = urllib.request.Request(f"{self._url}/{_place_of(name)}", data, method=method)
        request.add_header("Content-Type", "application/octet-stream")
        if self._authorization is not None:
            request.add_unredirected_header("Authorization", self._authorization)
        opener = urllib.request.build_opener(_Bounded(most, self._timeout_s, self._context))
        with opener.open(request, timeout=self._timeout_s) as response:
            body: bytes = response.read() if most is None else response.read(most + 1)
        return body

    def get(self, name: str, size: Optional[int] = None) -> bytes:
        """The bytes of that name; where there are more than `size`, they are not read. Raises FileNotFoundError if the store
        does not have them."""
        try:
            return _checked(name, self._request(name, "GET", size), self._url)
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            raise FileNotFoundError(f"{self._url} has no {name}") from error

    def put(self, array: numpy.typing.ArrayLike) -> str:
        """Stores the array's bytes and returns their name."""
        name = digest(array)
        self._request(name, "PUT", 0, little_endian(array).tobytes())
        return name


def fetch(store: Store, name: str, size: Optional[int]) -> bytes:
    """The blob of that name. If its size is known, our own stores read no more."""
    data = store.get(name, size) if isinstance(store, (BlobStore, HttpBlobStore)) else store.get(name)
    if size is not None and len(data) != size:
        raise ValueError(f"blob {name} has {len(data)} bytes, and the job asks for {size}")
    return data


def open_store(store: Union[None, str, os.PathLike[str], Store]) -> Optional[Store]:
    """Opens a folder or a URL; returns a store as it is."""
    if isinstance(store, str) and "://" in store:
        return HttpBlobStore(store)
    if isinstance(store, (str, os.PathLike)):
        return BlobStore(store)
    return store
