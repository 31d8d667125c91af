"""Offers of every kind, made of a planted command and alert."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from rlvitals.contract.alert import Alert
from rlvitals.contract.report import RunInfo
from rlvitals.contract.view import CommandView
from rlvitals_monitor.links.offer import Offer, weigh
from rlvitals_monitor.store.links import LASTS, Link, LinkAct, fingerprint
from tests.monitor.planted import NOW, a_command, an_alert

RUN = RunInfo(id="r1", name="tiny run", project="demo")
COMMAND = a_command(who="rule:kl_pull_dominates", why="the KL pull dominates")
ON_COMMANDS = (LinkAct.APPROVE, LinkAct.DENY)


def a_link(act: LinkAct, *, of: CommandView | Alert | None = None, **given: object) -> Link:
    """A link to the planted command or alert, or to ``of``."""
    subject = of or (COMMAND if act in ON_COMMANDS else an_alert())
    link = Link(
        act=act,
        subject=subject.id,
        content=fingerprint(subject),
        channel="team",
        created_at=NOW,
        expires_at=NOW + LASTS,
    )
    return replace(link, **given)  # type: ignore[arg-type]


def an_offer(
    act: LinkAct,
    *,
    command: CommandView | None = COMMAND,
    alert: Alert | None = None,
    now: datetime = NOW,
    run: RunInfo = RUN,
    **given: object,
) -> Offer:
    shown = alert or an_alert()
    of = command if act in ON_COMMANDS else shown
    about = command if act in ON_COMMANDS else None
    return weigh(a_link(act, of=of, **given), run, about, shown, now)
