"""Trainers, collectors, workers and one database as processes of their own, with a network between them.

Whoever is killed is killed by ``kill -9``.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from rlvitals.contract.command import CommandKind
from rlvitals_monitor.control import mailbox
from rlvitals_monitor.store import tokens
from rlvitals_monitor.store.engine import Store
from tests.chaos import trainer
from tests.chaos.network import Network, Way, free_port
from tests.chaos.postgres import Postgres, through
from tests.chaos.service import Nursery
from tests.end_to_end.server import wait_until

TWIN = "twin"
"""The run that two trainers share."""


@dataclass(kw_only=True)
class Trainer:
    """One that is killed and started again; ``log`` has what it said, ``ledger`` what it did."""

    run: str
    spool: Path
    ledger: Path
    command: list[str]
    env: dict[str, str]
    log: Path
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

    def close_input(self) -> None:
        """By which a trainer is asked to end."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()


@dataclass(kw_only=True)
class Server:
    """A process of the service; ``database`` is its way to PostgreSQL, ``skew_s`` how wrong its clock is."""

    role: str
    port: int
    skew_s: float
    env: dict[str, str]
    log: Path
    database: Way
    nursery: Nursery
    number: int = 0

    def start(self) -> None:
        self.number = self.nursery.start(self.role, self.port, self.skew_s, self.env, self.log)

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
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=2).close()
        except OSError:
            return False
        return True


@dataclass(kw_only=True)
class Cluster:
    folder: Path
    postgres: Postgres
    network: Network
    store: Store
    front: Way
    nursery: Nursery
    servers: list[Server] = field(default_factory=list)
    trainers: list[Trainer] = field(default_factory=list)
    token: str = ""

    def of(self, role: str) -> list[Server]:
        return [server for server in self.servers if server.role == role]

    def ask_checkpoint(self, run: str) -> None:
        """Past the service, so that it is asked whatever fails. Raises `ServiceError`."""
        with self.store.begin() as connection:
            now = datetime.now(timezone.utc)
            mailbox.request(connection, run, CommandKind.CHECKPOINT, None, "chaos", "", now)

    def sync(self, spool: Path) -> int:
        """`rlvitals sync` of a spool whose writers are gone: 0 where all is stored."""
        command = [str(Path(sys.executable).parent / "rlvitals"), "sync", str(spool)]
        return subprocess.run(
            command, env={**os.environ, **self.client_env(spool)}, capture_output=True, timeout=120, check=False
        ).returncode

    def client_env(self, spool: Path) -> dict[str, str]:
        return {
            "RLVITALS_URL": f"http://127.0.0.1:{self.front.port}",
            "RLVITALS_TOKEN": self.token,
            "RLVITALS_DIR": str(spool),
            "RLVITALS_HOME": str(self.folder / "client"),
            "RLVITALS_TIMEOUT_S": "3",
            "RLVITALS_EXIT_FLUSH_S": "5",
        }


@contextmanager
def cluster(
    folder: Path,
    postgres: Postgres,
    *,
    trainers: int,
    collectors: int,
    workers: int,
    skews: dict[str, float],
    pace_s: float,
) -> Iterator[Cluster]:
    """``skews``: how wrong the clock of a collector or trainer is, by its name, in seconds."""
    with ExitStack() as stack:
        network = Network()
        stack.callback(network.close)
        store = Store(postgres.url)
        stack.callback(store.close)
        store.migrate()
        nursery = Nursery()
        stack.callback(nursery.close)
        ports = [free_port() for _ in range(collectors)]
        made = Cluster(
            folder=folder,
            postgres=postgres,
            network=network,
            store=store,
            front=network.way(*ports),
            nursery=nursery,
        )
        made.token = tokens.make_token()
        with store.begin() as connection:
            now = datetime.now(timezone.utc)
            tokens.register(connection, made.token, "chaos", {"ingest"}, now)
        roles = [("collector", port) for port in ports]
        roles += [("worker", free_port()) for _ in range(workers)]
        for number, (role, port) in enumerate(roles):
            made.servers.append(_server(made, f"{role}{number}", role, port, skews))
        for number in range(trainers):
            made.trainers.append(_trainer(made, number, skews, pace_s))
        stack.callback(_kill_all, made)
        for server in made.servers:
            server.start()
        for server in made.servers:
            wait_until(server.answers, f"{server.log} to answer", 180)
        for one in made.trainers:
            one.start()
        yield made


def _server(made: Cluster, name: str, role: str, port: int, skews: dict[str, float]) -> Server:
    way = made.network.way(made.postgres.port)
    env = {
        "RLVITALS_DATABASE_URL": through(made.postgres.url, way.port),
        "RLVITALS_HOME": str(made.folder / name),
    }
    return Server(
        role=role,
        port=port,
        skew_s=skews.get(name, 0.0),
        env=env,
        log=made.folder / f"{name}.log",
        database=way,
        nursery=made.nursery,
    )


def _trainer(made: Cluster, number: int, skews: dict[str, float], pace_s: float) -> Trainer:
    name = f"trainer{number}"
    spool, ledger = made.folder / name, made.folder / f"{name}.ledger"
    run = TWIN if number < 2 else f"run{number}"
    command = [sys.executable, trainer.__file__, run, str(ledger), str(pace_s), str(skews.get(name, 0.0))]
    env = made.client_env(spool)
    return Trainer(command=command, env=env, log=made.folder / f"{name}.log", run=run, spool=spool, ledger=ledger)


def _kill_all(made: Cluster) -> None:
    for process in (*made.trainers, *made.servers):
        process.kill()


def copy_journals(spool: Path, to: Path) -> None:
    """As they are, but as if nothing of them had ever been sent."""
    shutil.copytree(spool, to, ignore=shutil.ignore_patterns("acked.json*", "lock"))
    for folder in [to, *to.rglob("*")]:
        folder.chmod(0o700 if folder.is_dir() else 0o600)
