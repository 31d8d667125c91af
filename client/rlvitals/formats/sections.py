"""Records under a heading: ``Step 3/100``, then bullets, ``name: value`` lines, or a box of names and numbers.

Also the one-line form of it: ``Step 3 | Loss: 0.5 | Time: 2.1s`` or ``Step 3 | loss:0.5 lr:1e-6``.
"""

from __future__ import annotations

import re

from rlvitals.formats.numbers import number

NAMES_MAX = 1000
"""Names of one section; a log that holds more under one heading is no record."""
_HEADING = re.compile(
    r"\W*(?:global |train(?:ing)? |learning )?(?:step|iteration)\s+(\d{1,18})\s*/\s*\d+\W*", re.IGNORECASE
)
_ENDED = re.compile(
    r"\b(?:train|training|global)[ _]step\s+(\d{1,18})\s*/\s*\d+\s+(?:done|finished|completed)\b", re.IGNORECASE
)
_PIPED = re.compile(r"(?:^|[\s\]])step:?\s+(\d{1,18})(?:\s*/\s*\d+)?\s*\|\s*(?=[A-Za-z])", re.IGNORECASE)
_CELL = re.compile(
    r"\s*(?P<name>[A-Za-z][\w./@()%\[\] -]{0,80}?)\s*[:=]\s*(?P<value>[-+]?(?:[\d.,_]+(?:e[-+]?\d+)?|nan|inf))"
    r"(?P<unit>\s?(?:%|s|ms|[a-z]+/[a-z/]+))?\s*",
    re.IGNORECASE,
)
_TIGHT = re.compile(r"(\S+?)[:=](\S+)")
_BORDER = re.compile(r"[│┃║|]")
_BORDERS = "│┃║|"
_WORDS = ("tep", "teration", "TEP", "TERATION")
"""Parts of a heading's word in the spellings that people use; `_HEADING` itself takes any case."""
_NAME = re.compile(r"[A-Za-z][\w./@()%\[\] -]{0,120}")


def heading(text: str) -> int | None:
    """The step that a line announces, if it does nothing else."""
    if "/" not in text or not any(word in text for word in _WORDS):
        return None
    found = _HEADING.fullmatch(text) or _ENDED.search(text)
    return int(found[1]) if found is not None else None


def piped(text: str) -> tuple[int, dict[str, float]] | None:
    """Step and numbers of ``Step 3 | name: value | …``; None if it is no such line."""
    found = _PIPED.search(text)
    if found is None:
        return None
    values: dict[str, float] = {}
    for part in text[found.end() :].split("|"):
        cell = _CELL.fullmatch(part)
        pairs = [(cell["name"], cell["value"], cell["unit"] or "")] if cell is not None else _tight(part)
        for name, told, unit in pairs:
            value = number(told)
            if value is not None and len(values) < NAMES_MAX:
                values[name] = value / 100 if unit.strip() == "%" else value
    return (int(found[1]), values) if values else None


def boxed(text: str) -> dict[str, float]:
    """Numbers by name of a line whose cells are name and number in turn; empty if it is none."""
    stripped = text.strip()
    if stripped[:1] not in _BORDERS or stripped[-1:] not in _BORDERS:
        return {}
    cells = [cell.strip() for cell in _BORDER.split(stripped)][1:-1]
    if not cells or len(cells) % 2:
        return {}
    named = [(name, number(cell)) for name, cell in zip(cells[::2], cells[1::2], strict=True) if name or cell]
    if not all(_NAME.fullmatch(name) for name, _ in named):
        return {}
    return {name: value for name, value in named if value is not None}


def _tight(part: str) -> list[tuple[str, str, str]]:
    """``name:value name:value``, without a space inside; nothing where the part holds other words."""
    found = [_TIGHT.fullmatch(word) for word in part.split()]
    return [(one[1], one[2], "") for one in found if one is not None] if all(found) else []
