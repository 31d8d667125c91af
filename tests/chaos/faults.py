"""What goes wrong in a round: chosen by its seed alone, so that one round can be run again by itself."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass

from tests.chaos.cluster import Cluster, Server, copy_journals

REPLAY = "replay old journals"
KINDS = (
    "kill a collector",
    "kill a worker",
    "restart PostgreSQL",
    "fill the database's disk",
    "cut trainers off",
    "cut a collector off the database",
    "slow the network",
    "hold the network",
    "kill trainers",
    REPLAY,
)
FAULTS_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Faults in their order, how long each lasts, and a generator for whom they hit."""

    kinds: tuple[str, ...]
    lasting_s: tuple[float, ...]
    chance: random.Random


def plan(seed: int, longest_s: float) -> Plan:
    chance = random.Random(seed)
    kinds = tuple(chance.sample(KINDS, chance.randint(1, FAULTS_MAX)))
    return Plan(kinds=kinds, lasting_s=tuple(chance.uniform(0.3, 1.0) * longest_s for _ in kinds), chance=chance)


def suffer(cluster: Cluster, chosen: Plan, wait: threading.Event) -> None:
    """All faults of the plan begin one after the other, overlap, and are healed in the end."""
    mends: dict[str, Mend] = {}
    for kind, lasting_s in zip(chosen.kinds, chosen.lasting_s, strict=True):
        mends[kind] = _BEGIN[kind](cluster, chosen.chance)
        wait.wait(lasting_s)
    for kind in sorted(mends, key=lambda kind: kind == REPLAY):  # it sends, and waits where nothing gets through
        mends[kind]()


Mend = Callable[[], None]


def _kill_server(cluster: Cluster, chance: random.Random, role: str) -> Mend:
    victim = chance.choice(cluster.of(role))
    victim.kill()
    return victim.start


def _restart_postgres(cluster: Cluster, chance: random.Random) -> Mend:
    cluster.postgres.restart(chance.choice(["fast", "immediate"]))
    return lambda: None


def _fill_disk(cluster: Cluster, _chance: random.Random) -> Mend:
    if not cluster.postgres.small:
        return lambda: None
    cluster.postgres.fill()

    def mend() -> None:
        cluster.postgres.free()
        cluster.postgres.start()

    return mend


def _cut_trainers(cluster: Cluster, _chance: random.Random) -> Mend:
    cluster.front.cut()
    return cluster.front.heal


def _cut_collector(cluster: Cluster, chance: random.Random) -> Mend:
    victim: Server = chance.choice(cluster.of("collector"))
    victim.database.cut()
    return victim.database.heal


def _slow(cluster: Cluster, chance: random.Random) -> Mend:
    ways = [cluster.front, chance.choice(cluster.servers).database]
    for way in ways:
        way.delay_s = chance.uniform(0.02, 0.3)

    def mend() -> None:
        for way in ways:
            way.heal()

    return mend


def _hold(cluster: Cluster, chance: random.Random) -> Mend:
    way = chance.choice([cluster.front, *(server.database for server in cluster.servers)])
    way.hold()
    return way.heal


def _kill_trainers(cluster: Cluster, chance: random.Random) -> Mend:
    victims = chance.sample(cluster.trainers, max(1, len(cluster.trainers) // 5))
    for victim in victims:
        victim.kill()

    def mend() -> None:
        for victim in victims:
            victim.start()

    return mend


def _replay(cluster: Cluster, chance: random.Random) -> Mend:
    """While the trainer that wrote them goes on."""
    victim = chance.choice(cluster.trainers)
    copy = cluster.folder / "replayed"
    copy_journals(victim.spool, copy)

    def mend() -> None:
        cluster.sync(copy)
        shutil.rmtree(copy)

    return mend


_BEGIN: dict[str, Callable[[Cluster, random.Random], Mend]] = {
    "kill a collector": lambda c, r: _kill_server(c, r, "collector"),
    "kill a worker": lambda c, r: _kill_server(c, r, "worker"),
    "restart PostgreSQL": _restart_postgres,
    "fill the database's disk": _fill_disk,
    "cut trainers off": _cut_trainers,
    "cut a collector off the database": _cut_collector,
    "slow the network": _slow,
    "hold the network": _hold,
    "kill trainers": _kill_trainers,
    REPLAY: _replay,
}
