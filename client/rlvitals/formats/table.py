"""Tables of notebooks: ``Step | Training Loss | reward``, by bars, tabs or runs of spaces."""

from __future__ import annotations

import re

from rlvitals.formats.numbers import NOTHING, number, whole
from rlvitals.formats.row import Row

_SPLITS = {"|": re.compile(r"\s*\|\s*"), "\t": re.compile(r"\t")}
_RULE = re.compile(r"[\s|:+=-]+")
_FIRST = re.compile(r"\|?\s*(?:global_)?steps?\s*[|\t]", re.IGNORECASE)
COLUMNS_MAX = 1000


class Table:
    """Remembers the header of the table that is being read."""

    def __init__(self) -> None:
        self._columns: list[str] = []
        self._mark = ""

    def heads(self, text: str) -> bool:
        """Takes ``text`` as a header if its first column is the step, or as the rule below one."""
        if self._columns and _RULE.fullmatch(text):
            return True
        if not _FIRST.match(text.lstrip()):
            self._columns = []
            return False
        for mark in _SPLITS:
            columns = self._split(text, mark)
            if len(columns) > 1 and columns[0].lower() in ("step", "steps", "global_step"):
                self._columns, self._mark = columns[:COLUMNS_MAX], mark
                return True
        self._columns = []
        return False

    def read(self, line: int, source: str, text: str) -> Row | None:
        """A row of the present table, or None."""
        if not self._columns or self._mark not in text:
            return None
        cells = self._split(text, self._mark)
        if len(cells) != len(self._columns):
            return None
        step = whole(number(cells[0]))
        if step is None:
            return None
        named = list(zip(self._columns[1:], cells[1:], strict=True))
        values = {name: value for name, cell in named if (value := number(cell)) is not None}
        missing = tuple(name for name, cell in named if cell.lower() in NOTHING)
        return Row(line=line, step=step, values=values, missing=missing, source=source)

    def _split(self, text: str, mark: str) -> list[str]:
        return (
            [cell.strip() for cell in _SPLITS[mark].split(text.strip().strip("|").strip())] if mark in text else []
        )
