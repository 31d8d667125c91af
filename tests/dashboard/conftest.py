"""A real server around the fake service, and a real browser before it."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from rlvitals_dashboard.api import Api, visitor
from rlvitals_dashboard.app import create_dash
from tests.dashboard.fake import FakeService

CHROMIUM = Path("/usr/bin/chromium")
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PATIENCE_S = 75.0
"""Nothing should take so long; a laden machine may."""


class Site:
    """The dashboard on a free port of this machine, served from a thread."""

    def __init__(self, fake: FakeService) -> None:
        self.fake = fake
        self.sockets = 0
        create_dash(fake.app, Api.of_app(fake.app))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        config = uvicorn.Config(self._counting, interface="asgi3", log_level="error", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True)

    async def _counting(self, scope: Any, receive: Any, send: Any) -> None:
        self.sockets += scope["type"] == "websocket"
        if scope["type"] == "lifespan":
            self._loop = asyncio.get_running_loop()
        await self.fake.app(scope, receive, send)

    def _serve(self) -> None:
        start = self._server.startup

        async def startup(sockets: Any = None) -> None:
            await start(sockets)
            self._ready.set()

        self._server.startup = startup  # type: ignore[method-assign]
        self._server.run(sockets=[self._listener])

    def __enter__(self) -> Site:
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(PATIENCE_S)

    def do(self, *changes: Callable[[], object]) -> None:
        """Makes ``changes`` on the server's loop and tells the pages that something moved."""

        async def change_and_tell() -> None:
            for change in changes:
                change()
            await self.fake.moved()

        self.run(change_and_tell())

    def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE_S)


@pytest.fixture(autouse=True)
def nobody_is_asking() -> Iterator[None]:
    token = visitor.set(None)
    yield
    visitor.reset(token)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Closed with its module: while it is open, its event loop runs in this thread and no other can."""
    if not CHROMIUM.exists():
        pytest.skip(f"NO BROWSER TESTS: {CHROMIUM} is not there; `apt-get install chromium` brings it")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_S * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(CHROMIUM_FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Callable[..., Any]]:
    """``open_page(url, path, width=…, scheme=…)``: a signed-in page whose errors fail the test at its end."""
    contexts: list[Any] = []
    faults: list[str] = []

    def opened(url: str, path: str, *, width: int = 1440, scheme: str = "light", login: str = "/ui/login") -> Any:
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_S * 1000)
        page.on("pageerror", lambda error: faults.append(f"{error} {error.stack}"))
        page.on("dialog", lambda dialog: faults.append(f"a script ran: {dialog.message}"))
        page.on("request", lambda r: None if r.url.startswith((url, "data:", "blob:")) else faults.append(r.url))
        if login:
            page.goto(f"{url}{login}")
        page.goto(f"{url}{path}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert faults == []
