"""A trainer and a process of the service, each of which may be killed by ``kill -9`` and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.disk import Disk
from tests.chaos.namespaces import Namespace
from tests.chaos.network import Address, Way
from tests.chaos.service import Nursery
from tests.end_to_end.server import wait_until

DUMPED_S = 5.0


@dataclass(kw_only=True)
class Trainer:
    """One that is killed and started again; ``log`` has what it said, ``ledger`` what it did, ``stacks`` where it
    stood still. ``disk`` is its journals' where they have one."""

    run: str
    spool: Path
    ledger: Path
    stacks: Path
    command: list[str]
    env: dict[str, str]
    log: Path
    disk: Disk | None = None
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, env={**os.environ, **self.env}, stdin=subprocess.PIPE, stdout=log, stderr=log
            )

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.close_input()

    def dump_stacks(self) -> str:
        """Where all its threads are just now; it need not be able to run Python for that."""
        if self.process is None or self.process.poll() is not None:
            return f"it is not there: {self.process and self.process.returncode}"
        size = self.stacks.stat().st_size if self.stacks.exists() else 0
        self.process.send_signal(signal.SIGUSR1)
        with suppress(AssertionError):
            wait_until(lambda: self.stacks.stat().st_size > size, "its stacks", DUMPED_S)
        return self.stacks.read_text()[size:] if self.stacks.exists() else "it had not yet begun"

    def full_times(self) -> int:
        """How often it has said that it cannot write its journal."""
        return self.log.read_text(errors="replace").count("cannot write the spool") if self.log.exists() else 0

    def close_input(self) -> None:
        """By which a trainer is asked to end."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()


@dataclass(kw_only=True)
class Server:
    """A process of the service; ``database`` is its way to PostgreSQL, ``skew_s`` how wrong its clock is. It may
    run in a network of its own."""

    role: str
    at: Address
    namespace: Namespace | None
    skew_s: float
    env: dict[str, str]
    log: Path
    database: Way
    nursery: Nursery
    number: int = 0

    def start(self) -> None:
        inside = "" if self.namespace is None else str(self.namespace.path)
        self.number = self.nursery.start(self.role, self.at, self.skew_s, self.env, self.log, inside)

    def kill(self) -> None:
        if self.lives:
            os.kill(self.number, signal.SIGKILL)
            wait_until(lambda: not self.lives, f"process {self.number} to be gone")

    @property
    def lives(self) -> bool:
        if not self.number:
            return False
        try:
            os.kill(self.number, 0)
        except ProcessLookupError:
            return False
        return True

    def answers(self) -> bool:
        assert self.lives, self.log.read_text()[-2000:]
        try:
            host, port = self.at
            urllib.request.urlopen(f"http://{host}:{port}/healthz", timeout=2).close()
        except OSError:
            return False
        return True
