"""A log that somebody else still writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from rlvitals.formats import json_rows, tfevents
from rlvitals.formats.console import Console
from rlvitals.formats.log import LINE_MAX, Format, Log, begun, check_file, is_packed, sniff
from rlvitals.formats.recode import recoded
from rlvitals.formats.row import BadLine, Reader, Row

_BY_APPENDING = (Format.CONSOLE, Format.JSON_LINES, Format.TFEVENTS)


class Growing:
    """One file that somebody else writes. ``rows`` gives what was added since; a file that shrank is read anew."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._format: Format | None = None
        self._file: BinaryIO | None = None
        self._text: BinaryIO | None = None
        self._inode = self._line = self._seen = 0
        self._rest = b""
        self._packed = False
        self._reader: Reader = Console()

    def rows(self) -> Iterator[Row | BadLine]:
        """Raises OSError where it can't be read and ValueError where it is not of its format."""
        try:
            found = self.path.stat()
            check_file(self.path)
        except FileNotFoundError:
            yield from self.drain()
            raise
        if self._file is not None and (found.st_ino != self._inode or found.st_size < self._file.tell()):
            yield from self.drain()
        if self._format is None:
            if not found.st_size or not begun(self.path):
                return
            self._format, self._packed = sniff(self.path), is_packed(self.path)
            self._reader = json_rows.JsonLines() if self._format is Format.JSON_LINES else Console()
        if self._packed or self._format not in _BY_APPENDING:
            yield from self._again(found)
        else:
            yield from self._added(self._opened(found))

    def _added(self, file: BinaryIO) -> Iterator[Row | BadLine]:
        if self._format is Format.TFEVENTS:
            yield from tfevents.rows(file)
        else:
            self._text = self._text or recoded(file)
            yield from self._by_line(self._text)

    def settle(self) -> Iterator[Row | BadLine]:
        """What the reader still holds back for a continuation."""
        if self._file is not None:
            yield from self._reader.end()

    def drain(self) -> Iterator[Row | BadLine]:
        """What an open file still holds, also where its name is gone, with its last line; then closes it."""
        if self._file is not None:
            yield from self._added(self._file)
            if self._rest:
                yield from self._reader.read(self._line + 1, self._rest.decode("utf-8", "backslashreplace"))
            yield from self._reader.end()
        self.close()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file, self._text, self._format, self._rest, self._line, self._seen = None, None, None, b"", 0, 0

    def _opened(self, found: os.stat_result) -> BinaryIO:
        if self._file is None:
            self._file, self._inode = self.path.open("rb"), found.st_ino
        return self._file

    def _by_line(self, file: BinaryIO) -> Iterator[Row | BadLine]:
        while chunk := file.readline(LINE_MAX + 1):
            self._rest += chunk
            if not self._rest.endswith(b"\n") and len(self._rest) <= LINE_MAX:
                return
            self._line += 1
            text, self._rest = self._rest.decode("utf-8", "backslashreplace"), b""
            yield from self._reader.read(self._line, text)

    def _again(self, found: os.stat_result) -> Iterator[Row | BadLine]:
        """For files that are rewritten as a whole: what is new by its number of records."""
        if found.st_mtime_ns == self._inode:
            return
        self._inode = found.st_mtime_ns
        rows = list(Log.of(self.path, self._format).rows())
        yield from rows[self._seen :]
        self._seen = len(rows)
