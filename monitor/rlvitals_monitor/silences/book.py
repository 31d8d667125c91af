"""Silences are asked for and ended here, each with a line in the audit; all in the caller's transaction."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy import Connection

from rlvitals.contract.alert import Alert, AlertState, Silenced
from rlvitals.contract.report import RunInfo
from rlvitals.contract.view import SilencePurpose, SilenceView
from rlvitals_monitor.errors import BadRequest, Conflict, NotFound
from rlvitals_monitor.matcher import Matcher
from rlvitals_monitor.silences.hours import Hours
from rlvitals_monitor.silences.silence import AHEAD_MAX, LASTS_MAX, InForce, Silence
from rlvitals_monitor.store import silences
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.runs import read_info

_OPEN = frozenset({AlertState.PENDING, AlertState.FIRING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From when to when: ``lasts_s`` or ``ends_at``. With ``hours``, without an end for as long as may be."""

    starts_at: datetime | None = None
    ends_at: datetime | None = None
    lasts_s: float | None = None
    hours: Hours | None = None

    def fixed(self, now: datetime) -> tuple[datetime, datetime]:
        """Begin and end. Raises `BadRequest` where that is no time, too long, or over."""
        starts = now if self.starts_at is None else max(self.starts_at, now)
        if starts > now + AHEAD_MAX:
            raise BadRequest(f"expected a begin within {AHEAD_MAX.days} days", field="starts_at")
        if self.lasts_s is not None and self.ends_at is not None:
            raise BadRequest("expected one of lasts_s and ends_at", field="ends_at")
        ends = self._end(starts)
        if not starts < ends <= starts + LASTS_MAX:
            raise BadRequest(f"expected an end within {LASTS_MAX.days} days after the begin", field="ends_at")
        return starts, ends

    def _end(self, starts: datetime) -> datetime:
        if self.ends_at is not None:
            return self.ends_at
        if self.lasts_s is None:
            if self.hours is None:
                raise BadRequest("expected lasts_s or ends_at", field="lasts_s")
            return starts + LASTS_MAX
        if not 0 < self.lasts_s <= LASTS_MAX.total_seconds():
            expected = f"expected seconds above 0, at most {LASTS_MAX.total_seconds():.0f}"
            raise BadRequest(f"{expected}, got {self.lasts_s}", field="lasts_s")
        return starts + timedelta(seconds=self.lasts_s)


def ask(
    conn: Connection,
    matchers: Sequence[Matcher],
    span: Span,
    who: str,
    why: str,
    now: datetime,
    purpose: SilencePurpose = SilencePurpose.SILENCE,
) -> Silence:
    """Keeps a new silence. Raises `BadRequest`."""
    starts_at, ends_at = span.fixed(now)
    made = silences.add(
        conn,
        Silence(
            id=secrets.token_hex(8),
            purpose=purpose,
            matchers=tuple(matchers),
            starts_at=starts_at,
            ends_at=ends_at,
            created_at=now,
            who=who,
            why=why,
            hours=span.hours,
        ),
    )
    _audit(conn, made, who, f"{purpose.value} asked for", now)
    return made


def end(conn: Connection, silence: str, who: str, now: datetime) -> Silence:
    """Ends it before its time. Raises `NotFound`, or `Conflict` where it is over already."""
    ended = silences.end(conn, silence, who, now)
    known = silences.find(conn, silence)
    if known is None:
        raise NotFound(f"there is no silence {silence[:32]!r}")
    if not ended:
        by = f" by {known.ended_by}" if known.ended_by else ""
        raise Conflict(f"silence {known.id} ended at {known.ends_at.isoformat()}{by}", field="state")
    _audit(conn, known, who, f"{known.purpose.value} ended", now)
    return known


def view(silence: Silence, now: datetime) -> SilenceView:
    """As people and programs see it at ``now``."""
    on, hours = silence.at(now), silence.hours
    coming = None if hours is None else hours.after(max(now, silence.starts_at))
    return SilenceView(
        id=silence.id,
        purpose=silence.purpose,
        state=silence.state(now),
        match=tuple(str(matcher) for matcher in silence.matchers),
        starts_at=silence.starts_at,
        ends_at=silence.ends_at,
        created_at=silence.created_at,
        who=silence.who,
        why=silence.why,
        ended_by=silence.ended_by,
        cron=hours.cron if hours else "",
        zone=hours.zone if hours else "",
        lasts_s=hours.lasts_s if hours else None,
        now_until=on.ends_at if on else None,
        next_at=coming[0] if coming is not None and coming[0] < silence.ends_at else None,
    )


def noted(conn: Connection, shown: Iterable[Alert], now: datetime) -> tuple[Alert, ...]:
    """Each open alert with the silence that is in force about it, if there is one."""
    found, in_force = tuple(shown), silences.active(conn, now)
    if not in_force:
        return found
    known = InForce(in_force)
    infos = {run: read_info(conn, run) for run in {alert.run for alert in found if alert.state in _OPEN}}
    return tuple(_noted(alert, known, infos.get(alert.run)) for alert in found)


def _noted(alert: Alert, known: InForce, run: RunInfo | None) -> Alert:
    silence = known.about(alert, run) if run is not None and alert.state in _OPEN else None
    if silence is None:
        return alert
    return replace(alert, silenced=Silenced(until=silence.ends_at, who=silence.who, why=silence.why))


def _audit(conn: Connection, silence: Silence, who: str, what: str, now: datetime) -> None:
    match = ", ".join(str(matcher) for matcher in silence.matchers)
    told = f"{silence.id}: {match} until {silence.ends_at:%Y-%m-%d %H:%M} UTC"
    detail = f"{told}: {silence.why}" if silence.why else told
    append_audit(conn, at=now, run="", command="", who=who, what=what, detail=detail)
