"""Trainers, collectors, workers and one database as processes of their own, with a network between them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from rlvitals.contract.command import CommandKind
from rlvitals_monitor.control import mailbox
from rlvitals_monitor.store import tokens
from rlvitals_monitor.store.engine import Store
from tests.chaos import namespaces, trainer
from tests.chaos.disk import Disk
from tests.chaos.members import Server, Trainer
from tests.chaos.namespaces import Namespace
from tests.chaos.network import LOOPBACK, Address, Network, Way, free_port
from tests.chaos.postgres import Postgres, through
from tests.chaos.service import Nursery
from tests.end_to_end.server import wait_until

TWIN = "twin"
"""The run that two trainers share."""
SPOOL_MIB = 32
"""Of a trainer that has a disk of its own for its journals."""


@dataclass(kw_only=True)
class Cluster:
    folder: Path
    postgres: Postgres
    network: Network
    store: Store
    front: Way
    outside: Namespace | None
    nursery: Nursery
    servers: list[Server] = field(default_factory=list)
    trainers: list[Trainer] = field(default_factory=list)
    token: str = ""

    def of(self, role: str) -> list[Server]:
        return [server for server in self.servers if server.role == role]

    def of_run(self, run: str) -> list[Trainer]:
        return [trainer for trainer in self.trainers if trainer.run == run]

    def ask_checkpoint(self, run: str) -> None:
        """Past the service, so that it is asked whatever fails. Raises `ServiceError`."""
        with self.store.begin() as connection:
            now = datetime.now(timezone.utc)
            mailbox.request(connection, run, CommandKind.CHECKPOINT, None, "chaos", "", now)

    def sync(self, spool: Path, patience_s: float = 120.0) -> str:
        """`rlvitals sync` of a spool whose writers are gone: "" where all is stored, else why not."""
        inside = [] if self.outside is None else self.outside.enter
        command = [*inside, str(Path(sys.executable).parent / "rlvitals"), "sync", str(spool)]
        env = {**os.environ, **self.client_env(spool)}
        try:
            done = subprocess.run(command, env=env, capture_output=True, timeout=patience_s, check=False)
        except subprocess.TimeoutExpired as error:
            return f"it took longer than {patience_s:.0f} s: {(error.stderr or b'').decode()}"
        return "" if done.returncode == 0 else f"{done.stdout.decode()}{done.stderr.decode()}"

    def client_env(self, spool: Path) -> dict[str, str]:
        return {
            "RLVITALS_URL": f"http://{self.front.host}:{self.front.port}",
            "NO_PROXY": "*",
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
        machines = [namespaces.make(number) for number in range(collectors + 1)]
        for machine in machines:
            if machine is not None:
                stack.callback(machine.close)
        outside, *inside = machines
        places = [(LOOPBACK if one is None else one.there, free_port()) for one in inside]
        made = Cluster(
            folder=folder,
            postgres=postgres,
            network=network,
            store=store,
            front=network.way(*places, host=LOOPBACK if outside is None else outside.here),
            outside=outside,
            nursery=nursery,
        )
        made.token = tokens.make_token()
        with store.begin() as connection:
            now = datetime.now(timezone.utc)
            tokens.register(connection, made.token, "chaos", {"ingest"}, now)
        for number, (place, one) in enumerate(zip(places, inside, strict=True)):
            made.servers.append(_server(made, f"collector{number}", "collector", place, one, skews))
        for number in range(collectors, collectors + workers):
            place = LOOPBACK, free_port()
            made.servers.append(_server(made, f"worker{number}", "worker", place, None, skews))
        for number in range(trainers):
            disk = None
            if 2 <= number < 2 + max(1, trainers // 5):
                disk = Disk(folder / f"trainer{number}", SPOOL_MIB, mode="700")
                stack.callback(disk.close)
            made.trainers.append(_trainer(made, number, skews, pace_s, disk))
        stack.callback(_kill_all, made)
        for server in made.servers:
            server.start()
        for server in made.servers:
            wait_until(server.answers, f"{server.log} to answer", 180)
        for training in made.trainers:
            training.start()
        yield made


def _server(
    made: Cluster, name: str, role: str, at: Address, namespace: Namespace | None, skews: dict[str, float]
) -> Server:
    way = made.network.way((LOOPBACK, made.postgres.port), host=LOOPBACK if namespace is None else namespace.here)
    env = {
        "RLVITALS_DATABASE_URL": through(made.postgres.url, way.host, way.port),
        "RLVITALS_HOME": str(made.folder / name),
        "RLVITALS_ALLOWED_HOSTS": made.front.host,
    }
    return Server(
        role=role,
        at=at,
        namespace=namespace,
        skew_s=skews.get(name, 0.0),
        env=env,
        log=made.folder / f"{name}.log",
        database=way,
        nursery=made.nursery,
    )


def _trainer(made: Cluster, number: int, skews: dict[str, float], pace_s: float, disk: Disk | None) -> Trainer:
    name = f"trainer{number}"
    spool, ledger = made.folder / name, made.folder / f"{name}.ledger"
    run = TWIN if number < 2 else f"run{number}"
    told = [run, str(ledger), str(pace_s), str(skews.get(name, 0.0)), "" if disk is None else "long texts"]
    inside = [] if made.outside is None else made.outside.enter
    return Trainer(
        command=[*inside, sys.executable, trainer.__file__, *told],
        env=made.client_env(spool),
        log=made.folder / f"{name}.log",
        run=run,
        spool=spool,
        ledger=ledger,
        stacks=ledger.with_suffix(".stacks"),
        disk=disk,
    )


def _kill_all(made: Cluster) -> None:
    for training in made.trainers:
        training.kill()
    for server in made.servers:
        server.kill()


def copy_journals(spool: Path, to: Path) -> None:
    """As they are, but as if nothing of them had ever been sent."""
    shutil.copytree(spool, to, ignore=shutil.ignore_patterns("acked.json*", "lock"))
    for folder in [to, *to.rglob("*")]:
        folder.chmod(0o700 if folder.is_dir() else 0o600)
