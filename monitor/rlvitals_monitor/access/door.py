"""Signing in: by token, by name and password, by a link that works once, by a proxy. All is audited."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NoReturn

from sqlalchemy import Connection

from rlvitals.contract.access import AccessKind
from rlvitals_monitor.access import pace
from rlvitals_monitor.access.pace import COUNTED_MAX, OF_A_SOURCE, OF_AN_ACCOUNT, WINDOW
from rlvitals_monitor.access.password import hash_password, is_right, is_weaker, password_fault
from rlvitals_monitor.access.vouching import Claim
from rlvitals_monitor.auth import Principal
from rlvitals_monitor.errors import BadRequest, Conflict, TooMany, Unauthenticated
from rlvitals_monitor.store import entries, refusals, sessions, tokens, users
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.entries import Entry, Purpose
from rlvitals_monitor.store.users import User
from rlvitals_monitor.store.words import storable

STRANGER = "stranger"
"""Who the audit says it was where nobody was let in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A browser at the door: the address that it comes from, what it says it is, and how long a session lasts."""

    host: str
    agent: str
    lasts: timedelta


def enter_by_token(store: Store, token: str, caller: Caller, now: datetime) -> str:
    """The secret of a new session. Raises `Unauthenticated`, or `TooMany` after many failures from there.

    A token that is right is let in whatever others tried before: it cannot be guessed.
    """
    with store.read() as conn:
        info = tokens.find_token(conn, token)
    if info is None or not info.is_valid(now):
        _refuse(store, "with a token that is unknown or over", caller, (pace.source(caller.host),), now)
    with store.begin() as conn:
        return _start(conn, AccessKind.TOKEN, info.id, info.name, f"with token {info.id}", caller, now)


def enter_by_password(store: Store, name: str, password: str, caller: Caller, now: datetime) -> str:
    """The secret of a new session. Raises `Unauthenticated`, or `TooMany` after many failures for or from them."""
    name = storable(unicodedata.normalize("NFKC", name).strip(), users.NAME_CHARS_MAX)
    sources = (pace.account(name), pace.source(caller.host))
    with store.begin() as conn:
        # Counted before it is looked at, so that many at once are not each the first.
        _keep_pace(conn, sources, now)
        counted = refusals.note(conn, sources, now)
        user = users.find_by_name(conn, name)
    right = is_right(None if user is None else user.password, password)
    if user is None or not right or user.disabled_at is not None:
        with store.begin() as conn:
            _audit_refusal(conn, f"as {name[:64]!r} with a password", caller, now)
        raise Unauthenticated("this name and password do not fit")
    with store.begin() as conn:
        refusals.take_back(conn, counted)
        refusals.forget(conn, pace.account(name))
        if user.password is not None and is_weaker(user.password):
            users.set_password(conn, user.id, hash_password(password))
        return _start(conn, AccessKind.USER, user.id, user.name, "with a password", caller, now)


def find_entry(store: Store, secret: str, caller: Caller, now: datetime) -> tuple[Entry, User | None]:
    """What a link is for; raises `Unauthenticated` for one that is unknown, used or over, `TooMany` as above."""
    with store.read() as conn:
        entry = entries.find(conn, secret)
        user = users.find(conn, entry.subject) if entry and entry.purpose is Purpose.INVITATION else None
    if entry is None or not entry.is_open(now) or (entry.purpose is Purpose.INVITATION and user is None):
        _refuse(store, "by a link that is unknown, used or over", caller, (pace.source(caller.host),), now)
    return entry, user


def enter_by_link(store: Store, secret: str, caller: Caller, now: datetime) -> str:
    """Uses the link of a token's holder up. Raises `Unauthenticated`, also where somebody else was quicker."""
    find_entry(store, secret, caller, now)
    with store.begin() as conn:
        entry = _use(conn, secret, Purpose.TOKEN, now)
        info = tokens.find_token_by_id(conn, entry.subject)
        if info is None or not info.is_valid(now):
            raise Unauthenticated("the token that this link stood for is over")
        return _start(conn, AccessKind.TOKEN, info.id, info.name, "by a link that works once", caller, now)


def enter_by_invitation(store: Store, secret: str, password: str, caller: Caller, now: datetime) -> str:
    """The person chooses a password; sessions that they had end.

    Raises `BadRequest` for a password that may not be one, `Unauthenticated` as `enter_by_link`.
    """
    _, user = find_entry(store, secret, caller, now)
    fault = password_fault(password, "" if user is None else user.name)
    if fault:
        raise BadRequest(fault, field="password")
    hashed = hash_password(password)
    with store.begin() as conn:
        entry = _use(conn, secret, Purpose.INVITATION, now)
        user = users.find(conn, entry.subject)
        if user is None or user.disabled_at is not None:
            raise Unauthenticated("the person whom this link is for is not let in any more")
        users.set_password(conn, user.id, hashed)
        refusals.forget(conn, pace.account(user.name))
        sessions.end_of(conn, AccessKind.USER, user.id, now)
        append_audit(
            conn, at=now, who=user.name, what="password chosen", detail=f"by an invitation of {entry.created_by}"
        )
        return _start(conn, AccessKind.USER, user.id, user.name, "by an invitation", caller, now)


def enter_by_proxy(store: Store, claim: Claim, secret: str, caller: Caller, now: datetime) -> str:
    """Lets in whom a proxy has signed in, as the user of that name.

    Raises `Unauthenticated` where it does not show the secret or names nobody who is known, `TooMany` as above.
    """
    if not claim.is_vouched_for(secret):
        _refuse(store, "by a proxy that does not show its secret", caller, (pace.source(caller.host),), now)
    name = storable(unicodedata.normalize("NFKC", claim.name).strip(), users.NAME_CHARS_MAX)
    with store.begin() as conn:
        user = users.find_by_name(conn, name)
        if user is not None and user.disabled_at is None:
            return _start(conn, AccessKind.USER, user.id, user.name, "by a proxy", caller, now)
        _audit_refusal(conn, f"as {name[:64]!r} by a proxy", caller, now)
    raise Unauthenticated("the proxy names somebody who is not let in here: an admin adds people by their names")


def leave(store: Store, who: Principal, now: datetime) -> None:
    """Ends the session. That of a shared link is nobody's, and no line of the audit."""
    with store.begin() as conn:
        if sessions.end(conn, who.session, now) and who.kind is not AccessKind.SHARE:
            append_audit(conn, at=now, who=who.name, what="signed out", detail=f"session {who.session}")


def replace(store: Store, secret: str, now: datetime) -> None:
    """Ends the session of a browser in which somebody has signed in since. One that is unknown is no matter."""
    with store.begin() as conn:
        session = sessions.find(conn, secret)
        if session is not None and sessions.end(conn, session.id, now):
            detail = f"session {session.id} of {session.kind.value} {session.subject}, by another sign-in"
            append_audit(conn, at=now, who="service", what="session ended", detail=detail)


def _use(conn: Connection, secret: str, purpose: Purpose, now: datetime) -> Entry:
    entry = entries.find(conn, secret)
    if entry is None or entry.purpose is not purpose:
        raise Conflict("this link is for something else")
    if not entries.use(conn, secret, now):
        raise Unauthenticated("this link was used already, or is over")
    return entry


def _start(
    conn: Connection, kind: AccessKind, subject: str, name: str, how: str, caller: Caller, now: datetime
) -> str:
    secret, session = sessions.start(conn, kind, subject, caller.agent, now, now + caller.lasts)
    detail = f"{how} from {caller.host}, session {session.id}"
    append_audit(conn, at=now, who=name, what="signed in", detail=detail)
    return secret


def _refuse(store: Store, how: str, caller: Caller, sources: Iterable[str], now: datetime) -> NoReturn:
    with store.begin() as conn:
        _keep_pace(conn, sources, now)
        refusals.note(conn, sources, now)
        _audit_refusal(conn, how, caller, now)
    raise Unauthenticated(_REFUSALS[how])


_REFUSALS = {
    "with a token that is unknown or over": "this token is unknown, was revoked, or has expired",
    "by a proxy that does not show its secret": "the proxy that named you did not show that it may",
    "by a link that is unknown, used or over": "this link is not known here, was used already, or is over",
}


def _audit_refusal(conn: Connection, how: str, caller: Caller, now: datetime) -> None:
    append_audit(conn, at=now, who=STRANGER, what="sign-in refused", detail=f"{how}, from {caller.host}")


def _keep_pace(conn: Connection, sources: Iterable[str], now: datetime) -> None:
    """Raises `TooMany`."""
    refusals.take_turns(conn, sources)
    wait = 0.0
    for source in sources:
        rule = OF_AN_ACCOUNT if source.startswith("account ") else OF_A_SOURCE
        failures = refusals.recent(conn, source, now - WINDOW, COUNTED_MAX)
        wait = max(wait, pace.wait_s(rule, failures, now))
    if wait > 0:
        raise TooMany("too many sign-ins failed: wait a little, and try again", wait)
