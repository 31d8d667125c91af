"""Which KL policy steers a run or a project's runs, and what it remembers of each attempt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, func, or_, select
from sqlalchemy.dialects import postgresql, sqlite

from rlvitals.contract.report import Json, Phase
from rlvitals_monitor.store.deletion import is_there
from rlvitals_monitor.store.numbers import from_micros, to_micros
from rlvitals_monitor.store.tables import alerts, attempts, evaluations, runs, steering, steering_memory
from rlvitals_monitor.store.words import storable

RUN, PROJECT = "run", "project"
SCOPES = (RUN, PROJECT)
NOBODY = "none"
"""Chosen for a run, it keeps the project's policy away from it."""
WHO_LIMIT = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """``settings`` go over the run's own configuration: ``kl_target`` and the like."""

    scope: str
    name: str
    kl_policy: str
    settings: Json = field(default_factory=dict)
    changed_at: datetime
    changed_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """``memory`` and the last ``decision`` of a policy after all steps up to ``step`` of an attempt."""

    kl_policy: str
    step: int
    memory: Json
    decision: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """All steps up to ``judged`` have been judged; the run's last one came at ``progress_at`` by our clock."""

    judged: int
    project: str
    phase: Phase
    progress_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """When an alert fired and, where it has, ended; by step."""

    rule: str
    since_step: int
    fired_step: int
    resolved_step: int | None
    acknowledged: bool


def choose(
    connection: Connection, scope: str, name: str, kl_policy: str, settings: Json, who: str, now: datetime
) -> Choice:
    """The last choice for a name counts. Neither scope nor policy is checked here."""
    row = {
        "scope": scope,
        "name": name,
        "kl_policy": kl_policy,
        "settings": dict(settings),
        "changed_at": to_micros(now),
        "changed_by": storable(who, WHO_LIMIT),
    }
    _upsert(connection, steering, row, ["scope", "name"])
    return Choice(
        scope=scope,
        name=name,
        kl_policy=kl_policy,
        settings=settings,
        changed_at=now,
        changed_by=storable(who, WHO_LIMIT),
    )


def clear(connection: Connection, scope: str, name: str) -> bool:
    """False where nothing was chosen."""
    gone = connection.execute(delete(steering).where(steering.c.scope == scope, steering.c.name == name))
    return gone.rowcount == 1


def choices(connection: Connection) -> tuple[Choice, ...]:
    rows = connection.execute(select(steering).order_by(steering.c.scope, steering.c.name))
    return tuple(_choice(row) for row in rows)


def choice_for(connection: Connection, run: str, project: str) -> Choice | None:
    """The run's own choice, else its project's."""
    rows = connection.execute(select(steering).where(_concerns(run, project))).all()
    found = {row.scope: _choice(row) for row in rows}
    return found.get(RUN) or found.get(PROJECT)


def behind(connection: Connection, limit: int) -> list[tuple[int, str]]:
    """(attempt number, run) of steered runs whose newest attempt has judged steps that its policy has not seen."""
    if connection.scalar(select(steering.c.name).limit(1)) is None:
        return []
    siblings = attempts.alias()
    newest = select(func.max(siblings.c.ordinal)).where(siblings.c.run == runs.c.id).scalar_subquery()
    own = select(steering.c.name).where(steering.c.scope == RUN, steering.c.name == runs.c.id)
    shared = select(steering.c.name).where(steering.c.scope == PROJECT, steering.c.name == runs.c.project)
    owned, sharing = (each.where(steering.c.kl_policy != NOBODY).exists() for each in (own, shared))
    rows = connection.execute(
        select(attempts.c.number, attempts.c.run)
        .join(runs, runs.c.id == attempts.c.run)
        .join(evaluations, evaluations.c.attempt == attempts.c.number)
        .outerjoin(steering_memory, steering_memory.c.attempt == attempts.c.number)
        .where(
            is_there(),
            attempts.c.ordinal == newest,
            or_(steering_memory.c.step.is_(None), steering_memory.c.step < evaluations.c.step),
            or_(owned, and_(~own.exists(), sharing)),
        )
        .order_by(attempts.c.number)
        .limit(limit)
    )
    return [(row.number, row.run) for row in rows]


def newest_attempt(connection: Connection, run: str) -> int | None:
    """The number of a run's newest attempt; None where it has none."""
    query = select(attempts.c.number).where(attempts.c.run == run).order_by(attempts.c.ordinal.desc()).limit(1)
    return connection.scalar(query)


def progress(connection: Connection, attempt_number: int) -> Progress | None:
    """None where no step of the attempt has been judged."""
    row = connection.execute(
        select(evaluations.c.step, runs.c.project, runs.c.phase, runs.c.progress_at)
        .join(attempts, attempts.c.number == evaluations.c.attempt)
        .join(runs, runs.c.id == attempts.c.run)
        .where(evaluations.c.attempt == attempt_number)
    ).one_or_none()
    if row is None:
        return None
    at = None if row.progress_at is None else from_micros(row.progress_at)
    return Progress(judged=row.step, project=row.project, phase=Phase(row.phase), progress_at=at)


def firing(connection: Connection, attempt_number: int, since_step: int | None) -> tuple[Firing, ...]:
    """Alerts of warning or above that fired and did not end before ``since_step``."""
    rows = connection.execute(
        select(alerts.c.rule, alerts.c.since_step, alerts.c.body).where(
            alerts.c.attempt == attempt_number, alerts.c.severity != "info"
        )
    )
    found: list[Firing] = []
    for row in rows:
        fired, ended = row.body.get("fired_step"), row.body.get("resolved_step")
        if fired is None or (ended is not None and since_step is not None and ended <= since_step):
            continue
        found.append(
            Firing(
                rule=row.rule,
                since_step=row.since_step,
                fired_step=fired,
                resolved_step=ended,
                acknowledged=bool(row.body.get("acknowledged_by")),
            )
        )
    return tuple(found)


def find(connection: Connection, attempt_number: int) -> Kept | None:
    query = select(steering_memory).where(steering_memory.c.attempt == attempt_number)
    return _kept(connection.execute(query).one_or_none())


def find_before(connection: Connection, attempt_number: int) -> Kept | None:
    """What was remembered of the newest earlier attempt of the same run that has anything."""
    this = select(attempts.c.run, attempts.c.ordinal).where(attempts.c.number == attempt_number).subquery()
    query = (
        select(steering_memory)
        .join(attempts, attempts.c.number == steering_memory.c.attempt)
        .join(this, this.c.run == attempts.c.run)
        .where(attempts.c.ordinal < this.c.ordinal)
        .order_by(attempts.c.ordinal.desc())
        .limit(1)
    )
    return _kept(connection.execute(query).one_or_none())


def keep(
    connection: Connection,
    attempt_number: int,
    kl_policy: str,
    step: int,
    memory: Mapping[str, object],
    decision: Mapping[str, object],
) -> None:
    """The caller holds the run's lock."""
    row = {
        "attempt": attempt_number,
        "kl_policy": kl_policy,
        "step": step,
        "memory": dict(memory),
        "decision": dict(decision),
    }
    _upsert(connection, steering_memory, row, ["attempt"])


def _concerns(run: str, project: str) -> Any:
    return or_(
        and_(steering.c.scope == RUN, steering.c.name == run),
        and_(steering.c.scope == PROJECT, steering.c.name == project),
    )


def _upsert(connection: Connection, table: Any, row: Mapping[str, object], keys: list[str]) -> None:
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = insert(table).values(row)
    changed = {name: statement.excluded[name] for name in row if name not in keys}
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=changed))


def _choice(row: Row[Any]) -> Choice:
    return Choice(
        scope=row.scope,
        name=row.name,
        kl_policy=row.kl_policy,
        settings=dict(row.settings),
        changed_at=from_micros(row.changed_at),
        changed_by=row.changed_by,
    )


def _kept(row: Row[Any] | None) -> Kept | None:
    if row is None:
        return None
    return Kept(kl_policy=row.kl_policy, step=row.step, memory=row.memory, decision=row.decision)
