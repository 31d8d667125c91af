"""Links to one view of one run, for reading, for a while. Only the digests of their secrets are stored."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, or_, select, update

from rlvitals.contract.access import ShareView
from rlvitals_monitor.store.numbers import from_micros, maybe_from_micros, to_micros
from rlvitals_monitor.store.secret import digest, make_id, make_secret
from rlvitals_monitor.store.tables import shares
from rlvitals_monitor.store.words import storable

PATH = "/ui/share/"


def make(
    conn: Connection, run: str, view: str, by: str, now: datetime, expires_at: datetime
) -> tuple[str, ShareView]:
    """(its secret, the share). The run must be there."""
    secret = make_secret()
    share = ShareView(
        id=make_id(),
        run=run,
        view=view,
        created_at=now,
        created_by=storable(by, 128),
        expires_at=expires_at,
        open=now < expires_at,
    )
    row = {
        "id": share.id,
        "digest": digest(secret),
        "run": run,
        "view": view,
        "created_at": to_micros(now),
        "created_by": share.created_by,
        "expires_at": to_micros(expires_at),
    }
    conn.execute(insert(shares), row)
    return secret, share


def find(conn: Connection, secret: str, now: datetime) -> ShareView | None:
    row = conn.execute(select(shares).where(shares.c.digest == digest(secret))).one_or_none()
    return None if row is None else _share(row, now)


def find_by_id(conn: Connection, share_id: str, now: datetime) -> ShareView | None:
    row = conn.execute(select(shares).where(shares.c.id == share_id)).one_or_none()
    return None if row is None else _share(row, now)


def list_shares(conn: Connection, now: datetime, run: str = "") -> list[ShareView]:
    """Of one run or of all, the newest first."""
    query = select(shares).order_by(shares.c.created_at.desc(), shares.c.id)
    return [_share(row, now) for row in conn.execute(query.where(shares.c.run == run) if run else query)]


def revoke(conn: Connection, share_id: str, now: datetime) -> bool:
    """True when it was open until now."""
    at = to_micros(now)
    these = (shares.c.id == share_id) & shares.c.revoked_at.is_(None) & (shares.c.expires_at > at)
    return conn.execute(update(shares).where(these).values(revoked_at=at)).rowcount == 1


def note_uses(conn: Connection, used: Mapping[str, datetime]) -> None:
    """When each was last looked at; never goes back."""
    for share_id, at in used.items():
        micros = to_micros(at)
        older = or_(shares.c.last_used_at.is_(None), shares.c.last_used_at < micros)
        conn.execute(update(shares).where((shares.c.id == share_id) & older).values(last_used_at=micros))


def _share(row: Row[Any], now: datetime) -> ShareView:
    return ShareView(
        id=row.id,
        run=row.run,
        view=row.view,
        created_at=from_micros(row.created_at),
        created_by=row.created_by,
        expires_at=from_micros(row.expires_at),
        open=row.revoked_at is None and to_micros(now) < row.expires_at,
        revoked_at=maybe_from_micros(row.revoked_at),
        last_used_at=maybe_from_micros(row.last_used_at),
    )
