"""The trend as a small PNG: the curve, its threshold, the last step, and marks where a value is no number.

Drawn twice as large and made smaller, which smooths it; the same trend is the same bytes.
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from itertools import groupby

from PIL import Image, ImageDraw, ImageFont

from rlvitals_monitor.notify.plain_text import NAME_LIMIT, number, plain
from rlvitals_monitor.notify.trend import Trend

WIDTH, HEIGHT = 560, 200
SCALE = 2
LEFT, RIGHT, TOP, BOTTOM = 70, 545, 34, 168
BACK, TEXT, GRID = "#ffffff", "#57606a", "#d0d7de"
CURVE, LIMIT, ALARM = "#0969da", "#9a6700", "#cf222e"
MARK = 4

Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """From steps and values to pixels of the large picture."""

    first: int
    last: int
    low: float
    high: float

    def x(self, step: int) -> float:
        width = self.last - self.first
        return SCALE * (LEFT + (RIGHT - LEFT) * ((step - self.first) / width if width else 0.5))

    def y(self, value: float) -> float:
        # Halves, since the distance of two finite numbers may be beyond the largest.
        height = self.high / 2 - self.low / 2
        share = (value / 2 - self.low / 2) / height if height > 0 else 0.5
        return SCALE * (BOTTOM - (BOTTOM - TOP) * share)


def draw(trend: Trend) -> bytes:
    """A PNG of `WIDTH` × `HEIGHT` pixels. Raises ValueError for a trend without a step."""
    if not trend.steps:
        raise ValueError("a trend without steps cannot be drawn")
    image = Image.new("RGB", (WIDTH * SCALE, HEIGHT * SCALE), BACK)
    pen, frame = ImageDraw.Draw(image), _frame(trend)
    _axes(pen, trend, frame)
    _curve(pen, trend, frame)
    _marks(pen, trend, frame)
    out = io.BytesIO()
    image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS).quantize(32).save(out, "PNG", optimize=True)
    return out.getvalue()


def _frame(trend: Trend) -> _Frame:
    limit = trend.threshold
    bounds = [*trend.finite, *([limit] if limit is not None and math.isfinite(limit) else [])] or [0.0]
    return _Frame(first=trend.steps[0], last=trend.steps[-1], low=min(bounds), high=max(bounds))


def _axes(pen: ImageDraw.ImageDraw, trend: Trend, frame: _Frame) -> None:
    for y in (TOP, BOTTOM):
        pen.line([(LEFT * SCALE, y * SCALE), (RIGHT * SCALE, y * SCALE)], fill=GRID, width=SCALE)
    name = plain(trend.metric, NAME_LIMIT).encode("ascii", "replace").decode()
    _write(pen, (LEFT, 8), name, "la", size=14)
    if trend.finite or trend.threshold is not None:
        _write(pen, (LEFT - 6, TOP), f"{frame.high:.4g}", "rm")
    if frame.low < frame.high:
        _write(pen, (LEFT - 6, BOTTOM), f"{frame.low:.4g}", "rm")
    _write(pen, (LEFT, BOTTOM + 8), f"step {frame.first}", "la")
    if frame.last > frame.first:
        _write(pen, (RIGHT, BOTTOM + 8), str(frame.last), "ra")
    limit = trend.threshold
    if limit is not None and math.isfinite(limit):
        height, dash = frame.y(limit), 6 * SCALE
        for x in range(LEFT * SCALE, RIGHT * SCALE, 2 * dash):
            pen.line([(x, height), (min(x + dash, RIGHT * SCALE), height)], fill=LIMIT, width=SCALE)
        _write(pen, (RIGHT, 8), f"threshold {limit:.4g}", "ra", fill=LIMIT)


def _curve(pen: ImageDraw.ImageDraw, trend: Trend, frame: _Frame) -> None:
    """Broken where a value is missing or no number, so that no line pretends to know what was there."""
    known = zip(trend.steps, trend.values, strict=True)
    for is_known, part in groupby(known, lambda one: one[1] is not None and math.isfinite(one[1])):
        if is_known:
            line: list[Point] = [(frame.x(step), frame.y(value)) for step, value in part if value is not None]
            pen.line(line, fill=CURVE, width=2 * SCALE, joint="curve")
            if len(line) == 1:
                _dot(pen, line[0])
    last = trend.values[-1]
    if last is not None and math.isfinite(last):
        _dot(pen, (frame.x(trend.steps[-1]), frame.y(last)), ALARM)


def _marks(pen: ImageDraw.ImageDraw, trend: Trend, frame: _Frame) -> None:
    kinds = set()
    for step, value in zip(trend.steps, trend.values, strict=True):
        kind = None if value is not None and math.isfinite(value) else number(value)
        if kind is not None:
            kinds.add(kind)
            _mark(pen, frame.x(step), kind)
    for i, kind in enumerate(sorted(kinds)):
        left = LEFT + 110 + 75 * i
        _mark(pen, left * SCALE, kind, y=(BOTTOM + 15) * SCALE)
        _write(pen, (left + 9, BOTTOM + 8), kind, "la", fill=TEXT if kind == "missing" else ALARM)


def _mark(pen: ImageDraw.ImageDraw, x: float, kind: str, y: float | None = None) -> None:
    """A cross for NaN, a triangle towards the infinity that it is, a small dot below for what is missing."""
    size = MARK * SCALE
    if kind == "NaN":
        y = TOP * SCALE if y is None else y
        pen.line([(x - size, y - size), (x + size, y + size)], fill=ALARM, width=SCALE)
        pen.line([(x - size, y + size), (x + size, y - size)], fill=ALARM, width=SCALE)
    elif kind == "missing":
        y = BOTTOM * SCALE if y is None else y
        pen.ellipse([x - SCALE, y - SCALE, x + SCALE, y + SCALE], fill=TEXT)
    else:
        up = kind == "+Inf"
        y = (TOP if up else BOTTOM) * SCALE if y is None else y
        tip = y - size if up else y + size
        pen.polygon([(x - size, 2 * y - tip), (x + size, 2 * y - tip), (x, tip)], fill=ALARM)


def _dot(pen: ImageDraw.ImageDraw, at: Point, fill: str = CURVE) -> None:
    size = 3 * SCALE
    pen.ellipse([at[0] - size, at[1] - size, at[0] + size, at[1] + size], fill=fill)


def _write(
    pen: ImageDraw.ImageDraw, at: Point, text: str, anchor: str, *, fill: str = TEXT, size: int = 12
) -> None:
    font = ImageFont.load_default(size * SCALE)
    pen.text((at[0] * SCALE, at[1] * SCALE), text, fill=fill, font=font, anchor=anchor)
