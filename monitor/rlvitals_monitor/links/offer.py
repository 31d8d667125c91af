"""What a link still offers: judged from the link and from what it is about as that is now. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from rlvitals.contract.alert import Alert, AlertState
from rlvitals.contract.command import CommandState
from rlvitals.contract.report import RunInfo
from rlvitals.contract.view import CommandView
from rlvitals_monitor.store.links import Link, LinkAct, fingerprint

_OPEN_ALERTS = (AlertState.PENDING, AlertState.FIRING)


class Standing(str, Enum):
    """``over``: what it would act on is decided, ended or gone. ``changed``: it is not what it was."""

    OPEN = "open"
    USED = "used"
    EXPIRED = "expired"
    CHANGED = "changed"
    OVER = "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A link and what it is about: a command with the alert it came from, or an alert. ``reason``: how that ended.

    ``run`` is None where nothing is left of either.
    """

    link: Link
    standing: Standing
    run: RunInfo | None = None
    command: CommandView | None = None
    alert: Alert | None = None
    reason: str = ""


def weigh(
    link: Link, run: RunInfo | None, command: CommandView | None, alert: Alert | None, now: datetime
) -> Offer:
    """Where several things stand in the way, the first of: used, expired, changed, over."""
    subject = command if link.act in (LinkAct.APPROVE, LinkAct.DENY) else alert
    standing, reason = _standing(link, subject, now)
    return Offer(link=link, standing=standing, run=run, command=command, alert=alert, reason=reason)


def _standing(link: Link, subject: CommandView | Alert | None, now: datetime) -> tuple[Standing, str]:
    if link.used_at is not None:
        return Standing.USED, ""
    if link.expires_at <= now:
        return Standing.EXPIRED, ""
    if subject is None or fingerprint(subject) != link.content:
        return Standing.CHANGED, ""
    reason = (
        _end_of_command(subject, now) if isinstance(subject, CommandView) else _end_of_alert(link.act, subject)
    )
    return (Standing.OVER, reason) if reason else (Standing.OPEN, "")


def _end_of_command(command: CommandView, now: datetime) -> str:
    if command.state is not CommandState.PROPOSED:
        by = f" by {command.decided_by}" if command.decided_by else ""
        return f"{command.state.value}{by}"
    return "expired" if command.expires_at <= now else ""


def _end_of_alert(act: LinkAct, alert: Alert) -> str:
    if act is not LinkAct.ACKNOWLEDGE:
        return ""
    if alert.acknowledged_by:
        return f"acknowledged by {alert.acknowledged_by}"
    return "" if alert.state in _OPEN_ALERTS else alert.state.value
