"""A scenario as a small SVG: the metric's curve, its threshold, and marks where the alert fires. Pure and exact.

The colours stand out from white and from GitHub's dark page alike, so that one picture serves both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from docs.runbook_scenarios import Firing, Origin, Shown
from rlvitals.contract.alert import Severity

WIDTH, HEIGHT = 640, 230
LEFT, RIGHT, TOP, BOTTOM = 64, 626, 76, 198
TEXT, CURVE, LIMIT = "#767676", "#2b7fd4", "#a86d00"
FIRES = {Severity.INFO: "#767676", Severity.WARNING: "#b8641a", Severity.CRITICAL: "#dd4444"}
LEGEND, LABELS = 18, (38, 53, 68)
SPECIALS = ("NaN", "Inf", "-Inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From steps and values to places in the picture. Where no number is measured, none stands at the axis."""

    first: int
    last: int
    low: float
    high: float
    is_measured: bool

    def x(self, step: int) -> float:
        width = self.last - self.first
        return LEFT + (RIGHT - LEFT) * ((step - self.first) / width if width else 0.5)

    def y(self, value: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * (value - self.low) / (self.high - self.low)


def draw(shown: Shown) -> str:
    """The whole SVG, a line an element."""
    scale = _scale(shown)
    words = quoteattr(describe(shown))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img" aria-label={words} '
        f'font-family="system-ui, sans-serif" font-size="12" fill="{TEXT}">',
        *_legend(shown),
        *_axes(scale),
        *_limit(shown, scale),
        *_curve(shown, scale),
        *_specials(shown, scale),
    ]
    for label, firing in zip(LABELS, shown.firings, strict=False):
        parts += _firing(firing, shown, scale, label)
    return "\n".join([*parts, "</svg>\n"])


def describe(shown: Shown) -> str:
    """The picture in words."""
    values = [value for _, value in shown.points if value is not None]
    finite = [value for value in values if math.isfinite(value)]
    said = f"{shown.metric} from step {shown.points[0][0]} to {shown.points[-1][0]}"
    if finite:
        said += f": {number(finite[0])} at first, {number(finite[-1])} at last"
        if not {min(finite), max(finite)} <= {finite[0], finite[-1]}:
            said += f", between {number(min(finite))} and {number(max(finite))}"
    said += "".join(
        f"; {name} on {_steps(count)}"
        for name in SPECIALS
        if (count := sum(map(name.__eq__, map(number, values))))
    )
    if gaps := len(shown.points) - len(values):
        said += f"; missing on {_steps(gaps)}"
    if shown.threshold is not None:
        said += f"; {_limit_words(shown)}"
    return f"{said}. {'. '.join(f'{shown.alert} {_fires(f)}' for f in shown.firings)}."


def number(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Inf" if value > 0 else "-Inf"
    return f"{value:.4g}"


def _steps(count: int) -> str:
    return f"{count} step{'' if count == 1 else 's'}"


def _fires(firing: Firing) -> str:
    end = "" if firing.resolved is None else f", ends at {firing.resolved}"
    return f"({firing.severity.value}) fires at step {firing.step}{end}"


def _limit_words(shown: Shown) -> str:
    limit = shown.threshold
    if limit is None:
        return ""
    of = f" for the {limit.of}" if limit.of else ""
    when = f" at step {shown.firings[0].step}" if limit.origin is Origin.PAST else ""
    return f"threshold {number(limit.value)}{of}{when}"


def _scale(shown: Shown) -> Scale:
    finite = [value for _, value in shown.points if value is not None and math.isfinite(value)]
    if shown.threshold is not None:
        finite.append(shown.threshold.value)
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    if low == high:
        low, high = min(low, 0.0), max(high, 0.0) if high != 0 else 1.0
    return Scale(first=shown.points[0][0], last=shown.points[-1][0], low=low, high=high, is_measured=bool(finite))


def _text(x: float, y: float, words: str, anchor: str = "start", colour: str = "", bold: bool = False) -> str:
    fill = f' fill="{colour}"' if colour else ""
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{fill}{weight}>{escape(words)}</text>'


def _beside(x: float, y: float, words: str, colour: str) -> str:
    """On the side of ``x`` that has more room."""
    late = x > (LEFT + RIGHT) / 2
    return _text(round(x - 6 if late else x + 6, 1), y, words, "end" if late else "start", colour)


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, dash: str = "") -> str:
    dashes = f' stroke-width="1.5" stroke-dasharray="{dash}"' if dash else ""
    place = f'x1="{_at(x1)}" y1="{_at(y1)}" x2="{_at(x2)}" y2="{_at(y2)}"'
    return f'<line {place} stroke="{colour}"{dashes}/>'


def _at(place: float) -> str:
    return f"{round(place, 1):g}"


def _legend(shown: Shown) -> Iterable[str]:
    yield _text(LEFT, LEGEND, shown.metric, colour=CURVE, bold=True)
    if shown.threshold is not None:
        yield _text(RIGHT, LEGEND, f"- - {_limit_words(shown)}", anchor="end", colour=LIMIT)


def _axes(scale: Scale) -> Iterable[str]:
    yield _line(LEFT, BOTTOM + 6, RIGHT, BOTTOM + 6, TEXT)
    for value in (scale.low, scale.high) if scale.is_measured else ():
        yield _text(LEFT - 8, round(scale.y(value), 1) + 4, number(value), anchor="end")
    yield _text(LEFT, BOTTOM + 22, f"step {scale.first}")
    if scale.last != scale.first:
        yield _text(RIGHT, BOTTOM + 22, str(scale.last), anchor="end")


def _limit(shown: Shown, scale: Scale) -> Iterable[str]:
    if shown.threshold is not None:
        y = scale.y(shown.threshold.value)
        yield _line(LEFT, y, RIGHT, y, LIMIT, "6 4")


def _curve(shown: Shown, scale: Scale) -> Iterable[str]:
    """Broken where a value is missing or not finite; a value alone between two breaks is a dot."""
    lines, dots = "", ""
    for is_there, run in groupby(shown.points, key=lambda p: p[1] is not None and math.isfinite(p[1])):
        if is_there:
            places = [(_at(scale.x(step)), _at(scale.y(value))) for step, value in run if value is not None]
            path = "M" + "L".join(f"{x} {y}" for x, y in _corners(places))
            lines, dots = (lines + path, dots) if len(places) > 1 else (lines, f"{dots}{path}h0")
    for path, width in ((lines, 2), (dots, 5)):
        if path:
            yield f'<path d="{path}" fill="none" stroke="{CURVE}" stroke-width="{width}" stroke-linecap="round"/>'


def _corners(places: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Without the places within a level stretch: they change nothing."""
    inner = range(1, len(places) - 1)
    kept = [i for i in inner if not places[i - 1][1] == places[i][1] == places[i + 1][1]]
    return [places[i] for i in sorted({0, *kept, len(places) - 1})]


def _specials(shown: Shown, scale: Scale) -> Iterable[str]:
    """NaN as a cross half-way up, infinities as arrows at their edge; the first of a stretch says its name."""
    for name, run in groupby(shown.points, key=lambda p: "" if p[1] is None else number(p[1])):
        if name not in SPECIALS:
            continue
        steps = [step for step, _ in run]
        y = {"NaN": (TOP + BOTTOM) / 2, "Inf": TOP + 4, "-Inf": BOTTOM - 4}[name]
        marks = {"NaN": "m-4 -4l8 8m0 -8l-8 8", "Inf": "m-4 4l4 -8l4 8", "-Inf": "m-4 -4l4 8l4 -8"}[name]
        path = "".join(f"M{_at(scale.x(step))} {y:g}{marks}" for step in steps)
        yield f'<path d="{path}" fill="none" stroke="{FIRES[Severity.CRITICAL]}" stroke-width="2"/>'
        label = y + 17 if name == "Inf" else y - 9
        yield _beside(scale.x(steps[0]), label, name, FIRES[Severity.CRITICAL])


def _firing(firing: Firing, shown: Shown, scale: Scale, label: int) -> Iterable[str]:
    colour, x = FIRES[firing.severity], scale.x(firing.step)
    yield _line(x, label - 8, x, BOTTOM + 6, colour, "2 3")
    value = dict(shown.points).get(firing.step)
    if value is not None and math.isfinite(value):
        yield f'<circle cx="{_at(x)}" cy="{_at(scale.y(value))}" r="4.5" fill="{colour}"/>'
    words = f"{firing.severity.value}: fires at step {firing.step}"
    yield _beside(x, label, words, colour)
    if firing.resolved is not None:
        end = scale.x(firing.resolved)
        yield _line(end, TOP, end, BOTTOM + 6, TEXT, "2 3")
        yield _text(round(end - 6, 1), BOTTOM + 22, f"ends at {firing.resolved}", "end")
