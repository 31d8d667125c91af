"""Reads incidents from the store: of an attempt, the open ones of all runs, and the whole story of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from rlvitals.contract.alert import Alert, AlertState
from rlvitals.contract.incident import Axis, IncidentStory, IncidentView, axis_of
from rlvitals.contract.report import EventKind
from rlvitals.contract.view import CommandView, ExtremeView, RunView, TextView
from rlvitals_monitor.diagnosis.diagnose import diagnose, one_of_each
from rlvitals_monitor.diagnosis.fired import Fired
from rlvitals_monitor.errors import NotFound
from rlvitals_monitor.incidents.view import Surroundings, unexplained, view_of, witness_words
from rlvitals_monitor.silences.book import noted
from rlvitals_monitor.store import alerts, commands, runs, series, texts

ALERTS_MAX = 500
WITNESS_STEPS = 5
"""A rule that counts steps may fire on one that tells no token."""
TEXTS_SHOWN = 6
COMMANDS_MAX = 200
RUNS_MAX = 200


def of_attempt(
    conn: Connection, run: str, attempt: str | None, now: datetime, known: RunView | None = None
) -> list[IncidentView]:
    """By onset; ``attempt`` None is the newest, ``known`` the run where it was just read. Raises `NotFound`."""
    number, chosen = runs.find_attempt(conn, run, attempt)
    own = _own(conn, run, chosen)
    told = [one for one in map(Fired.of, own) if one is not None]
    view = known or runs.read_run(conn, run, now)
    return _incidents(conn, view, chosen, own, [_witnessed(conn, number, o) for o in told])


def open_ones(conn: Connection, now: datetime) -> list[IncidentView]:
    """Of the `RUNS_MAX` runs whose alerts began last: those that go on, the strongest first, then the newest.

    Their evidence names no tokens: it would be asked for alert by alert, and this is asked for often.
    """
    firing, _ = alerts.page(conn, states=(AlertState.FIRING,), limit=ALERTS_MAX)
    places = list(dict.fromkeys((a.run, a.attempt) for a in firing))[:RUNS_MAX]
    told: list[IncidentView] = []
    for run, attempt in places:
        own = _own(conn, run, attempt)
        known = [one for one in map(Fired.of, own) if one is not None]
        told += [
            one for one in _incidents(conn, runs.read_run(conn, run, now), attempt, own, known) if one.is_open
        ]
    return sorted(told, key=_urgency)


def story(conn: Connection, run: str, attempt: str | None, cause: str, now: datetime) -> IncidentStory:
    """Raises `NotFound`."""
    number, chosen = runs.find_attempt(conn, run, attempt)
    incident = next((one for one in of_attempt(conn, run, chosen, now) if one.cause == cause), None)
    if incident is None:
        raise NotFound(f"attempt {chosen!r} of run {run!r} has no incident {cause[:96]!r}")
    view = runs.read_run(conn, run, now)
    found, _ = alerts.page(conn, run=run, limit=ALERTS_MAX)
    by_id = {alert.id: alert for alert in found}
    own = [by_id[one] for one in incident.alert_ids if one in by_id]
    axis = axis_of(own, _last_step(view, chosen))
    changes = alerts.transitions_of(conn, run, ALERTS_MAX, number)
    guilty, named = _guilty(conn, number, own)
    saved = texts.read_events(conn, run, limit=ALERTS_MAX, kind=EventKind.CHECKPOINT)
    return IncidentStory(
        incident=incident,
        run=view,
        axis=axis,
        alerts=noted(conn, own, now),
        transitions=tuple(one for one in changes if one.alert.id in incident.alert_ids),
        commands=_commands(conn, run, incident, axis),
        checkpoints=tuple(e for e in reversed(saved) if e.attempt == chosen and _within(axis, e.step)),
        texts=guilty,
        named=named,
    )


def _own(conn: Connection, run: str, attempt: str) -> list[Alert]:
    found, _ = alerts.page(conn, run=run, limit=ALERTS_MAX)
    return [alert for alert in found if alert.attempt == attempt]


def _incidents(
    conn: Connection, run: RunView, attempt: str, own: Sequence[Alert], fired: Sequence[Fired]
) -> list[IncidentView]:
    if not fired:
        return []
    known = one_of_each(diagnose(fired))
    around = Surroundings(
        run=run,
        attempt=attempt,
        alerts={alert.id: alert for alert in own},
        saved=tuple(texts.read_events(conn, run.id, limit=ALERTS_MAX, kind=EventKind.CHECKPOINT)),
        stepped_at=runs.last_step_time(conn, run.id, attempt),
    )
    told = [view_of(incident, around) for incident in (*known, *unexplained(fired, known, around.alerts))]
    return sorted(told, key=lambda one: (one.onset_step, -one.severity.rank))


def _witnessed(conn: Connection, attempt_number: int, fired: Fired) -> Fired:
    """With the token at which its metric was extreme, if the run says where."""
    seen = _extreme(conn, attempt_number, fired.metric, fired.fired)
    return fired if seen is None else replace(fired, where=witness_words(seen))


def _extreme(conn: Connection, attempt_number: int, metric: str, step: int) -> ExtremeView | None:
    if not metric:
        return None
    seen = series.read_extremes(conn, attempt_number, metric, step - WITNESS_STEPS, step, 1)
    return seen[0] if seen else None


def _guilty(
    conn: Connection, attempt_number: int, own: Sequence[Alert]
) -> tuple[tuple[TextView, ...], tuple[int, ...]]:
    """What was written as it began: what the evidence names first, then the worst; the named ones' numbers."""
    if not own:
        return (), ()
    onsets = [alert.fired_step for alert in own if alert.fired_step is not None]
    first, last = min(alert.since_step for alert in own) - WITNESS_STEPS, max(onsets, default=own[0].since_step)
    seen = [_extreme(conn, attempt_number, a.metric, a.fired_step) for a in own if a.fired_step is not None]
    places = {(one.step, one.sample) for one in seen if one is not None and one.sample is not None}
    named = [
        text
        for step, sample in sorted(places)
        for text in texts.read_worst(conn, attempt_number, step, step, limit=ALERTS_MAX)
        if text.sample == sample
    ][:TEXTS_SHOWN]
    worst = texts.read_worst(conn, attempt_number, first, last, limit=TEXTS_SHOWN + len(named))
    numbers = tuple(text.number for text in named)
    rest = [text for text in worst if text.number not in numbers]
    return tuple([*named, *rest][:TEXTS_SHOWN]), numbers


def _commands(conn: Connection, run: str, incident: IncidentView, axis: Axis) -> tuple[CommandView, ...]:
    """What was asked for because of its alerts, or applied while it went on; oldest first."""
    found, _ = commands.page(conn, run=run, limit=COMMANDS_MAX)
    ids = set(incident.alert_ids)
    return tuple(c for c in reversed(found) if c.alert_id in ids or (not c.alert_id and _within(axis, c.step)))


def _within(axis: Axis, step: int | None) -> bool:
    return step is not None and axis.first <= step <= axis.last


def _last_step(run: RunView, attempt: str) -> int | None:
    return next((one.last_step for one in run.attempts if one.id == attempt), run.last_step)


def _urgency(one: IncidentView) -> tuple[int, int, float]:
    begun = one.onset_at.timestamp() if one.onset_at is not None else 0.0
    return (-one.severity.rank, 0 if one.unseen else 1, -begun)
