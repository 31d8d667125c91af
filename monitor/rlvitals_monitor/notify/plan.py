"""What is to become of a channel's due deliveries: read from the store and decided, without a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from rlvitals.contract.alert import Alert, AlertState
from rlvitals.contract.report import RunInfo
from rlvitals_monitor.notify.channel import Channel
from rlvitals_monitor.notify.grouping import choose
from rlvitals_monitor.notify.weigh import Drop, Send, Wait, weigh
from rlvitals_monitor.silences.silence import Silence, covering
from rlvitals_monitor.store import due as outbox_due
from rlvitals_monitor.store import silences, turns
from rlvitals_monitor.store.contents import heard_lately
from rlvitals_monitor.store.due import Due, Told
from rlvitals_monitor.store.runs import read_info

LARGEST = 10_000
"""Deliveries in one message."""


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
    runs = outbox_due.due_runs(conn, channel.name, now)
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
    return _sort_out(found, _known(conn, channel, found), _silenced(conn, found, now), channel, now)


def _sort_out(
    found: Sequence[Due],
    known: dict[str, Told],
    silenced: Mapping[str, Silence],
    channel: Channel,
    now: datetime,
) -> Plan:
    chosen: list[Due] = []
    waits: dict[Wait, list[str]] = {}
    drops: dict[Drop, list[str]] = {}
    for one in found:
        told = known.get(one.alert, Told.NO)
        weighed = weigh(one, told, silenced.get(one.alert), channel.quiet, now)
        if isinstance(weighed, Send):
            chosen.append(one)
        elif isinstance(weighed, Wait):
            waits.setdefault(weighed, []).append(one.id)
        else:
            drops.setdefault(weighed, []).append(one.id)
        if one.after is AlertState.FIRING and told is not Told.YES:
            # What becomes of the news is what its recovery, further down, has to know.
            known[one.alert] = {Send: Told.YES, Wait: Told.NOT_YET, Drop: Told.NO}[type(weighed)]
    runs = {one.run for one in chosen}
    return Plan(
        chosen=tuple(one.id for one in chosen),
        run=runs.pop() if len(runs) == 1 else None,
        waits=waits,
        drops=drops,
    )


def _known(conn: Connection, channel: Channel, found: Sequence[Due]) -> dict[str, Told]:
    over = {one.alert for one in found if one.after is AlertState.RESOLVED}
    return outbox_due.told(conn, channel.name, over) if over else {}


def _silenced(conn: Connection, found: Sequence[Due], now: datetime) -> dict[str, Silence]:
    """Alert → the silence that is about it."""
    active = silences.active(conn, now)
    if not active:
        return {}
    runs: dict[str, RunInfo] = {run: read_info(conn, run) for run in {one.run for one in found}}
    alerts: dict[str, Alert] = outbox_due.read_alerts(conn, {one.alert for one in found})
    about = {key: covering(active, alert, runs[alert.run]) for key, alert in alerts.items()}
    return {key: silence for key, silence in about.items() if silence is not None}
