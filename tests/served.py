"""A service on a free port of this machine, served from a thread."""

from __future__ import annotations

import threading
from typing import Any

import httpx2
import uvicorn
from fastapi import FastAPI
from typing_extensions import Self

PATIENCE_S = 75.0


class Served:
    """``store`` is the service's own: what a test plants there, the service shows."""

    def __init__(self, app: FastAPI) -> None:
        self.app, self.store = app, app.state.store
        config = uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        ready = threading.Event()
        for _ in range(int(PATIENCE_S / 0.02)):
            if self._server.started:
                return self
            ready.wait(0.02)
        raise TimeoutError("the service did not start")

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(PATIENCE_S)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"

    def get(self, path: str) -> list[dict[str, Any]]:
        """The items that the API answers to the owner."""
        body = self._ask("GET", path)
        return list(body["items"] if isinstance(body, dict) else body)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._ask("POST", path, json=body)

    def patch(self, path: str, body: dict[str, Any]) -> Any:
        return self._ask("PATCH", path, json=body)

    def put(self, path: str, body: dict[str, Any]) -> Any:
        return self._ask("PUT", path, json=body)

    def _ask(self, method: str, path: str, **options: Any) -> Any:
        headers = {"authorization": f"Bearer {self.app.state.local_token}"}
        url = f"{self.url}/api/v1{path}"
        answer = httpx2.request(method, url, headers=headers, timeout=PATIENCE_S, **options)
        assert answer.status_code < 300, answer.text
        return answer.json()
