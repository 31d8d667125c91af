"""People who sign in by name and password. Of a password only its hash is here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from rlvitals.contract.access import Role
from rlvitals_monitor.errors import Conflict
from rlvitals_monitor.store.numbers import from_micros, maybe_from_micros, to_micros
from rlvitals_monitor.store.secret import make_id
from rlvitals_monitor.store.tables import users
from rlvitals_monitor.store.words import storable

NAME_CHARS_MAX = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """``password`` is the hash with its parameters, None until the person chose one."""

    id: str
    name: str
    role: Role
    password: str | None
    created_at: datetime
    created_by: str
    disabled_at: datetime | None = None
    seen_at: datetime | None = None


def add(conn: Connection, name: str, role: Role, by: str, now: datetime) -> User:
    """Raises `Conflict` where the name is taken."""
    row = {
        "id": make_id(),
        "name": name,
        "role": role.value,
        "created_at": to_micros(now),
        "created_by": storable(by, 128),
    }
    try:
        with conn.begin_nested():
            conn.execute(insert(users), row)
    except IntegrityError:
        raise Conflict(f"there is a user {name!r} already", field="name") from None
    return User(id=str(row["id"]), name=name, role=role, password=None, created_at=now, created_by=by)


def find(conn: Connection, user_id: str) -> User | None:
    row = conn.execute(select(users).where(users.c.id == user_id)).one_or_none()
    return None if row is None else _user(row)


def find_by_name(conn: Connection, name: str) -> User | None:
    row = conn.execute(select(users).where(users.c.name == name)).one_or_none()
    return None if row is None else _user(row)


def list_users(conn: Connection) -> list[User]:
    return [_user(row) for row in conn.execute(select(users).order_by(users.c.name))]


def is_any(conn: Connection) -> bool:
    return conn.scalar(select(users.c.id).limit(1)) is not None


def set_role(conn: Connection, user_id: str, role: Role) -> None:
    conn.execute(update(users).where(users.c.id == user_id).values(role=role.value))


def set_password(conn: Connection, user_id: str, hashed: str | None) -> None:
    conn.execute(update(users).where(users.c.id == user_id).values(password=hashed))


def set_disabled(conn: Connection, user_id: str, at: datetime | None) -> None:
    micros = None if at is None else to_micros(at)
    conn.execute(update(users).where(users.c.id == user_id).values(disabled_at=micros))


def remove(conn: Connection, user_id: str) -> bool:
    return conn.execute(delete(users).where(users.c.id == user_id)).rowcount == 1


def note_uses(conn: Connection, seen: Mapping[str, datetime]) -> None:
    """When each was last seen; never goes back."""
    for user_id, at in seen.items():
        micros = to_micros(at)
        older = or_(users.c.seen_at.is_(None), users.c.seen_at < micros)
        conn.execute(update(users).where((users.c.id == user_id) & older).values(seen_at=micros))


def _user(row: Row[Any]) -> User:
    return User(
        id=row.id,
        name=row.name,
        role=Role(row.role),
        password=row.password,
        created_at=from_micros(row.created_at),
        created_by=row.created_by,
        disabled_at=maybe_from_micros(row.disabled_at),
        seen_at=maybe_from_micros(row.seen_at),
    )
