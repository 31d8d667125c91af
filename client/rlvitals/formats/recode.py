"""Logs in UTF-16, as PowerShell writes them with ``>`` and ``Tee-Object``, read as UTF-8."""

from __future__ import annotations

import codecs
import io
from typing import Any, BinaryIO, cast

PEEKED = 64
_BOMS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def encoding_of(head: bytes) -> str:
    """``utf-16-le`` or ``utf-16-be`` by the byte order mark or by every other byte being zero; else empty."""
    for mark, name in _BOMS.items():
        # a log is ASCII for the most part, so that half its bytes are zero
        if head.startswith(mark) and head.count(0) >= len(head) // 4 > 0:
            return name
    head = head[: PEEKED & ~1]
    halves = {"utf-16-le": (head[1::2], head[::2]), "utf-16-be": (head[::2], head[1::2])}
    for name, (zeros, letters) in halves.items():
        if len(zeros) >= 4 and not any(zeros) and all(letter >= 9 for letter in letters):
            return name
    return ""


def recoded(file: BinaryIO) -> BinaryIO:
    """The file itself, or its UTF-16 as UTF-8. What is broken becomes U+FFFD; the file may grow meanwhile."""
    peek = getattr(file, "peek", None)
    name = encoding_of(bytes(peek(PEEKED))[:PEEKED]) if peek is not None else ""
    return cast("BinaryIO", io.BufferedReader(_Recoder(file, name))) if name else file


class _Recoder(io.RawIOBase):
    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder(name)("replace")
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            raw = self._file.read(1 << 15)
            if not raw:
                return 0
            self._rest = self._decoder.decode(raw).encode("utf-8", "replace")
        taken = self._rest[: len(buffer)]
        buffer[: len(taken)] = taken
        self._rest = self._rest[len(taken) :]
        return len(taken)

    def close(self) -> None:
        self._file.close()
        super().close()
