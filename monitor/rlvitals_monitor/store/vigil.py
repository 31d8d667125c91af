"""Which runs may have stopped talking or stepping, in one cheap look, and what is open of that."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, and_, exists, or_, select

from rlvitals.contract import codec
from rlvitals.contract.alert import Alert, AlertState
from rlvitals.contract.report import Phase
from rlvitals_monitor.store import pulse
from rlvitals_monitor.store.deletion import is_there
from rlvitals_monitor.store.numbers import from_micros, to_micros
from rlvitals_monitor.store.tables import alerts, runs

NEWS_FOR = timedelta(hours=25)
"""A run that has been silent for longer is no news: nothing begins or ends of it until it speaks."""
LAST_WORDS_MAX = 10_000
_OVER = (Phase.FINISHED.value, Phase.FAILED.value)


def suspects(connection: Connection, now: datetime, rules: Collection[str], last: str) -> list[str]:
    """Runs by id of which an alert of ``rules`` may begin or end; behind ``last`` none comes."""
    silent = runs.c.seen_at < to_micros(now - pulse.LATE_AFTER)
    stepless = or_(runs.c.progress_at.is_(None), runs.c.progress_at < to_micros(now - pulse.LATE_STEP_AFTER))
    begins = and_(runs.c.phase.not_in(_OVER), or_(silent, stepless))
    is_lost = and_(silent, exists().where(_firing([last])))
    query = select(runs.c.id).where(
        is_there(),
        runs.c.seen_at > to_micros(now - NEWS_FOR),
        or_(begins, exists().where(_firing(rules))),
        ~is_lost,
    )
    return sorted(connection.scalars(query))


def last_words(connection: Connection, now: datetime) -> tuple[datetime, ...]:
    """When each run that is not over was heard last, the latest first; at most `LAST_WORDS_MAX`."""
    query = select(runs.c.seen_at).where(
        is_there(), runs.c.seen_at > to_micros(now - NEWS_FOR), runs.c.phase.not_in(_OVER)
    )
    found = connection.scalars(query.order_by(runs.c.seen_at.desc()).limit(LAST_WORDS_MAX))
    return tuple(from_micros(at) for at in found)


def open_alerts(connection: Connection, run: str, rules: Collection[str]) -> list[Alert]:
    """Those of ``rules`` that fire on any attempt of the run."""
    query = select(alerts.c.body).where(
        alerts.c.run == run, alerts.c.state == AlertState.FIRING.value, alerts.c.rule.in_(rules)
    )
    return [codec.decode(Alert, body) for body in connection.scalars(query)]


def _firing(rules: Collection[str]) -> ColumnElement[bool]:
    return and_(
        alerts.c.run == runs.c.id, alerts.c.state == AlertState.FIRING.value, alerts.c.rule.in_(list(rules))
    )
