"""What a reader finds in a log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

SHOWN_MAX = 120


class RowKind(str, Enum):
    """What a row is about. Evaluations and summaries are no training steps."""

    TRAIN = "train"
    ROLLOUT = "rollout"
    PERF = "perf"
    EVAL = "eval"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One logged record. ``line`` is where it begins, counted from 1; ``step`` is None where the log says none.

    ``missing`` names what was logged as null or None. ``source`` is the worker that printed it, "" if unknown.
    """

    line: int
    values: Mapping[str, float]
    step: int | None = None
    kind: RowKind = RowKind.TRAIN
    missing: tuple[str, ...] = field(default=())
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """A record that begins like one and cannot be read: what was expected, and its beginning."""

    line: int
    reason: str
    text: str = ""

    @classmethod
    def of(cls, line: int, reason: str, text: str) -> BadLine:
        return cls(line=line, reason=reason, text=text[:SHOWN_MAX])


Found = Iterable["Row | BadLine"]


class Reader(Protocol):
    """Takes the lines of one log in order."""

    def read(self, line: int, text: str) -> Found:
        """What this line completes; ``line`` counts from 1."""
        ...

    def end(self) -> Found:
        """What still waits for a next line. Reading may go on after it."""
        ...
