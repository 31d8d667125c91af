"""How numbers, units and untrusted text are written down. Pure."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from rlvitals.contract.metrics import Family

NAN, POS_INF, NEG_INF, MISSING = "NaN", "+Inf", "−Inf", "missing"

_PREFIXES = ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))
"""From this size on, divided by this, with this letter."""
_UNITS = {
    "1": "",
    "nat": "nat",
    "s": "s",
    "By": "B",
    "{token}": "tokens",
    "{completion}": "completions",
    "{sequence}": "sequences",
    "{char}": "characters",
    "{sequence}/1000": "per 1,000 tokens",
    "{char}/1000": "per 1,000 tokens",
    "{value}": "values",
    "{parameter}": "parameters",
    "{function}": "reward functions",
    "{step}": "steps",
    "{record}": "records",
    "{error}": "errors",
}

FAMILIES = {
    Family.TEXT: "Text health",
    Family.LENGTH: "Length",
    Family.REWARD: "Reward and groups",
    Family.COMPONENT: "Reward components",
    Family.KL: "KL to the reference",
    Family.RATIO: "Importance ratio",
    Family.CORRECTION: "Importance correction",
    Family.POLICY: "Policy",
    Family.CRITIC: "Critic",
    Family.GRADIENT: "Gradient",
    Family.NUMERICS: "Numerics",
    Family.GUARD: "Guards",
    Family.PROGRESS: "Progress",
    Family.SELF: "RL Vitals itself",
}


def number(value: float | None) -> str:
    """Four significant digits; NaN, +Inf, −Inf and missing are four different words."""
    if value is None:
        return MISSING
    if math.isnan(value):
        return NAN
    if math.isinf(value):
        return POS_INF if value > 0 else NEG_INF
    return _finite(value).replace("-", "−", 1) if value < 0 else _finite(value)


def _finite(value: float) -> str:
    size = abs(value)
    if size == 0:
        return "0"
    if size >= 1e15 or size < 1e-4:
        digits, power = f"{value:.2e}".split("e")
        return f"{float(digits):g}e{int(power)}"
    for least, scale, prefix in _PREFIXES:
        if size >= least:
            return f"{value / scale:.4g}{prefix}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.4g}"


def unit(code: str) -> str:
    return _UNITS.get(code, code)


def plural(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def duration(seconds: float) -> str:
    """In the two largest units that it has: ``90 s``, ``1 h 30 min``, ``7 days``."""
    if not math.isfinite(seconds):
        return number(seconds)
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes = round(whole / 60)
    days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
    if days:
        return plural(days, "day") + (f" {hours} h" if hours else "")
    return " ".join(part for part in (f"{hours} h" if hours else "", f"{rest} min" if rest else "") if part)


def steps(numbers: tuple[int, ...], most: int = 3) -> str:
    """``step 4`` or ``steps 4, 9, 12 and 5 more``: the latest ones, since these are looked for."""
    shown = ", ".join(f"{n:,}" for n in numbers[-most:])
    rest = len(numbers) - most
    return f"{'step' if len(numbers) == 1 else 'steps'} {shown}" + (f" and {rest:,} earlier" if rest > 0 else "")


def markup(text: str) -> str:
    """For Plotly, which reads tags and entities in every label: nothing in ``text`` is a tag afterwards."""
    plain = "".join(piece.shown for piece in pieces(text))
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A run of ordinary text (``name`` empty) or one character that is made visible, with its name."""

    shown: str
    name: str = ""


def pieces(text: str) -> Iterator[Piece]:
    """Splits untrusted text at what a reader would not see or should not overlook.

    U+FFFD, controls (but newline and tab), zero-width and direction marks, surrogates, private and unassigned
    code points each become a piece of their own.
    """
    plain: list[str] = []
    for char in text:
        name = _suspicious(char)
        if not name:
            plain.append(char)
            continue
        if plain:
            yield Piece(shown="".join(plain))
            plain = []
        yield Piece(shown="\ufffd" if char == "\ufffd" else f"[{name}]", name=name)
    if plain:
        yield Piece(shown="".join(plain))


def _suspicious(char: str) -> str:
    if char in "\n\t":
        return ""
    if char == "\ufffd" or unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}:
        return f"U+{ord(char):04X}"
    return ""
