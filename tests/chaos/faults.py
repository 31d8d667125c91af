"""What goes wrong in a round: chosen by its seed alone, so that one round can be run again by itself."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass

from tests.chaos.cluster import Cluster, Server, copy_journals
from tests.chaos.namespaces import Namespace
from tests.chaos.network import Way

REPLAY = "replay old journals"
CUT_ALL, CUT_ONE = "cut the trainers' network", "cut a collector's network"
FILL_DATABASE, FILL_TRAINERS = "fill the database's disk", "fill trainers' disks"
REPLAY_S = 10.0
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


def suffer(cluster: Cluster, chosen: Plan, wait: threading.Event) -> list[str]:
    """All faults of the plan begin one after the other, overlap, and are healed in the end.

    Those that were seen to strike: a disk is filled in vain where nobody writes to it meanwhile.
    """
    mends: dict[str, Mend] = {}
    for kind, lasting_s in zip(chosen.kinds, chosen.lasting_s, strict=True):
        mends[kind] = _BEGIN[kind](cluster, chosen.chance)
        wait.wait(lasting_s)
    # a replay sends, and waits where nothing gets through
    return [kind for kind in sorted(mends, key=lambda kind: kind == REPLAY) if mends[kind]()]


def impossible(cluster: Cluster) -> list[str]:
    """Kinds that this system allows nobody to bring about."""
    can = {
        CUT_ALL: cluster.outside is not None,
        CUT_ONE: all(server.namespace is not None for server in cluster.of("collector")),
        FILL_DATABASE: cluster.postgres.disk.small,
        FILL_TRAINERS: any(one.disk is not None and one.disk.small for one in cluster.trainers),
    }
    return [kind for kind, possible in can.items() if not possible]


Mend = Callable[[], bool]


def _kill_server(cluster: Cluster, chance: random.Random, role: str) -> Mend:
    victim = chance.choice(cluster.of(role))
    victim.kill()
    gone = not victim.lives

    def mend() -> bool:
        victim.start()
        return gone

    return mend


def _restart_postgres(cluster: Cluster, chance: random.Random) -> Mend:
    before = cluster.postgres.number()
    cluster.postgres.restart(chance.choice(["fast", "immediate"]))
    return lambda: cluster.postgres.number() != before


def _fill_database(cluster: Cluster, _chance: random.Random) -> Mend:
    before = cluster.postgres.full_times()
    cluster.postgres.disk.fill()

    def mend() -> bool:
        cluster.postgres.disk.free()
        cluster.postgres.start()
        return cluster.postgres.full_times() > before

    return mend


def _fill_trainers(cluster: Cluster, _chance: random.Random) -> Mend:
    victims = [(one, one.disk, one.full_times()) for one in cluster.trainers if one.disk is not None]
    for _, disk, _ in victims:
        disk.fill()

    def mend() -> bool:
        for _, disk, _ in victims:
            disk.free()
        return any(one.full_times() > before for one, _, before in victims)

    return mend


def _cut_connections(way: Way) -> Mend:
    before = way.ended
    way.cut()

    def mend() -> bool:
        way.heal()
        return way.ended > before

    return mend


def _cut_network(namespace: Namespace | None) -> Mend:
    if namespace is None:
        return lambda: False
    namespace.cut()

    def mend() -> bool:
        was = namespace.is_cut
        namespace.heal()
        return was

    return mend


def _cut_collector(cluster: Cluster, chance: random.Random) -> Mend:
    victim: Server = chance.choice(cluster.of("collector"))
    return _cut_connections(victim.database)


def _slow(cluster: Cluster, chance: random.Random) -> Mend:
    ways = [cluster.front, chance.choice(cluster.servers).database]
    before = sum(way.slowed for way in ways)
    for way in ways:
        way.delay_s = chance.uniform(0.02, 0.3)

    def mend() -> bool:
        for way in ways:
            way.heal()
        return sum(way.slowed for way in ways) > before

    return mend


def _hold(cluster: Cluster, chance: random.Random) -> Mend:
    way = chance.choice([cluster.front, *(server.database for server in cluster.servers)])
    before = way.held
    way.hold()

    def mend() -> bool:
        way.heal()
        return way.held > before

    return mend


def _kill_trainers(cluster: Cluster, chance: random.Random) -> Mend:
    victims = chance.sample(cluster.trainers, max(1, len(cluster.trainers) // 5))
    for victim in victims:
        victim.kill()

    def mend() -> bool:
        for victim in victims:
            victim.start()
        return True

    return mend


def _replay(cluster: Cluster, chance: random.Random) -> Mend:
    """While the trainer that wrote them goes on, so that the service may have more of them than the copy."""
    victim = chance.choice(cluster.trainers)
    copy = cluster.folder / "replayed"
    copy_journals(victim.spool, copy)

    def mend() -> bool:
        fault = cluster.sync(copy, REPLAY_S)
        shutil.rmtree(copy)
        return not fault

    return mend


_BEGIN: dict[str, Callable[[Cluster, random.Random], Mend]] = {
    "kill a collector": lambda c, r: _kill_server(c, r, "collector"),
    "kill a worker": lambda c, r: _kill_server(c, r, "worker"),
    "restart PostgreSQL": _restart_postgres,
    FILL_DATABASE: _fill_database,
    FILL_TRAINERS: _fill_trainers,
    CUT_ALL: lambda c, _: _cut_network(c.outside),
    CUT_ONE: lambda c, r: _cut_network(r.choice(c.of("collector")).namespace),
    "end the trainers' connections": lambda c, _: _cut_connections(c.front),
    "end a collector's connections to the database": _cut_collector,
    "slow the network": _slow,
    "hold the network": _hold,
    "kill trainers": _kill_trainers,
    REPLAY: _replay,
}
KINDS = tuple(_BEGIN)
