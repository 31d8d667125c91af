"""A bar of one line on a terminal, and nothing anywhere else."""

from __future__ import annotations

import time
from typing import TextIO

EVERY_S = 0.1


class ProgressBar:
    """``bar(done, total)`` redraws at most ten times a second; `close` wipes the line."""

    def __init__(self, stream: TextIO | None, label: str = "", columns: int = 80) -> None:
        self.label = label
        self._stream = stream if stream is not None and stream.isatty() else None
        self._columns = columns
        self._next_s = 0.0
        self._drawn = False

    def __call__(self, done: int, total: int | None) -> None:
        if self._stream is None or time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + EVERY_S
        self._drawn = True
        self._stream.write(f"\r\x1b[K{self.line(done, total)}")
        self._stream.flush()

    def line(self, done: int, total: int | None) -> str:
        """What is drawn: a bar with a percentage, or a count where the total is not known."""
        if not total:
            return f"{self.label} {done:,}"[: self._columns - 1]
        share = min(1.0, done / total)
        room = max(4, min(40, self._columns - len(self.label) - 8))
        full = round(share * room)
        return f"{self.label} {'█' * full}{'·' * (room - full)} {100 * share:3.0f} %"[: self._columns - 1]

    def close(self) -> None:
        if self._stream is not None and self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._drawn = False
