"""Where a client took hold of a trainer, as it tells it in events: a table of hooks, one row a place.

What is told comes from another process, so `read_table` takes any payload and keeps what it understands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

HOOKS_MAX = 64
NAME_CHARS_MAX, WORDS_CHARS_MAX = 128, 400


class HookState(str, Enum):
    """``blind`` hooks are patched and have shown nothing for some steps; ``patched`` ones still may."""

    ABSENT = "absent"
    PATCHED = "patched"
    SEEN = "seen"
    BLIND = "blind"
    FAILING = "failing"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookView:
    """One place in a trainer. ``gives`` says what is missing without it, ``why`` why it is not there or fails.

    An ``optional`` hook costs nothing where it is absent. ``seen`` counts what it has shown. Untrusted text.
    """

    hook: str
    target: str
    gives: str
    state: HookState
    why: str = ""
    seen: int = 0
    optional: bool = False

    @property
    def sees(self) -> bool:
        return self.state is HookState.SEEN

    @property
    def is_fault(self) -> bool:
        """Whether somebody should look: it fails, or what it should give is missing. Waiting is no fault."""
        if self.state is HookState.FAILING:
            return True
        return not self.optional and self.state in (HookState.BLIND, HookState.ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class HookTableView:
    """The newest table of one writer of one attempt; ``at`` by the service's clock, ``steps`` as it counted."""

    attempt: str
    writer: str
    at: datetime
    framework: str
    version: str
    step: int | None = None
    steps: int = 0
    hooks: tuple[HookView, ...] = ()

    @property
    def trainer(self) -> str:
        """The trainer and its release, as people say it."""
        return f"{self.framework} {self.version}".strip() or "the trainer"


@dataclass(frozen=True, slots=True, kw_only=True)
class HooksView:
    """What the hooks of one attempt see, in one line; ``advice`` says what to do where something is wrong."""

    run: str
    attempt: str
    well: bool
    summary: str
    advice: str = ""
    tables: tuple[HookTableView, ...] = ()


def read_table(
    payload: Mapping[str, object], *, attempt: str, writer: str, at: datetime, step: int | None = None
) -> HookTableView:
    """A table as an event told it; rows and fields that are none are left out. Never raises."""
    told = payload.get("hooks")
    rows = told if isinstance(told, Sequence) and not isinstance(told, str) else ()
    return HookTableView(
        attempt=attempt,
        writer=writer,
        at=at,
        framework=_text(payload.get("framework"), NAME_CHARS_MAX),
        version=_text(payload.get("version"), NAME_CHARS_MAX),
        step=step,
        steps=_count(payload.get("steps")),
        hooks=tuple(_rows(rows)),
    )


def all_hooks(tables: Iterable[HookTableView]) -> list[HookView]:
    return [hook for table in tables for hook in table.hooks]


def _rows(rows: Iterable[object]) -> Iterable[HookView]:
    for row in list(rows)[:HOOKS_MAX]:
        state = row.get("state") if isinstance(row, Mapping) else None
        if not isinstance(row, Mapping) or not isinstance(state, str) or state not in _STATES:
            continue
        yield HookView(
            hook=_text(row.get("hook"), NAME_CHARS_MAX),
            target=_text(row.get("target"), WORDS_CHARS_MAX),
            gives=_text(row.get("gives"), WORDS_CHARS_MAX),
            state=HookState(state),
            why=_text(row.get("why"), WORDS_CHARS_MAX),
            seen=_count(row.get("seen")),
            optional=row.get("optional") is True,
        )


_STATES = frozenset(state.value for state in HookState)


def _text(value: object, limit: int) -> str:
    return value[:limit] if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0
