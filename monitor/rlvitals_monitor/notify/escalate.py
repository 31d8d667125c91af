"""A person has another channel told of an alert, without waiting for that channel's turn."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from rlvitals.contract.alert import Alert, AlertState
from rlvitals_monitor.errors import Conflict, NotFound
from rlvitals_monitor.notify.channel import Channels
from rlvitals_monitor.store import alerts, outbox
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.outbox import ESCALATION, Order


def escalate(conn: Connection, alert: str, channels: Channels, channel: str, who: str, now: datetime) -> Alert:
    """Once for each time that the alert began to fire. Raises `NotFound` and `Conflict`."""
    known = alerts.find(conn, alert)
    if known is None:
        raise NotFound(f"there is no alert {alert[:32]!r}")
    if channels.get(channel) is None:
        names = ", ".join(one.name for one in channels) or "none yet"
        raise NotFound(f"there is no channel {channel[:128]!r}; there are: {names}")
    change = alerts.last_firing(conn, alert)
    if known.state is not AlertState.FIRING or change is None:
        raise Conflict(f"{known.rule} does not fire any more")
    if known.acknowledged_by:
        raise Conflict(f"{known.acknowledged_by} looks after {known.rule}; take that back first")
    is_new = outbox.add(conn, change.id, [Order(channel=channel, due=now, purpose=ESCALATION)]) > 0
    if not is_new and not outbox.hasten(conn, outbox.delivery_id(change.id, channel, ESCALATION), now):
        raise Conflict(f"{channel} was told of {known.rule} already")
    detail = f"{known.rule} since step {known.since_step} ({known.id}) to {channel}"
    append_audit(conn, at=now, run=known.run, command="", who=who, what="escalated", detail=detail)
    return known
