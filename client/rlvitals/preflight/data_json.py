"""Elements of one large JSON array, without holding the array: brackets are matched, rows come one by one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rlvitals.preflight.data_lines import LINE_MAX, Line

_OUTSIDE = re.compile(rb'["\[\]{},]')
_INSIDE = re.compile(rb'["\\]')
_SPACE = b" \t\r\n,"


class ElementSplitter:
    """Bytes in, elements out: those of the outermost array, or of the arrays directly inside an outermost object.

    An element beyond `LINE_MAX` comes out cut. Lines are numbered from 1, each element by the line it begins on.
    """

    def __init__(self) -> None:
        self.broken = ""
        self.depth = 0
        self._rows_at = 0
        self._in_string = False
        self._held = b""
        self._begun: int | None = None
        self._skip = 0
        self._cut: tuple[int, int] | None = None
        self._offset, self._line = 0, 1

    def feed(self, chunks: Iterable[bytes]) -> Iterator[Line]:
        for chunk in chunks:
            yield from self._chunk(chunk)
        if self.depth or self._in_string:
            self.broken = "the file ends inside " + ("a string" if self._in_string else "the list")

    def _chunk(self, chunk: bytes) -> Iterator[Line]:
        data = self._held + chunk
        at = len(self._held) + self._skip
        while True:
            match = (_INSIDE if self._in_string else _OUTSIDE).search(data, at)
            if match is None:
                break
            at = match.end()
            if self._in_string:
                if match.group() == b"\\":
                    at += 1
                else:
                    self._in_string = False
                continue
            yield from self._mark(data, match.start(), match.group())
        self._keep(data, at)

    def _mark(self, data: bytes, at: int, mark: bytes) -> Iterator[Line]:
        if mark == b'"':
            self._in_string = True
        elif mark in b"[{":
            self.depth += 1
            if mark == b"[" and not self._rows_at and self.depth <= 2:
                self._rows_at = self.depth
                self._begun = at + 1
        elif self.depth == self._rows_at and self._begun is not None:
            yield from self._element(data, at)
            self._begun = at + 1 if mark == b"," else None
        if mark in b"]}":
            if self.depth == self._rows_at and mark == b"]":
                self._rows_at, self._begun = (0, None) if self.depth > 1 else (self._rows_at, None)
            self.depth = max(0, self.depth - 1)

    def _element(self, data: bytes, end: int) -> Iterator[Line]:
        begun = self._begun or 0
        raw = data[begun:end]
        if self._cut is not None:
            yield Line(*self._cut, b"", True)
        elif raw.strip(_SPACE):
            blank = len(raw) - len(raw.lstrip(_SPACE))
            line = self._line + data.count(b"\n", 0, begun + blank)
            yield Line(line, self._offset + begun + blank, raw.strip(_SPACE))
        self._cut = None

    def _keep(self, data: bytes, at: int) -> None:
        """Holds an open element for the next chunk, from its beginning, unless it grew too long."""
        # a backslash at the very end takes the first byte of the next chunk with it
        self._skip = max(0, at - len(data))
        begun = len(data) if self._begun is None else self._begun
        if len(data) - begun > LINE_MAX:
            self._cut = self._cut or (self._line + data.count(b"\n", 0, begun), self._offset + begun)
            begun = len(data)
        self._line += data.count(b"\n", 0, begun)
        self._offset += begun
        self._held = data[begun:]
        if self._begun is not None:
            self._begun = 0
