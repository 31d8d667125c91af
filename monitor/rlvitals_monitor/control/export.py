"""Audit lines as JSON lines or as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Protocol

from rlvitals.contract import codec
from rlvitals.contract.view import AuditView

_NAMES = tuple(field.name for field in fields(AuditView))
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Writer(Protocol):
    def head(self) -> str: ...

    def lines(self, lines: Iterable[AuditView]) -> str: ...


class JsonLines:
    """Everything beyond ASCII is escaped, so that no terminal and no editor acts on it."""

    def head(self) -> str:
        return ""

    def lines(self, lines: Iterable[AuditView]) -> str:
        return "".join(codec.dumps(line).decode("ascii") + "\n" for line in lines)


class Csv:
    """RFC 4180. What a spreadsheet would take for a formula begins with an apostrophe."""

    def head(self) -> str:
        return self._rows([_NAMES])

    def lines(self, lines: Iterable[AuditView]) -> str:
        plain: Iterable[Mapping[str, object]] = (codec.encode(line) for line in lines)
        return self._rows([_cell(line[name]) for name in _NAMES] for line in plain)

    @staticmethod
    def _rows(rows: Iterable[Iterable[object]]) -> str:
        written = io.StringIO()
        csv.writer(written).writerows(rows)
        return written.getvalue()


FORMATS: Mapping[str, Callable[[], Writer]] = {"jsonl": JsonLines, "csv": Csv}


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
