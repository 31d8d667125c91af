"""What people say of a run: who looks after it, labels, notes, whether it is put away. Each change is audited."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select, update

from rlvitals_monitor.errors import BadRequest
from rlvitals_monitor.store import deletion
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.numbers import to_micros
from rlvitals_monitor.store.runs import no_run
from rlvitals_monitor.store.tables import runs
from rlvitals_monitor.store.words import storable

OWNER_CHARS_MAX = 128
LABEL_CHARS_MAX = 64
LABELS_MAX = 50
NOTES_CHARS_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """None leaves a field as it is. ``add_labels`` and ``remove_labels`` apply after ``labels``."""

    owner: str | None = None
    labels: tuple[str, ...] | None = None
    add_labels: tuple[str, ...] = ()
    remove_labels: tuple[str, ...] = ()
    notes: str | None = None
    archived: bool | None = None


def mark(connection: Connection, run: str, marks: Marks, who: str, now: datetime) -> bool:
    """Whether anything changed: what is as it is wanted is neither written nor audited.

    Raises `NotFound`, `Gone`, and `BadRequest` for more than `LABELS_MAX` labels.
    """
    query = select(runs).where(runs.c.id == run, deletion.is_there()).with_for_update()
    row = connection.execute(query).one_or_none()
    if row is None:
        raise no_run(connection, run)
    changes = _changes(row, marks, now)
    if not changes:
        return False
    values = {name: value for name, (value, _) in changes.items()}
    connection.execute(update(runs).where(runs.c.id == run).values(**values))
    for name, (_, detail) in changes.items():
        append_audit(connection, at=now, run=run, who=who, what=_WHAT[name], detail=detail)
    return True


_WHAT = {
    "owner": "run owner",
    "labels": "run labels",
    "notes": "run notes",
    "archived_at": "run archived",
}


def _changes(row: Row[Any], marks: Marks, now: datetime) -> dict[str, tuple[Any, str]]:
    """Column → its new value, and what the audit says of it."""
    found: dict[str, tuple[Any, str]] = {}
    if marks.owner is not None and (owner := storable(marks.owner.strip(), OWNER_CHARS_MAX)) != row.owner:
        found["owner"] = owner, f"{row.owner or 'nobody'} → {owner or 'nobody'}"
    labels = _labels(row.labels, marks)
    if labels != list(row.labels):
        added, gone = [n for n in labels if n not in row.labels], [n for n in row.labels if n not in labels]
        found["labels"] = labels, ", ".join([*(f"+{name}" for name in added), *(f"-{name}" for name in gone)])
    if marks.notes is not None and (notes := storable(marks.notes, NOTES_CHARS_MAX)) != row.notes:
        found["notes"] = notes, notes
    if marks.archived is not None and marks.archived != (row.archived_at is not None):
        found["archived_at"] = to_micros(now) if marks.archived else None, "yes" if marks.archived else "no"
    return found


def _labels(known: list[str], marks: Marks) -> list[str]:
    """In the order in which they were given, each once."""
    wanted = [*(known if marks.labels is None else marks.labels), *marks.add_labels]
    kept = list(dict.fromkeys(storable(label.strip(), LABEL_CHARS_MAX) for label in wanted))
    labels = [label for label in kept if label and label not in marks.remove_labels]
    if len(labels) > LABELS_MAX:
        raise BadRequest(f"expected at most {LABELS_MAX} labels of one run", field="labels")
    return labels
