"""Reading what a link offers, and doing it once. Whoever may is decided before anything is written."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from rlvitals_monitor.alerts import attention
from rlvitals_monitor.auth import OPERATE, Principal
from rlvitals_monitor.control import mailbox
from rlvitals_monitor.control.bounds import Limits
from rlvitals_monitor.errors import Conflict, NotFound
from rlvitals_monitor.links.offer import Offer, Standing, weigh
from rlvitals_monitor.silences import book
from rlvitals_monitor.silences.book import Span
from rlvitals_monitor.silences.silence import about
from rlvitals_monitor.store import alerts, commands, links, runs
from rlvitals_monitor.store.links import LinkAct, fingerprint

SILENCE_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """Who acts. One without a login has no name of its own and is never counted as a person."""

    who: str
    named: bool


def voice_of(offer: Offer, principal: Principal | None, unnamed: Container[LinkAct]) -> Voice | None:
    """In whose name a link acts: of who is signed in and may operate, else of nobody where that is allowed.

    None where a sign-in is needed first, as always where two people must approve.
    """
    if principal is not None and principal.may(OPERATE):
        return Voice(who=principal.name, named=True)
    act, command = offer.link.act, offer.command
    if act not in unnamed or (act is LinkAct.APPROVE and command is not None and command.persons > 1):
        return None
    return Voice(who=f"a link in {offer.link.channel}", named=False)


def look(conn: Connection, secret: str, now: datetime) -> Offer:
    """What the link offers; changes nothing. Raises `NotFound` for one that is unknown or long forgotten."""
    link = links.find(conn, secret) if links.SECRET.fullmatch(secret) else None
    if link is None:
        raise NotFound("this link is not known here")
    command = alert = None
    if link.act in (LinkAct.APPROVE, LinkAct.DENY):
        command = commands.find(conn, link.subject)
        alert = alerts.find(conn, command.alert_id) if command is not None and command.alert_id else None
    else:
        alert = alerts.find(conn, link.subject)
    run = command.run if command is not None else alert.run if alert is not None else ""
    return weigh(link, runs.read_info(conn, run) if run else None, command, alert, now)


def act(conn: Connection, secret: str, voice: Voice, reason: str, limits: Limits, now: datetime) -> Offer:
    """Does what the link offers and uses it up; all or nothing, in the caller's transaction.

    Raises `NotFound`, or `Conflict` where it offers nothing any more, also because somebody else was quicker.
    """
    offer = look(conn, secret, now)
    if offer.standing is not Standing.OPEN or not links.use(conn, secret, voice.who, now):
        raise Conflict("this link does nothing any more", field="link")
    _do(conn, offer, voice, reason, limits, now)
    return look(conn, secret, now)


def _do(conn: Connection, offer: Offer, voice: Voice, reason: str, limits: Limits, now: datetime) -> None:
    link = offer.link
    if link.act is LinkAct.APPROVE:
        approved = mailbox.approve(conn, link.subject, voice.who, now, None, limits, named=voice.named)
        if fingerprint(approved) != link.content:
            raise Conflict("the command was changed meanwhile", field="link")
    elif link.act is LinkAct.DENY:
        mailbox.deny(conn, link.subject, voice.who, reason, now)
    elif link.act is LinkAct.ACKNOWLEDGE:
        attention.acknowledge(conn, link.subject, voice.who, now)
    elif offer.alert is not None:
        span, why = Span(lasts_s=SILENCE_S), f"by a link in {link.channel}"
        book.ask(conn, about(offer.alert), span, voice.who, why, now)
