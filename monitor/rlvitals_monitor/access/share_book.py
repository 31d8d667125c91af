"""Making and revoking shared links, and opening one; audited."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from rlvitals.contract.access import AccessKind, MadeShare, ShareView
from rlvitals_monitor.access.door import Caller
from rlvitals_monitor.access.share_scope import VIEW, VIEW_CHARS_MAX
from rlvitals_monitor.errors import BadRequest, Conflict, NotFound
from rlvitals_monitor.store import sessions, shares
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.runs import project_of

LONGEST = timedelta(days=90)


def make(conn: Connection, run: str, wanted: str, lasts: timedelta, by: str, now: datetime) -> MadeShare:
    """Raises `BadRequest` for a view that is none, `NotFound` without the run."""
    if len(wanted) > VIEW_CHARS_MAX or VIEW.fullmatch(wanted) is None:
        raise BadRequest(
            "expected what stands behind the run in its page's address, such as /texts?step=5", field="view"
        )
    if not timedelta(0) < lasts <= LONGEST:
        raise BadRequest(f"expected more than 0 and at most {LONGEST.days * 24} hours", field="hours")
    if project_of(conn, run) is None:
        raise NotFound(f"there is no run {run!r}")
    secret, share = shares.make(conn, run, wanted, by, now, now + lasts)
    said = f"{share.id} until {share.expires_at:%Y-%m-%d %H:%M} UTC"
    append_audit(conn, at=now, run=run, who=by, what="run shared", detail=said)
    return MadeShare(share=share, link=shares.PATH + secret)


def revoke(conn: Connection, share_id: str, by: str, now: datetime) -> None:
    """Whoever looks at it is shown nothing more. Raises `NotFound`, or `Conflict` for one that is over."""
    share = shares.find_by_id(conn, share_id, now)
    if share is None:
        raise NotFound(f"there is no shared link {share_id[:64]!r}")
    if not shares.revoke(conn, share_id, now):
        raise Conflict("this shared link is over already")
    sessions.end_of(conn, AccessKind.SHARE, share_id, now)
    append_audit(conn, at=now, run=share.run, who=by, what="share revoked", detail=share.id)


def enter(conn: Connection, share: ShareView, caller: Caller, now: datetime) -> str:
    """The secret of a session that shows the one run."""
    secret, _ = sessions.start(conn, AccessKind.SHARE, share.id, caller.agent, now, share.expires_at)
    return secret
