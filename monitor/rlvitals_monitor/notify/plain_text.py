"""Words from outside on their way to people: made plain, cut to a length, numbers told apart. Pure.

Names and texts come from training processes and are not trusted: `plain` takes out what could pose as something
else. A channel's own escaping comes on top.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable

from rlvitals.contract.report import RunInfo

ELLIPSIS = "…"
TITLE_LIMIT = 140
NAME_LIMIT = 80
TEXT_LIMIT = 600
SAMPLE_LIMIT = 400
_BREAK = "\u200b"
# What turns around or hides the text after it.
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_BAD = re.compile(r"[\ufffd\udc80-\udcff]|\\udc[89a-f][0-9a-f]|\\x[89a-f][0-9a-f]")
_BAD_BYTE = re.compile(r"\\udc([89a-f][0-9a-f])")


def run_name(run: RunInfo) -> str:
    """Name and id, since names repeat."""
    return f"{run.name} ({run.id})" if run.name and run.name != run.id else run.id


def number(value: float | None) -> str:
    """NaN, +Inf, -Inf and a missing value are four different things to say."""
    if value is None:
        return "missing"
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return f"{value:.6g}"


def plain(text: str, limit: int) -> str:
    """One run of visible text: no control or direction characters, no mention, no address that becomes a link."""
    visible = "".join(_shown(c) for c in text[: limit * 4])
    quiet = " ".join(visible.split()).replace("://", f":{_BREAK}//").replace("@", f"@{_BREAK}")
    return clip(quiet, characters=limit)


def spelt(text: str, limit: int) -> str:
    """The part of a completion to look at, on one line: nothing of it acts, and nothing of it is hidden.

    Bad bytes are ``\\xNN``, invisible and turning characters their escapes, line breaks ``\\n``. A long one begins
    shortly before its first bad byte.
    """
    bad = _BAD.search(text)
    first = max(bad.start() - limit // 2, 0) if bad is not None and bad.start() > limit // 2 else 0
    part = _BAD_BYTE.sub(r"\\x\1", text[first : first + limit * 2])
    shown = "".join(_spelt(c) for c in part).replace("://", f":{_BREAK}//").replace("@", f"@{_BREAK}")
    return clip(f"{ELLIPSIS}{shown}" if first else shown, characters=limit)


def clip(
    text: str, *, characters: int, octets: int | None = None, escape: Callable[[str], str] = lambda c: c
) -> str:
    """The longest escaped start of ``text`` within both limits, cut between characters, never inside an escape."""
    room = characters, octets if octets is not None else characters * 12
    whole = [escape(c) for c in text]
    if _fits("".join(whole), room):
        return "".join(whole)
    kept, used = [], _size(ELLIPSIS)
    for piece in whole:
        used = (used[0] + len(piece), used[1] + len(piece.encode()))
        if used[0] > room[0] or used[1] > room[1]:
            break
        kept.append(piece)
    return "".join(kept) + ELLIPSIS


def _fits(text: str, room: tuple[int, int]) -> bool:
    size = _size(text)
    return size[0] <= room[0] and size[1] <= room[1]


def _size(text: str) -> tuple[int, int]:
    return len(text), len(text.encode())


def _shown(character: str) -> str:
    if character in _BIDI or character == _BREAK:
        return ""
    category = unicodedata.category(character)
    if category == "Cs":
        return "\ufffd"
    return " " if category in ("Cc", "Zl", "Zp") else character


def _spelt(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if character == "\n":
        return "\\n"
    if character == " " or character.isprintable():
        return character
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
