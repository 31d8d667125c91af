"""Text for a terminal: other people's characters escaped, lines wrapped by their width on the screen."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import TextIO

from rlvitals.screen import escape

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def escaped(text: str) -> str:
    """Controls, format and bidi characters, surrogates and what is no character as escapes; the rest as it is."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(char) if unicodedata.category(char) in _HIDDEN else char for char in text)


def _escape(char: str) -> str:
    known = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return known.get(char) or escape(ord(char))


def width(text: str) -> int:
    """Columns that a text takes: two for wide characters, none for combining marks."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def wrapped(text: str, columns: int) -> Iterator[str]:
    """Lines of at most ``columns``, broken at spaces where there are any."""
    line = ""
    for word in text.split(" "):
        joined = f"{line} {word}" if line else word
        if width(joined) <= columns:
            line = joined
            continue
        if line:
            yield line
        *full, line = _pieces(word, columns)
        yield from full
    yield line


def padded(text: str, columns: int) -> str:
    return text + " " * max(0, columns - width(text))


def coloured(stream: TextIO | None, environment: dict[str, str]) -> bool:
    """Colours only on a terminal, and not for people who asked for none (https://no-color.org)."""
    if stream is None or environment.get("NO_COLOR") or environment.get("TERM") == "dumb":
        return False
    return stream.isatty()


def _pieces(word: str, columns: int) -> Iterator[str]:
    piece, taken = "", 0
    for char in word:
        if taken + _columns(char) > columns and piece:
            yield piece
            piece, taken = "", 0
        piece += char
        taken += _columns(char)
    yield piece


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
