"""The service without its pages on a free port of this machine, served from a thread; no worker judges."""

from __future__ import annotations

import threading
from typing import Any

import httpx2
import uvicorn

from rlvitals_monitor.app import create_app
from rlvitals_monitor.settings import Settings

PATIENCE_S = 30.0


class Served:
    def __init__(self, settings: Settings) -> None:
        self.app = create_app(settings, with_worker=False)
        self.store = self.app.state.store
        config = uvicorn.Config(self.app, port=0, log_level="error", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> Served:
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

    def post(self, path: str, body: dict[str, Any]) -> Any:
        headers = {"authorization": f"Bearer {self.app.state.local_token}"}
        answer = httpx2.post(f"{self.url}/api/v1{path}", json=body, headers=headers, timeout=PATIENCE_S)
        assert answer.status_code < 300, answer.text
        return answer.json()
