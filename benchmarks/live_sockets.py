"""Clients of a live page's own WebSocket: each carries its chain of beats on, as a browser without a screen."""

from __future__ import annotations

import asyncio
import copy
import json
import threading
from collections.abc import Mapping
from typing import Any

from websockets.asyncio.client import connect

OUTPUT = "beat.data"
SOCKET = "/ui/_dash-ws-callback"


def capture_beat(context: Any, address: str) -> dict[str, Any]:
    """What a browser asks in its first beat, seen where it has no SharedWorker and so asks over HTTP."""
    page = context.new_page()
    page.add_init_script("delete window.SharedWorker")
    with page.expect_request(lambda r: OUTPUT in (r.post_data or ""), timeout=60_000) as asked:
        page.goto(address)
    body: dict[str, Any] = json.loads(asked.value.post_data)
    page.close()
    return body


class PageSockets:
    """``count`` clients in a thread of their own; ``beats`` is how many answers they got in all."""

    def __init__(self, url: str, cookies: Mapping[str, str], beat: Mapping[str, Any], count: int) -> None:
        self._url, self._beat, self._count = url, beat, count
        self._cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
        self._ending = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._all()), daemon=True)
        self.beats = 0

    def __enter__(self) -> PageSockets:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join(30)

    async def _all(self) -> None:
        await asyncio.gather(*(self._one(number) for number in range(self._count)))

    async def _one(self, number: int) -> None:
        headers = {"Cookie": self._cookie, "Origin": self._url}
        address = self._url.replace("http", "ws", 1) + SOCKET
        body = copy.deepcopy(dict(self._beat))
        async with connect(address, additional_headers=headers, max_size=None) as socket:
            asked = 0
            while not self._ending.is_set():
                asked += 1
                message = {"type": "callback_request", "requestId": f"{number}-{asked}", "rendererId": str(number)}
                await socket.send(json.dumps(message | {"payload": body}))
                pulse = await self._answer(socket, f"{number}-{asked}")
                if pulse is not None:
                    self.beats += 1
                    body["inputs"][0]["value"] = pulse

    async def _answer(self, socket: Any, wanted: str) -> Any:
        """The pulse that the answer to a request brings; None where the service is silent for long."""
        while not self._ending.is_set():
            try:
                told = json.loads(await asyncio.wait_for(socket.recv(), 20))
            except asyncio.TimeoutError:
                return None
            for one in told if isinstance(told, list) else (told,):
                found = _find(one, "beat")
                if one.get("requestId") == wanted and found is not None:
                    return found.get("data")
        return None


def _find(told: Any, key: str) -> Any:
    """The value of ``key`` at any depth."""
    if isinstance(told, Mapping):
        if key in told:
            return told[key]
        return next((found for value in told.values() if (found := _find(value, key)) is not None), None)
    return None
