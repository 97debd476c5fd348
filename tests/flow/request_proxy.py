"""A TCP proxy between Kafka's clients and a broker that can keep a request back, as a broker does that is frozen with
the request in its socket: the client may have given it up and gone on by the time that it arrives."""

import asyncio
import contextlib
import struct
import threading

from proxy import CHUNK_BYTES, Proxy

OFFSET_COMMIT, TXN_OFFSET_COMMIT, END_TXN = 8, 28, 26  # the protocol's numbers of requests


class Kept:
    """The requests of one connection from the one that was asked for on; the broker sees none of them yet."""

    def __init__(self, loop):
        self._loop = loop
        self._arrived = threading.Event()
        self._frames = []
        self._writer = None

    def is_there(self):
        return self._arrived.is_set()

    def add(self, frame, writer):
        self._writer = writer
        if self._frames is None:
            writer.write(frame)
        else:
            self._frames.append(frame)
        self._arrived.set()

    def deliver(self):
        """Whether or not their client still waits. What comes later is not kept any more."""
        asyncio.run_coroutine_threadsafe(self._deliver(), self._loop).result(30)

    async def _deliver(self):
        frames, self._frames = self._frames, None
        for frame in frames:
            self._writer.write(frame)


class RequestProxy(Proxy):
    def __init__(self, port, target_port):
        self._wanted = {}  # by the number of the request
        super().__init__(port, target_port)

    def keep_next(self, request):
        """The next one of that number, and what follows on its connection."""
        kept = Kept(self._loop)
        self._loop.call_soon_threadsafe(self._wanted.__setitem__, request, kept)
        return kept

    async def _forward(self, reader, writer):
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        back = asyncio.create_task(self._copy_back(far_reader, writer))
        try:
            if await self._copy_requests(reader, far_writer):
                await back  # the broker does not learn that the client has gone
        finally:
            back.cancel()
            await asyncio.gather(back, return_exceptions=True)
            far_writer.transport.abort()

    async def _copy_requests(self, reader, writer):
        """Until the client has gone; whether requests of it are kept."""
        kept = None
        with contextlib.suppress(OSError, EOFError):
            while True:
                size = await reader.readexactly(4)
                body = await reader.readexactly(struct.unpack(">i", size)[0])
                kept = kept or self._wanted.pop(struct.unpack(">h", body[:2])[0], None)
                if kept is None:
                    writer.write(size + body)
                    await writer.drain()
                else:
                    kept.add(size + body, writer)
        return kept is not None

    async def _copy_back(self, reader, writer):
        while data := await reader.read(CHUNK_BYTES):
            with contextlib.suppress(OSError):
                writer.write(data)
                await writer.drain()
