"""Records that are pairs in a line: verl's ``step:7 - loss:0.5`` and Megatron's ``lm loss: 1E+00 |``."""

from __future__ import annotations

import re

from rlvitals.formats.numbers import NOTHING, number

VERL = re.compile(r"(?:^|[\s|])step:(\d+) - (?=\S)")
MEGATRON = re.compile(r"(?:^|\s)iteration\s+(\d+)\s*/\s*\d+\s*\|")
SEPARATOR = " - "

Pairs = tuple[dict[str, float], tuple[str, ...], tuple[str, ...]]
"""Numbers by name, names of what was printed as None, pairs that could not be read."""


def verl(body: str) -> Pairs:
    """``name:value - name:value``; a name may hold colons, so the last one counts."""
    return _read(body.strip().split(SEPARATOR))


def megatron(body: str) -> Pairs:
    """``name: value | name: value |``; what is no number (a time) is left out."""
    values, missing, _ = _read([part for part in body.split("|") if part.strip()])
    return values, missing, ()


def _read(parts: list[str]) -> Pairs:
    values: dict[str, float] = {}
    missing: list[str] = []
    unread: list[str] = []
    for part in parts:
        name, _, text = part.rpartition(":")
        # nearly all of a log's numbers: a name, a colon and digits
        try:
            value: float | None = float(text)
        except ValueError:
            name, text = _whole(part, name, text)
            value = number(text)
        name = name.strip()
        if not name:
            unread.append(part.strip())
        elif value is not None:
            values[name] = value
        elif text.strip().lower() in NOTHING and text.strip():
            missing.append(name)
        else:
            unread.append(part.strip())
    return values, tuple(missing), tuple(unread)


def _whole(part: str, name: str, text: str) -> tuple[str, str]:
    """A printed tensor has a colon of its own: ``tensor(nan, device='cuda:0')``."""
    at = part.find(":tensor(")
    return (part[:at], part[at + 1 :]) if at >= 0 else (name, text)
