"""Many runs at once: which ones, in what order, page by page.

Lights, states and rates are derived, so that whoever filters or sorts by one of them has all runs that fit the
rest looked at, at most `SCANNED_MAX` of them, the newest first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, Connection, Row, and_, func, or_, select

from rlvitals.contract.view import Light, RunChoices, RunState, RunView
from rlvitals_monitor.store import deletion, run_views
from rlvitals_monitor.store.numbers import to_micros
from rlvitals_monitor.store.run_views import LIGHT, WHOLE
from rlvitals_monitor.store.tables import runs

SCANNED_MAX = 10_000
LIGHTS = (Light.GREY, Light.GREEN, Light.AMBER, Light.RED)
"""The worst last."""

Key: TypeAlias = tuple[float | str, ...]
Cursor: TypeAlias = tuple[Key | None, str]
"""Where the last run of a page stands in the order, and its id."""


class Archived(str, Enum):
    """Whether runs that were archived are wanted."""

    NO = "no"
    ONLY = "only"
    ANY = "any"


class OrderBy(str, Enum):
    CREATED = "created"
    SEEN = "seen"
    LIGHT = "light"
    NAME = "name"
    PROJECT = "project"
    FRAMEWORK = "framework"
    MODEL = "model"
    OWNER = "owner"
    STEP = "step"
    RATE = "rate"
    KL_COEF = "kl_coef"
    GPU_HOURS = "gpu_hours"
    FIRING = "firing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Runs that lack what they are ordered by come last, either way."""

    by: OrderBy = OrderBy.CREATED
    falling: bool = True


NEWEST = Order()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Empty fields want every run. ``text`` is words, all of which a run's own words must hold, in any case;
    ``labels`` must all be there. ``framework`` may be its name without a version."""

    text: str = ""
    lights: frozenset[Light] = frozenset()
    states: frozenset[RunState] = frozenset()
    projects: frozenset[str] = frozenset()
    frameworks: frozenset[str] = frozenset()
    owner: str = ""
    labels: frozenset[str] = frozenset()
    archived: Archived = Archived.NO
    seen_since: datetime | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the database alone can tell which runs fit."""
        return not (self.text.split() or self.lights or self.states or self.labels)


def list_runs(
    connection: Connection,
    now: datetime,
    wanted: RunFilter | None = None,
    *,
    order: Order = NEWEST,
    after: Cursor | None = None,
    limit: int = 50,
    whole: bool = False,
) -> tuple[list[RunView], Cursor | None]:
    """One page; the cursor leads to the next one and is None on the last. ``whole``: with config and attempts."""
    wanted = wanted or RunFilter()
    query = select(*(WHOLE if whole else LIGHT)).where(deletion.is_there(), *_conditions(wanted))
    query = query.order_by(runs.c.created_at.desc(), runs.c.id.desc())
    if order == NEWEST and wanted.is_plain:
        if after is not None:
            query = query.where(_older(after))
        rows = connection.execute(query.limit(limit + 1)).all()
        found = run_views.views(connection, rows, now, whole=whole)
    else:
        rows = [row for row in connection.execute(query.limit(SCANNED_MAX)) if _says(row, wanted)]
        every = run_views.views(connection, rows, now, whole=whole)
        found = ordered((run for run in every if _fits(run, wanted)), order, after)
    page = found[:limit]
    return page, (_KEYS[order.by](page[-1]), page[-1].id) if len(found) > limit else None


def ordered(found: Iterable[RunView], order: Order, after: Cursor | None = None) -> list[RunView]:
    """Behind ``after`` only; runs of one place are in the order of their ids."""
    key = _KEYS[order.by]
    places = [((known := key(run)) is None, known or (), run.id, run) for run in found]
    places.sort(key=lambda place: place[1:3], reverse=order.falling)
    places.sort(key=lambda place: place[0])
    if after is not None:
        last = after[0] is None, after[0] or (), after[1]
        places = [place for place in places if _is_behind(place[:3], last, order)]
    return [run for *_, run in places]


def read_choices(connection: Connection) -> RunChoices:
    """By what the runs that are not deleted can be told apart."""
    there = deletion.is_there()
    count = select(func.count(), func.count(runs.c.archived_at)).where(there)
    total, archived = connection.execute(count).one()
    labels = {label for told in connection.scalars(select(runs.c.labels).where(there)) for label in told}
    return RunChoices(
        runs=total,
        archived=archived,
        projects=_names(connection, runs.c.project),
        frameworks=_names(connection, runs.c.framework),
        owners=_names(connection, runs.c.owner),
        labels=tuple(sorted(labels)),
    )


def _names(connection: Connection, column: ColumnElement[str]) -> tuple[str, ...]:
    return tuple(sorted(n for n in connection.scalars(select(column).distinct().where(deletion.is_there())) if n))


def _conditions(wanted: RunFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.projects:
        found.append(runs.c.project.in_(wanted.projects))
    if wanted.frameworks:
        of_any_version = (runs.c.framework.startswith(f"{name} ", autoescape=True) for name in wanted.frameworks)
        found.append(or_(runs.c.framework.in_(wanted.frameworks), *of_any_version))
    if wanted.owner:
        found.append(runs.c.owner == wanted.owner)
    if wanted.archived is not Archived.ANY:
        is_archived = runs.c.archived_at.is_not(None)
        found.append(is_archived if wanted.archived is Archived.ONLY else ~is_archived)
    if wanted.seen_since is not None:
        found.append(runs.c.seen_at >= to_micros(wanted.seen_since))
    return found


def _older(after: Cursor) -> ColumnElement[bool]:
    (at,), run = after[0] or (0,), after[1]
    return or_(runs.c.created_at < at, and_(runs.c.created_at == at, runs.c.id < run))


def _says(row: Row[Any], wanted: RunFilter) -> bool:
    if not wanted.labels <= set(row.labels):
        return False
    words = wanted.text.casefold().split()
    if not words:
        return True
    own = (row.id, row.project, row.name, row.framework, row.model, row.owner, *row.tags, *row.labels)
    told = "\n".join(own).casefold()
    return all(word in told for word in words)


def _fits(run: RunView, wanted: RunFilter) -> bool:
    return (not wanted.lights or run.light in wanted.lights) and (not wanted.states or run.state in wanted.states)


def _is_behind(place: tuple[bool, Key, str], last: tuple[bool, Key, str], order: Order) -> bool:
    if place[0] != last[0]:
        return place[0]
    return place[1:] < last[1:] if order.falling else place[1:] > last[1:]


def _number(value: float | None) -> Key | None:
    """NaN is behind +Inf, and what is missing has no place."""
    if value is None:
        return None
    if math.isfinite(value):
        return (0, float(value))
    return (2, 0.0) if math.isnan(value) else (1 if value > 0 else -1, 0.0)


def _word(text: str) -> Key | None:
    return (text.casefold(), text) if text else None


_KEYS: Mapping[OrderBy, Callable[[RunView], Key | None]] = {
    OrderBy.CREATED: lambda run: (to_micros(run.created_at),),
    OrderBy.SEEN: lambda run: (to_micros(run.last_seen_at),),
    OrderBy.LIGHT: lambda run: (LIGHTS.index(run.light), run.critical, run.warnings, to_micros(run.last_seen_at)),
    OrderBy.NAME: lambda run: _word(run.name or run.id),
    OrderBy.PROJECT: lambda run: _word(run.project),
    OrderBy.FRAMEWORK: lambda run: _word(run.framework),
    OrderBy.MODEL: lambda run: _word(run.model),
    OrderBy.OWNER: lambda run: _word(run.owner),
    OrderBy.STEP: lambda run: _number(run.last_step),
    OrderBy.RATE: lambda run: _number(run.steps_per_minute),
    OrderBy.KL_COEF: lambda run: _number(run.kl_coef),
    OrderBy.GPU_HOURS: lambda run: _number(run.gpu_hours),
    OrderBy.FIRING: lambda run: (run.critical, run.warnings, run.firing),
}


_ALWAYS: Mapping[OrderBy, tuple[type, ...]] = {
    OrderBy.CREATED: (int,),
    OrderBy.SEEN: (int,),
    OrderBy.LIGHT: (int, int, int, int),
    OrderBy.FIRING: (int, int, int),
}
"""The keys of what every run has."""
_SOMETIMES: Mapping[OrderBy, tuple[type, ...]] = dict.fromkeys(
    (OrderBy.STEP, OrderBy.RATE, OrderBy.KL_COEF, OrderBy.GPU_HOURS), (int, float)
)


def is_key(told: Sequence[Any], by: OrderBy) -> bool:
    """Whether a cursor's key, which anybody may have written, can be compared with those of this order."""
    kinds = _ALWAYS.get(by) or _SOMETIMES.get(by, (str, str))
    fits = len(told) == len(kinds) and all(type(part) is kind for part, kind in zip(told, kinds, strict=True))
    return fits or (not told and by not in _ALWAYS)
