"""The demo's child processes (service, trainers), and the little of the REST API that it needs."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

ROOT = Path(__file__).resolve().parent.parent
_LOCKS: list[TextIO] = []
"""Held until the process ends."""
START_S, GRACE_S, ASK_S = 60.0, 15.0, 30.0


class Failed(RuntimeError):
    """The demo cannot go on; the message says what to look at."""


class Child:
    """A process in a session of its own, so that Ctrl-C reaches us first; its output goes to a file."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        env: Mapping[str, str],
        folder: Path,
        goodbye: signal.Signals = signal.SIGINT,
    ) -> None:
        self.name, self.log, self._goodbye = name, folder / f"{name}.log", goodbye
        with self.log.open("wb") as out:
            self._process = subprocess.Popen(
                command, env=dict(env), cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def code(self) -> int | None:
        return self._process.poll()

    def wait(self, timeout_s: float) -> int:
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} did not end in {timeout_s:.0f} s; see {self.log}") from None

    def stop(self) -> None:
        """A word, then patience, then the end."""
        if self.running:
            self._process.send_signal(self._goodbye)
            try:
                self._process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def last_line(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return lines[-1] if lines else ""


class Service:
    """`rlvitals serve` on a database of the demo's own, and its API with the owner's token."""

    def __init__(self, folder: Path, port: int) -> None:
        self.port = port if port and _free(port) else _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.env = _environment(folder, self.url)
        self._home = folder / "home"
        command = [str(Path(sys.executable).parent / "rlvitals"), "serve"]
        options = ["--port", str(self.port), "--data", str(folder / "data")]
        self.child = Child("service", [*command, *options], self.env, folder, goodbye=signal.SIGTERM)

    def wait_until_ready(self) -> None:
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            if not self.child.running:
                raise Failed(f"the service ended at once; see {self.child.log}")
            try:
                urllib.request.urlopen(f"{self.url}/healthz", timeout=2.0).close()
                return
            except OSError:
                time.sleep(0.2)
        raise Failed(f"the service did not answer within {START_S:.0f} s; see {self.child.log}")

    @property
    def token(self) -> str:
        return str(json.loads((self._home / "token.json").read_text())["token"])

    @property
    def login(self) -> str:
        """A link that works once."""
        made = subprocess.run(
            [str(Path(sys.executable).parent / "rlvitals"), "login-link"],
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise Failed(f"no sign-in link: {made.stderr.strip()}")
        return made.stdout.strip()

    def ask(self, path: str, body: object = None) -> Any:
        """GET, or POST with a body. Raises `Failed` with the service's own words."""
        request = urllib.request.Request(
            f"{self.url}/api/v1{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=ASK_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Failed(f"{path}: {error.code} {error.read(500).decode(errors='replace')}") from None
        except OSError as error:
            raise Failed(f"{path}: {error}") from None

    def items(self, path: str) -> list[dict[str, Any]]:
        return list(self.ask(path)["items"])


def fresh_folder() -> Path:
    """``.demo`` without what the last demo left there. Raises `Failed` while another demo uses it."""
    folder, lock = ROOT / ".demo", ROOT / ".cache" / "demo.lock"
    lock.parent.mkdir(exist_ok=True)
    _LOCKS.append(lock.open("w"))
    try:
        fcntl.flock(_LOCKS[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise Failed("another demo is running from this folder; end it first") from None
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return folder


def _environment(folder: Path, url: str) -> dict[str, str]:
    """Nobody's own RL Vitals settings may reach the demo, nor the demo's data theirs."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("RLVITALS_")}
    own = {"HOME": folder / "home", "DATA": folder / "data", "DIR": folder / "spool", "URL": url}
    return inherited | {f"RLVITALS_{name}": str(value) for name, value in own.items()} | {"PYTHONUNBUFFERED": "1"}


def _free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
