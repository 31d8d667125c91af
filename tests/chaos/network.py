"""A network that can be cut, slowed and held: each way is a port here that leads to one of its targets."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
CHUNK = 65_536
DIAL_S = 0.5
LOOPBACK = "127.0.0.1"
Address = tuple[str, int]


class Way:
    """A listening port; a new connection goes to the next target that answers, as through a balancer.

    ``ended``, ``held`` and ``slowed`` count the connections and pieces that a fault has hit.
    """

    def __init__(self, network: Network, targets: list[Address], host: str) -> None:
        self.targets, self.host, self.port = targets, host, 0
        self.delay_s = 0.0
        self.ended = self.held = self.slowed = 0
        self._network, self._turn = network, itertools.count()
        self._open: set[asyncio.StreamWriter] = set()
        self._cut = False
        self._flows = asyncio.Event()
        self._flows.set()

    def cut(self) -> None:
        """All connections end at once, and new ones are refused."""
        self._network.do(self._end())

    def hold(self) -> None:
        """Nothing goes through, and nobody is told."""
        self._network.do(self._set(self._flows.clear))

    def heal(self) -> None:
        self.delay_s, self._cut = 0.0, False
        self._network.do(self._set(self._flows.set))

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._connected, self.host, 0, backlog=256)
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """On the loop's own thread."""
        self._server.close()
        for writer in self._open:
            writer.transport.abort()

    async def _set(self, change: Any) -> None:
        change()

    async def _end(self) -> None:
        self._cut = True
        self.ended += len(self._open)
        for writer in list(self._open):
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found = None if self._cut else await self._dial()
        if found is None:
            self.ended += self._cut
            writer.transport.abort()
            return
        there_reader, there_writer = found
        both = {writer, there_writer}
        self._open |= both
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(self._pump(reader, there_writer), self._pump(there_reader, writer))
        finally:
            self._open -= both
            for one in both:
                one.transport.abort()

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        first = next(self._turn)
        for place in range(len(self.targets)):
            host, port = self.targets[(first + place) % len(self.targets)]
            with contextlib.suppress(OSError, asyncio.TimeoutError):
                return await asyncio.wait_for(asyncio.open_connection(host, port), DIAL_S)
        return None

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(CHUNK):
                self.held += not self._flows.is_set()
                await self._flows.wait()
                if self.delay_s:
                    self.slowed += 1
                    await asyncio.sleep(self.delay_s)
                writer.write(data)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()
        except OSError:  # who was killed sends no end but a reset, and the other side is to hear of it
            writer.transport.abort()


class Network:
    """All ways, moved by one thread."""

    def __init__(self) -> None:
        self._ways: list[Way] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)
        self._thread.start()

    def way(self, *targets: Address, host: str = LOOPBACK) -> Way:
        """``host``: our address at which it listens."""
        made = Way(self, list(targets), host)
        self.do(made.listen())
        self._ways.append(made)
        return made

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def close(self) -> None:
        async def end() -> None:
            for way in self._ways:
                way.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        self.do(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
