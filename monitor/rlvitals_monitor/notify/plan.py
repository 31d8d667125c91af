"""What is to become of a channel's due deliveries: read from the store and decided, without a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from rlvitals.contract.alert import AlertState
from rlvitals.contract.report import RunInfo
from rlvitals_monitor.alerts import liveness
from rlvitals_monitor.notify.channel import Channel
from rlvitals_monitor.notify.grouping import choose
from rlvitals_monitor.notify.inhibition import symptoms
from rlvitals_monitor.notify.weigh import Drop, Send, Wait, Weighed, weigh
from rlvitals_monitor.silences.silence import InForce, Silence
from rlvitals_monitor.store import due as outbox_due
from rlvitals_monitor.store import silences, turns
from rlvitals_monitor.store.contents import heard_lately
from rlvitals_monitor.store.due import Due, Told
from rlvitals_monitor.store.outbox import NEWS
from rlvitals_monitor.store.runs import read_info

LARGEST = 10_000
"""Deliveries in one message."""

FIRING_LIMIT = 200
"""Alerts of a run, the newest, among which a symptom's cause is looked for."""
SYMPTOM_LOOK = timedelta(seconds=60)
"""How often a symptom is looked at again: whether its cause is over, or it is itself."""


@dataclass(frozen=True, slots=True)
class Plan:
    """``chosen`` go into one message, about ``run`` or, where that is None, about several runs."""

    chosen: tuple[str, ...] = ()
    run: str | None = None
    waits: Mapping[Wait, Sequence[str]] | None = None
    drops: Mapping[Drop, Sequence[str]] | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.chosen or self.waits or self.drops)


def plan(conn: Connection, channel: Channel, now: datetime) -> Plan:
    """The next message of the channel and what is to wait or to be dropped; empty when there is nothing to do."""
    runs = outbox_due.due_runs(conn, channel.name, now, liveness.NAMES)
    if not runs:
        return Plan()
    since = now - timedelta(seconds=channel.group_interval_s)
    names = [one.run for one in runs]
    lately = heard_lately(conn, channel.name, names, since) if channel.group_interval_s > 0.0 else {}
    spent = turns.spent(conn, channel.name, now) if channel.budget else 0
    chosen = choose(channel, runs, lately, spent, now)
    if not chosen:
        return Plan()
    found = outbox_due.due(conn, channel.name, now, chosen, LARGEST)
    known = _known(conn, channel, found)
    held = _symptoms(conn, channel, found, chosen[0]) if len(chosen) == 1 else {}
    return _sort_out(_weigh_all(found, known, _silenced(conn, found, now), channel, now), held, now)


def _weigh_all(
    found: Sequence[Due], known: dict[str, Told], silenced: Mapping[str, Silence], channel: Channel, now: datetime
) -> list[tuple[Due, Weighed]]:
    weighed: list[tuple[Due, Weighed]] = []
    for one in found:
        told = known.get(one.alert, Told.NO)
        decided = weigh(one, told, silenced.get(one.alert), channel.quiet, now)
        if one.after is AlertState.FIRING and told is not Told.YES:
            # What becomes of the news is what its recovery, further down, has to know.
            known[one.alert] = {Send: Told.YES, Wait: Told.NOT_YET, Drop: Told.NO}[type(decided)]
        weighed.append((one, decided))
    return weighed


def _sort_out(weighed: Sequence[tuple[Due, Weighed]], symptoms_of: Mapping[str, str], now: datetime) -> Plan:
    """Symptoms of what was told go where something else goes too, and wait where nothing does."""
    going = [one for one, decided in weighed if isinstance(decided, Send)]
    waits: dict[Wait, list[str]] = {}
    drops: dict[Drop, list[str]] = {}
    for one, decided in weighed:
        if isinstance(decided, Wait):
            waits.setdefault(decided, []).append(one.id)
        elif isinstance(decided, Drop):
            drops.setdefault(decided, []).append(one.id)
    causes = {one.id: symptoms_of[one.alert] for one in going if _is_news(one) and one.alert in symptoms_of}
    if len(causes) == len(going):
        until, going = now + SYMPTOM_LOOK, []
        for key, cause in causes.items():
            wait = Wait(until=until, why=f"a symptom of {cause}, which was told", silenced=True)
            waits.setdefault(wait, []).append(key)
    runs = {one.run for one in going}
    run = runs.pop() if len(runs) == 1 else None
    return Plan(chosen=tuple(one.id for one in going), run=run, waits=waits, drops=drops)


def _is_news(one: Due) -> bool:
    return one.after is AlertState.FIRING and one.purpose == NEWS


def _known(conn: Connection, channel: Channel, found: Sequence[Due]) -> dict[str, Told]:
    over = {one.alert for one in found if one.after is AlertState.RESOLVED}
    return outbox_due.told(conn, channel.name, over) if over else {}


def _symptoms(conn: Connection, channel: Channel, found: Sequence[Due], run: str) -> dict[str, str]:
    """Alert → its cause, if the channel knows that; of one run, since a digest tells all."""
    news = {one.alert for one in found if _is_news(one)}
    if not news:
        return {}
    known = outbox_due.read_alerts(conn, news | outbox_due.firing(conn, run, FIRING_LIMIT))
    return symptoms(known.values(), outbox_due.told(conn, channel.name, set(known)))


def _silenced(conn: Connection, found: Sequence[Due], now: datetime) -> dict[str, Silence]:
    """Alert → the silence that is about it."""
    active = silences.active(conn, now)
    if not active:
        return {}
    runs: dict[str, RunInfo] = {run: read_info(conn, run) for run in {one.run for one in found}}
    known = outbox_due.read_alerts(conn, {one.alert for one in found})
    in_force = InForce(active)
    about = {key: in_force.about(alert, runs[alert.run]) for key, alert in known.items()}
    return {key: silence for key, silence in about.items() if silence is not None}
