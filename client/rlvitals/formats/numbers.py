"""Numbers as trainers print them: ``nan``, ``-inf``, ``np.float64(2.5)``, ``tensor(0.5, device='cuda:0')``."""

from __future__ import annotations

import re

_PLAIN = r"[-+]?(?:\d[\d_]*\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf(?:inity)?)"
_WRAPPED = re.compile(rf"(?:(?:np|numpy|torch)\.\w+|tensor)\(\s*({_PLAIN})\s*(?:,[^()]*)?\)", re.IGNORECASE)
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_WORDS = {"true": 1.0, "false": 0.0}
NOTHING = frozenset({"none", "null", "n/a", "-", ""})
ENDINGS = frozenset("0123456789._)nNfFyYeE")
"""The last character of whatever `number` takes: a digit, a point, or the end of a word or of a call."""


def number(text: str) -> float | None:
    """The number that ``text`` is, or None. Thousands may be set off by commas; booleans are 1 and 0."""
    try:
        return float(text)
    except ValueError:
        stripped = text.strip()
    found = _WRAPPED.fullmatch(stripped)
    if found is not None:
        return float(found[1])
    if _THOUSANDS.fullmatch(stripped):
        return float(stripped.replace(",", ""))
    return _WORDS.get(stripped.lower())


STEP_MAX = 10**9
"""No run has more steps; what says so is a time stamp or damaged."""


def whole(value: float | None) -> int | None:
    """A step number, or None where it is none."""
    return int(value) if value is not None and 0 <= value <= STEP_MAX else None


def step_of(digits: str | int) -> int | None:
    """The step that digits in a line spell, or None beyond all steps."""
    return whole(float(str(digits)[:20]))
