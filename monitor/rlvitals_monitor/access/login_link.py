"""The link that signs the owner in, once: printed at the service's start, and by ``rlvitals login-link``."""

from __future__ import annotations

from datetime import datetime, timedelta

from rlvitals_monitor.errors import NotFound
from rlvitals_monitor.store import entries, tokens
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.entries import Purpose

AT_START = timedelta(hours=24)
ASKED_FOR = timedelta(hours=1)


def make_login_link(store: Store, token: str, by: str, lasts: timedelta, now: datetime) -> str:
    """A path of the service that signs in with what ``token`` may. Raises `NotFound` for a token that is over."""
    with store.begin() as conn:
        info = tokens.find_token(conn, token)
        if info is None or not info.is_valid(now):
            raise NotFound("the token is unknown to this database, or over")
        secret = entries.make(conn, Purpose.TOKEN, info.id, by, now, lasts)
        said = f"for token {info.id} {info.name}, good until {now + lasts:%Y-%m-%d %H:%M} UTC"
        append_audit(conn, at=now, who=by, what="sign-in link made", detail=said)
    return entries.PATH + secret
