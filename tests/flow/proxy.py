"""A TCP proxy on the loopback interface whose network can fail."""

import asyncio
import contextlib
import threading

CHUNK_BYTES = 65536


class Proxy:
    """Forwards connections from one port to another, in a thread of its own, until close()."""

    def __init__(self, port, target_port):
        self._target_port = target_port
        self._tasks = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._run(self._start(port))

    def _run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    async def _start(self, port):
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._is_cut = False
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            if not self._is_cut:
                await self._forward(reader, writer)
        writer.transport.abort()
        self._tasks.discard(task)

    async def _forward(self, reader, writer):
        """Ends with the first of the two directions."""
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        ways = [asyncio.create_task(self._copy(reader, far_writer)),
                asyncio.create_task(self._copy(far_reader, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            far_writer.transport.abort()

    async def _copy(self, reader, writer):
        while data := await reader.read(CHUNK_BYTES):
            await self._is_open.wait()
            writer.write(data)
            await writer.drain()

    def silence(self):
        """Connections stay, but nothing arrives any more, as behind a broken switch."""
        self._loop.call_soon_threadsafe(self._is_open.clear)

    def cut(self):
        """Resets every connection and each new one."""
        self._run(self._cut())

    async def _cut(self):
        self._is_cut = True
        for task in self._tasks:
            task.cancel()

    def mend(self):
        self._run(self._mend())

    async def _mend(self):
        self._is_cut = False
        self._is_open.set()

    def close(self):
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self):
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
