"""`rlvitals serve` in a process of its own: its address, its token, its CPU time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

PATIENCE_S = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    url: str
    token: str
    sign_in: str
    pid: int
    client: httpx2.Client

    def post(self, path: str, body: Any) -> Any:
        answer = self.client.post(path, content=json.dumps(body))
        answer.raise_for_status()
        return answer.json()

    def cpu_s(self) -> float:
        """Seconds of processor that it has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def serving(folder: Path, **settings: str) -> Iterator[Served]:
    """On SQLite in ``folder``, or on ``BENCH_DATABASE_URL``."""
    env = {**os.environ, "RLVITALS_HOME": str(folder / "home"), **settings}
    env["RLVITALS_DATABASE_URL"] = os.environ.get("BENCH_DATABASE_URL", "")
    log = folder / "service.log"
    command = [sys.executable, "-m", "rlvitals.cli", "serve", "--port", "0"]
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=env, stdout=out, stderr=subprocess.STDOUT)
    try:
        sign_in = _sign_in(log)
        told = json.loads((folder / "home" / "token.json").read_text())
        headers = {"authorization": f"Bearer {told['token']}", "content-type": "application/json"}
        with httpx2.Client(base_url=told["url"], headers=headers, timeout=60.0) as client:
            yield Served(url=told["url"], token=told["token"], sign_in=sign_in, pid=process.pid, client=client)
    finally:
        process.terminate()
        process.wait(30)


def _sign_in(log: Path) -> str:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        found = re.search(r"sign in:\s+(\S+)", log.read_text())
        if found:
            return found[1]
        time.sleep(0.2)
    raise RuntimeError(log.read_text()[-2000:])
