"""Who may steer, as it was chosen while the service runs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from rlvitals.contract.command import Policy
from rlvitals.contract.view import PolicyView
from rlvitals_monitor.store.numbers import from_micros, to_micros
from rlvitals_monitor.store.tables import policies
from rlvitals_monitor.store.words import storable

WHO_LIMIT = 128


def chosen_policies(conn: Connection) -> tuple[PolicyView, ...]:
    rows = conn.execute(select(policies).order_by(policies.c.scope, policies.c.name))
    return tuple(_view(row) for row in rows)


def choose(conn: Connection, scope: str, name: str, policy: Policy, who: str, now: datetime) -> PolicyView:
    """Puts the choice in the place of an earlier one."""
    told = {"policy": policy.value, "changed_at": to_micros(now), "changed_by": storable(who, WHO_LIMIT)}
    here = (policies.c.scope == scope, policies.c.name == name)
    dialect = sqlite if conn.dialect.name == "sqlite" else postgresql
    row = dialect.insert(policies).values(scope=scope, name=name, **told)
    conn.execute(row.on_conflict_do_update(index_elements=["scope", "name"], set_=told))
    return _view(conn.execute(select(policies).where(*here)).one())


def take_back(conn: Connection, scope: str, name: str) -> bool:
    """True if there was a choice."""
    here = (policies.c.scope == scope, policies.c.name == name)
    return conn.execute(delete(policies).where(*here)).rowcount == 1


def _view(row: Row[Any]) -> PolicyView:
    return PolicyView(
        scope=row.scope,
        name=row.name,
        policy=Policy(row.policy),
        chosen=True,
        changed_by=row.changed_by,
        changed_at=from_micros(row.changed_at),
    )
