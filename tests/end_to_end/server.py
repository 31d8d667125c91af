"""The real service as a process of its own, that a test may kill and start again on the same data."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DEADLINE_S = 90.0
POLL_S = 0.1


class Server:
    """``rlvitals serve`` on one port and one folder, whatever happens to its process."""

    def __init__(self, folder: Path) -> None:
        self.home, self._data, self._log = folder / "home", folder / "data", folder / "service.log"
        folder.mkdir(parents=True, exist_ok=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def env(self) -> dict[str, str]:
        """What a client of this service needs in its environment."""
        return {"RLVITALS_HOME": str(self.home), "RLVITALS_URL": self.url}

    def start(self) -> None:
        command = [str(Path(sys.executable).parent / "rlvitals"), "serve"]
        options = ["--port", str(self.port), "--data", str(self._data)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *options], env={**os.environ, **self.env}, stdout=log, stderr=subprocess.STDOUT
            )
        wait_until(self._answers, f"the service to answer (see {self._log})")

    def kill(self) -> None:
        """``kill -9``: nothing of ours can say goodbye."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()

    def ask(self, path: str, body: object = None) -> Any:
        token = json.loads((self.home / "token.json").read_text())["token"]
        request = urllib.request.Request(
            f"{self.url}/api/v1{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def last_step(self, run: str) -> int | None:
        """None as long as the service does not know the run, or does not answer."""
        try:
            step = self.ask(f"/runs/{run}")["last_step"]
        except (OSError, urllib.error.HTTPError):
            return None
        return None if step is None else int(step)

    def series(self, run: str, metric: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.ask(f"/runs/{run}/series?metric={metric}&limit=5000")[0]
        return found

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()[-2000:]
        try:
            urllib.request.urlopen(f"{self.url}/readyz", timeout=2).close()
        except OSError:
            return False
        return True


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    server = Server(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = DEADLINE_S) -> None:
    """Asks again and again; fails the test when it does not come true in time."""
    pause = threading.Event()
    for _ in range(int(timeout_s / POLL_S)):
        if condition():
            return
        pause.wait(POLL_S)
    raise AssertionError(f"waited {timeout_s:.0f} s for {what}")
