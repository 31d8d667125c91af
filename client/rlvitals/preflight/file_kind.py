"""Whether a path is a file that can be read from end to end, and again."""

from __future__ import annotations

import stat
from pathlib import Path

_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class IrregularFileError(OSError):
    """A pipe, a socket or a device: it may never end, never begin, and give what it holds only once."""


def check_regular(path: Path) -> None:
    """Raises IrregularFileError for what is neither a file nor a folder, OSError where nothing is there."""
    mode = path.stat().st_mode
    kind = next((name for holds, name in _KINDS if holds(mode)), "")
    if kind:
        raise IrregularFileError(f"it is {kind}: write what it gives to a file")


def read_regular(path: Path) -> str:
    """The text of a file. Raises OSError, IrregularFileError among them, and UnicodeDecodeError."""
    check_regular(path)
    return path.read_text(encoding="utf-8")
