"""Characters that text for training should not hold: found by looking at few bytes of healthy text."""

from __future__ import annotations

import re

from rlvitals.preflight.data_faults import Fault

_PLAIN = bytes([9, 10, *range(0x20, 0x7F)])
_ASTRAL = (b"\xf0", b"\xf1", b"\xf2", b"\xf3", b"\xf4")
_NONCHARACTERS = "\ufdd0-\ufdef\ufffe\uffff"
_NONCHARACTERS_ABOVE = "".join(chr(plane << 16 | low) for plane in range(1, 17) for low in (0xFFFE, 0xFFFF))
_PRIVATE_ABOVE = "\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_CLASSES: dict[Fault, str] = {
    Fault.CONTROL: "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f",
    Fault.CARRIAGE_RETURN: "\r",
    Fault.BOM_INSIDE: "\ufeff",
    Fault.REPLACEMENT: "\ufffd",
    Fault.BIDI: "\u202a-\u202e\u2066-\u2069",
    Fault.NONCHARACTER: _NONCHARACTERS,
    Fault.PRIVATE_USE: "\ue000-\uf8ff",
    Fault.SURROGATE: "\ud800-\udfff",
}
_ABOVE = {Fault.NONCHARACTER: _NONCHARACTERS_ABOVE, Fault.PRIVATE_USE: _PRIVATE_ABOVE}
_ODD_BELOW_ASTRAL = re.compile("[" + "".join(_CLASSES.values()) + "]")
"""Without the planes above, which make a character set of this engine ten times slower."""
_ODD = re.compile("[" + "".join((*_CLASSES.values(), *_ABOVE.values())) + "]")
_CLASS = {fault: re.compile(f"[{chars}{_ABOVE.get(fault, '')}]") for fault, chars in _CLASSES.items()}
_CLOSING = "\u0080-\u00bf\u0152\u0153\u0160\u0161\u017d\u017e\u02c6\u02dc\u2013-\u203a\u20ac\u2122"
_MOJIBAKE_BEGINS = tuple(text.encode() for text in ("Ã", "Â", "â€", "ï»", "锟斤", "烫烫烫", "屯屯屯"))
_MOJIBAKE = re.compile(f"[ÃÂ][\u0080-\u00bf]|â€[{_CLOSING}]|ï»¿|锟斤拷|烫烫烫|屯屯屯")
"""UTF-8 read as Latin-1 or Windows-1252, U+FFFD read as GBK, and MSVC's fill bytes read as GBK."""
_LATEX = {"\x08": "b", "\x0c": "f", "\x0b": "v", "\x07": "a"}


def suspicious(raw: bytes) -> bool:
    """Whether UTF-8 bytes (without their line end) may hold an oddity; False is sure."""
    rest = raw.translate(None, _PLAIN)
    if not rest:
        return False
    # taken together, the bytes that are not plain are still UTF-8: characters lie whole in it
    if _ODD_BELOW_ASTRAL.search(rest.decode("utf-8", "ignore")) is not None:
        return True
    return any(lead in rest for lead in _ASTRAL) or any(begin in rest for begin in _MOJIBAKE_BEGINS)


def oddities(text: str) -> dict[Fault, str]:
    """Each kind of oddity in a text with its first example, as U+XXXX and what follows it."""
    found: dict[Fault, str] = {}
    if _ODD.search(text) is not None:
        for fault, pattern in _CLASS.items():
            match = pattern.search(text)
            if match is not None:
                found[fault] = _example(text, match.start())
    if not text.isascii():
        match = _MOJIBAKE.search(text)
        if match is not None:
            found[Fault.MOJIBAKE] = f"{match.group()!r} in {_around(text, match.start())!r}"
    return found


def _example(text: str, at: int) -> str:
    char = text[at]
    said = f"U+{ord(char):04X} before {text[at + 1 : at + 13]!a}"
    following = text[at + 1 : at + 2]
    if char in _LATEX and following.isalpha():
        return f"{said}: \\{_LATEX[char]}{text[at + 1 : at + 9]} with its backslash not escaped?"
    return said


def _around(text: str, at: int) -> str:
    return text[max(0, at - 8) : at + 12]
