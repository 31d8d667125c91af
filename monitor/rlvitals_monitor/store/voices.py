"""Who approved which command."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select

from rlvitals.contract.view import Voice
from rlvitals_monitor.store.numbers import from_micros, to_micros
from rlvitals_monitor.store.tables import voices


def add_voice(conn: Connection, command: str, who: str, *, named: bool, at: datetime) -> None:
    """The caller holds the run's row and knows that this voice is a new one."""
    conn.execute(insert(voices).values(command=command, who=who, named=named, at=to_micros(at)))


def take_back_voices(conn: Connection, command: str) -> None:
    """They were for something else than the command is now."""
    conn.execute(delete(voices).where(voices.c.command == command))


def voices_of(conn: Connection, commands: Iterable[str]) -> Mapping[str, tuple[Voice, ...]]:
    """Command → its voices, the first one first."""
    wanted = list(commands)
    if not wanted:
        return {}
    query = select(voices).where(voices.c.command.in_(wanted)).order_by(voices.c.at, voices.c.who)
    found: dict[str, list[Voice]] = defaultdict(list)
    for row in conn.execute(query):
        found[row.command].append(Voice(who=row.who, named=row.named, at=from_micros(row.at)))
    return {command: tuple(heard) for command, heard in found.items()}
