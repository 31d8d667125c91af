"""How numbers, units and untrusted text are written down, in the visitor's language."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from rlvitals.contract.metrics import Family
from rlvitals_dashboard.language import counted, phrase, t

NAN, POS_INF, NEG_INF, MISSING = "NaN", "+Inf", "−Inf", phrase("missing")

_PREFIXES = ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))
"""From this size on, divided by this, with this letter."""
_UNITS = {
    "1": "",
    "nat": "nat",
    "s": "s",
    "By": "B",
    "{token}": phrase("tokens"),
    "{completion}": phrase("completions"),
    "{sequence}": phrase("sequences"),
    "{char}": phrase("characters"),
    "{sequence}/1000": phrase("per 1,000 tokens"),
    "{char}/1000": phrase("per 1,000 tokens"),
    "{value}": phrase("values"),
    "{parameter}": phrase("parameters"),
    "{function}": phrase("reward functions"),
    "{step}": phrase("steps"),
    "{record}": phrase("records"),
    "{error}": phrase("errors"),
}

FAMILIES = {
    Family.TEXT: phrase("Text health"),
    Family.LENGTH: phrase("Length"),
    Family.REWARD: phrase("Reward and groups"),
    Family.COMPONENT: phrase("Reward components"),
    Family.KL: phrase("KL to the reference"),
    Family.RATIO: phrase("Importance ratio"),
    Family.CORRECTION: phrase("Importance correction"),
    Family.POLICY: phrase("Policy"),
    Family.CRITIC: phrase("Critic"),
    Family.GRADIENT: phrase("Gradient"),
    Family.NUMERICS: phrase("Numerics"),
    Family.GUARD: phrase("Guards"),
    Family.PROGRESS: phrase("Progress"),
    Family.SELF: phrase("RL Vitals itself"),
}


def number(value: float | None) -> str:
    """Four significant digits; NaN, +Inf, −Inf and missing are four different words."""
    if value is None:
        return t(MISSING)
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
    known = _UNITS.get(code)
    return t(known) if known else "" if code in _UNITS else code


def plural(count: int, one: str, many: str = "") -> str:
    """``1 run``, ``2 runs``: the catalogue knows it by its second form, ``{count} runs``."""
    return counted(count, f"{{count}} {one}", f"{{count}} {many or one + 's'}")


def duration(seconds: float) -> str:
    """In the two largest units that it has: ``90 s``, ``1 h 30 min``, ``7 days``."""
    if not math.isfinite(seconds):
        return number(seconds)
    whole = round(seconds)
    if whole < 120:
        return t("{seconds} s", seconds=whole)
    minutes = round(whole / 60)
    days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
    if days:
        return plural(days, "day") + (t(" {hours} h", hours=hours) if hours else "")
    if not rest:
        return t("{hours} h", hours=hours)
    return t("{hours} h {minutes} min", hours=hours, minutes=rest) if hours else t("{minutes} min", minutes=rest)


def gpu_hours(hours: float) -> str:
    """To the hundredth where they are few, to the hour where they are many."""
    if not math.isfinite(hours):
        return number(hours)
    if 0 < hours < 0.01:
        return "<0.01"
    return f"{hours:.2f}".rstrip("0").rstrip(".") if hours < 10 else f"{hours:,.{1 if hours < 1000 else 0}f}"


def steps(numbers: tuple[int, ...], most: int = 3) -> str:
    """``step 4`` or ``steps 4, 9, 12 and 5 more``: the latest ones, since these are looked for."""
    shown = ", ".join(f"{n:,}" for n in numbers[-most:])
    rest = len(numbers) - most
    told = t("step {steps}", steps=shown) if len(numbers) == 1 else t("steps {steps}", steps=shown)
    return told + (t(" and {count} earlier", count=rest) if rest > 0 else "")


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
