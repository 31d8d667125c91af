"""Adding, inviting, changing and removing people, audited."""

from __future__ import annotations

import unicodedata
from datetime import datetime, timedelta

from sqlalchemy import Connection

from rlvitals.contract.access import AccessKind, Invitation, Role, UserView
from rlvitals_monitor.errors import BadRequest, Conflict, NotFound
from rlvitals_monitor.store import entries, sessions, users
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.entries import Purpose
from rlvitals_monitor.store.users import NAME_CHARS_MAX, User

INVITATION_LASTS = timedelta(hours=72)
RESERVED = frozenset({"local", "service", "stranger", "policy"})
"""Names by which the audit speaks of the service's own parts."""
_ALIKE = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU"})


def check_name(name: str) -> str:
    """The name as it is kept; raises `BadRequest` for one that could be taken for another or cannot be shown."""
    plain = unicodedata.normalize("NFKC", name).strip()
    if not plain or len(plain) > NAME_CHARS_MAX or not plain.isprintable():
        raise BadRequest(f"expected 1 to {NAME_CHARS_MAX} printable characters", field="name")
    if plain.casefold() in RESERVED:
        raise BadRequest(f"the name {plain!r} is the service's own", field="name")
    if "  " in plain or len(_alphabets(plain)) > 1:
        raise BadRequest("expected letters of one alphabet and single spaces: it looks like another", field="name")
    return plain


def _alphabets(name: str) -> set[str]:
    """Those of the name whose letters look alike."""
    return {unicodedata.name(c, "").partition(" ")[0] for c in name if c.isalpha()} & _ALIKE


def add(conn: Connection, name: str, role: Role, by: str, now: datetime) -> Invitation:
    """A person without a password, and the link at which they choose one. Raises `BadRequest`, `Conflict`."""
    plain = check_name(name)
    taken = next((u for u in users.list_users(conn) if u.name.casefold() == plain.casefold()), None)
    if taken is not None:
        raise Conflict(f"there is a user {taken.name!r} already", field="name")
    user = users.add(conn, plain, role, by, now)
    invitation = _invite(conn, user, by, now)
    append_audit(conn, at=now, who=by, what="user added", detail=f"{user.id} {user.name}: {role.value}")
    return invitation


def invite(conn: Connection, user_id: str, by: str, now: datetime) -> Invitation:
    """Another link; older ones are good no more. The password stays until another is chosen."""
    user = find(conn, user_id)
    if user.disabled_at is not None:
        raise Conflict(f"{user.name!r} is disabled; enable them first")
    invitation = _invite(conn, user, by, now)
    append_audit(conn, at=now, who=by, what="user invited", detail=f"{user.id} {user.name}")
    return invitation


def set_role(conn: Connection, user_id: str, role: Role, by: str, now: datetime) -> None:
    user = find(conn, user_id)
    if user.role is not role:
        users.set_role(conn, user_id, role)
        said = f"{user.id} {user.name}: {user.role.value} → {role.value}"
        append_audit(conn, at=now, who=by, what="user's role changed", detail=said)


def set_disabled(conn: Connection, user_id: str, disabled: bool, by: str, now: datetime) -> None:
    """Who is disabled cannot sign in, and is signed out everywhere."""
    user = find(conn, user_id)
    if disabled == (user.disabled_at is not None):
        return
    users.set_disabled(conn, user_id, now if disabled else None)
    if disabled:
        sessions.end_of(conn, AccessKind.USER, user_id, now)
        entries.withdraw(conn, Purpose.INVITATION, user_id, now)
    what = "user disabled" if disabled else "user enabled"
    append_audit(conn, at=now, who=by, what=what, detail=f"{user.id} {user.name}")


def remove(conn: Connection, user_id: str, by: str, now: datetime) -> None:
    user = find(conn, user_id)
    sessions.end_of(conn, AccessKind.USER, user_id, now)
    entries.withdraw(conn, Purpose.INVITATION, user_id, now)
    users.remove(conn, user_id)
    append_audit(conn, at=now, who=by, what="user removed", detail=f"{user.id} {user.name}")


def find(conn: Connection, user_id: str) -> User:
    """Raises `NotFound`."""
    user = users.find(conn, user_id)
    if user is None:
        raise NotFound(f"there is no user {user_id[:64]!r}")
    return user


def view(user: User) -> UserView:
    return UserView(
        id=user.id,
        name=user.name,
        role=user.role,
        created_at=user.created_at,
        created_by=user.created_by,
        invited=user.password is None,
        disabled_at=user.disabled_at,
        seen_at=user.seen_at,
    )


def _invite(conn: Connection, user: User, by: str, now: datetime) -> Invitation:
    entries.withdraw(conn, Purpose.INVITATION, user.id, now)
    secret = entries.make(conn, Purpose.INVITATION, user.id, by, now, INVITATION_LASTS)
    return Invitation(user=view(user), link=entries.PATH + secret, expires_at=now + INVITATION_LASTS)
