"""Who looks after an alert: a person says so by name, or takes it back. Each has a line in the audit."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from rlvitals.contract.alert import Alert
from rlvitals_monitor.errors import NotFound
from rlvitals_monitor.store import alerts
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.commands import read_subject


def acknowledge(conn: Connection, alert: str, who: str, now: datetime, *, name: str = "") -> Alert:
    """Notes that ``who`` looks after it, or whoever they say by ``name``; the first name stays.

    Raises `NotFound`.
    """
    known = _locked(conn, alert)
    if known.acknowledged_by:
        return known
    noted = alerts.set_acknowledged(conn, known, name or who)
    _audit(conn, noted, who, "acknowledged", f"{_named(noted)} by {noted.acknowledged_by}", now)
    return noted


def unacknowledge(conn: Connection, alert: str, who: str, now: datetime) -> Alert:
    """Nobody looks after it any more. Raises `NotFound`."""
    known = _locked(conn, alert)
    if not known.acknowledged_by:
        return known
    freed = alerts.set_acknowledged(conn, known, "")
    _audit(conn, freed, who, "unacknowledged", f"{_named(freed)}, was {known.acknowledged_by}", now)
    return freed


def _locked(conn: Connection, alert: str) -> Alert:
    """The alert as it is once it is our turn on its run, since whoever judges the run writes its alerts anew."""
    known = alerts.find(conn, alert)
    if known is None:
        raise NotFound(f"there is no alert {alert[:32]!r}")
    read_subject(conn, known.run, lock=True)
    return alerts.find(conn, alert) or known


def _named(alert: Alert) -> str:
    return f"{alert.rule} since step {alert.since_step} ({alert.id})"


def _audit(conn: Connection, alert: Alert, who: str, what: str, detail: str, now: datetime) -> None:
    append_audit(conn, at=now, run=alert.run, command="", who=who, what=what, detail=detail)
