"""One metric of several runs → Plotly figure, as plain dictionaries. Pure.

A run is told by letter, colour and dash together. What is no number is a mark in a strip above the plot, one row a
kind, in the colour of its run; what is missing is not drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from rlvitals.contract.comparison import Axis, ComparedCurve, ComparedMetric, HealthyBand, Likeness, Parting
from rlvitals_dashboard.figure_marks import Trace, nonfinite_kinds
from rlvitals_dashboard.figure_scale import DRAWABLE_MAX, LOG_SPREAD
from rlvitals_dashboard.figures import Figure
from rlvitals_dashboard.language import phrase, t
from rlvitals_dashboard.theme import Theme
from rlvitals_dashboard.words import NAN, NEG_INF, POS_INF, duration

LETTERS = "ABCDEF"
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
COLOURS = {
    "light": ("#0a5ec2", "#b3470b", "#0b7350", "#9b1f87", "#6b5a00", "#4b5563"),
    "dark": ("#76b6ff", "#ffb073", "#5fd9b4", "#f19be3", "#d9cf6a", "#cfd6df"),
}
"""Told apart by people with any colour vision, and 3:1 or more on the page; a test holds the latter."""
HEIGHT_PX = 230
SPARSE_POINTS = 48

TITLES = {
    Axis.STEP: phrase("step"),
    Axis.TOKENS: phrase("tokens"),
    Axis.SAMPLES: phrase("completions"),
    Axis.TIME: phrase("hours"),
}
_HOUR = 3600.0
_APART = (Likeness.APART, Likeness.REJOINED)
_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'


def compared_figure(
    metric: ComparedMetric,
    letters: Sequence[str],
    axis: Axis,
    theme: Theme,
    *,
    zoom: tuple[float, float] | None = None,
) -> Figure:
    """``letters`` are those of the curves. Time is drawn in hours."""
    scale = 1 / _HOUR if axis is Axis.TIME else 1.0
    log = _wants_log(metric)
    traces: list[Trace] = [*_band(metric.band, scale, theme, log)]
    for curve, letter in zip(metric.curves, letters, strict=True):
        traces += _curve(curve, letter, scale, axis, theme, log)
    for curve, letter in zip(metric.curves, letters, strict=True):
        traces += _rugs(curve, letter, scale, theme)
    letter_of = {curve.key: letter for curve, letter in zip(metric.curves, letters, strict=True)}
    shapes = list(_marks(metric.partings, letter_of, scale, theme))
    place = None if zoom is None else (zoom[0] * scale, zoom[1] * scale)
    return {"data": traces, "layout": _layout(metric, axis, theme, log, place) | {"shapes": shapes}}


def colour_of(letter: str, theme: Theme) -> str:
    return COLOURS[theme.base][LETTERS.index(letter)]


def _band(band: HealthyBand, scale: float, theme: Theme, log: bool) -> list[Trace]:
    x = [at * scale for at in band.at]
    quiet: Trace = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "line": {"width": 0}, "x": x}
    low, high = ([_drawable(v, log) for v in side] for side in (band.low, band.high))
    fill = {"fill": "tonexty", "fillcolor": _faint(theme.good)}
    middle = {
        "line": {"width": 1, "color": theme.good, "dash": "dot"},
        "y": [_drawable(v, log) for v in band.middle],
    }
    return [
        quiet | {"name": t("healthy least"), "y": low},
        quiet | {"name": t("healthy greatest"), "y": high} | fill,
        quiet | {"name": t("healthy middle")} | middle,
    ]


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.16)"


def _curve(
    curve: ComparedCurve, letter: str, scale: float, axis: Axis, theme: Theme, log: bool
) -> Iterator[Trace]:
    colour = colour_of(letter, theme)
    x = [at * scale for at in curve.at]
    if curve.bucket > 1:
        quiet: Trace = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "line": {"width": 0}, "x": x}
        yield quiet | {"name": t("{letter} least", letter=letter), "y": [_drawable(v, log) for v in curve.low]}
        high = {
            "name": t("{letter} greatest", letter=letter),
            "y": [_drawable(v, log) for v in curve.high],
            "fill": "tonexty",
        }
        yield quiet | high | {"fillcolor": _faint(colour)}
    y = [_drawable(v, log) for v in curve.value]
    step = t("step {step}", step="%{customdata:,}")
    place = "" if axis is Axis.STEP else f"%{{x:,.4~g}} {t(TITLES[axis])}, "
    yield {
        "type": "scatter",
        "name": letter,
        "x": x,
        "y": y,
        "customdata": list(curve.step),
        "mode": "lines+markers" if sum(v is not None for v in y) <= SPARSE_POINTS else "lines",
        "line": {"color": colour, "width": 1.8, "dash": DASHES[LETTERS.index(letter)]},
        "marker": {"color": colour, "size": 4},
        "connectgaps": False,
        "hovertemplate": f"<b>{letter}</b> {place}{step}: <b>%{{y:.4~g}}</b><extra></extra>",
    }


def _rugs(curve: ComparedCurve, letter: str, scale: float, theme: Theme) -> Iterator[Trace]:
    colour = colour_of(letter, theme)
    symbols = ((NAN, "x-thin", curve.nan), (POS_INF, "triangle-up", curve.pos_inf))
    for word, symbol, at in (*symbols, (NEG_INF, "triangle-down", curve.neg_inf)):
        if at:
            yield {
                "type": "scatter",
                "name": f"{letter} {word}",
                "mode": "markers",
                "x": [place * scale for place in at],
                "y": [word] * len(at),
                "yaxis": "y2",
                "marker": {"symbol": symbol, "size": 8, "color": colour, "line": {"color": colour, "width": 2}},
                "hovertemplate": f"<b>{letter}</b> {word}<extra></extra>",
                "cliponaxis": False,
            }


def _marks(
    partings: Sequence[Parting], letter_of: dict[str, str], scale: float, theme: Theme
) -> Iterator[dict[str, Any]]:
    """A line where a run leaves the first, with its letter on top."""
    for parting in partings:
        if parting.at is not None and parting.likeness in _APART:
            letter = letter_of[parting.key]
            colour = colour_of(letter, theme)
            label = {
                "text": t("{letter} diverges", letter=letter),
                "textposition": "end",
                "font": {"size": 10, "color": colour},
            }
            yield {
                "type": "line",
                "xref": "x",
                "yref": "y domain",
                "x0": parting.at * scale,
                "x1": parting.at * scale,
                "y0": 0,
                "y1": 1,
                "line": {"color": colour, "width": 1.4, "dash": "dot"},
                "label": label | {"textangle": 0, "yanchor": "top", "xanchor": "left"},
            }


def _drawable(value: float | None, log: bool) -> float | None:
    if value is None or not math.isfinite(value) or (log and value <= 0):
        return None
    return max(-DRAWABLE_MAX, min(value, DRAWABLE_MAX))


def _values(metric: ComparedMetric) -> list[float]:
    numbers = [v for c in metric.curves for v in (*c.value, *c.low, *c.high) if v is not None]
    return [v for v in (*numbers, *metric.band.low, *metric.band.high) if math.isfinite(v)]


def _wants_log(metric: ComparedMetric) -> bool:
    """Only where nothing would be lost by it."""
    values = sorted(_values(metric))
    if len(values) < 3 or values[0] <= 0:
        return False
    middle = values[len(values) // 2]
    return values[-1] / middle > LOG_SPREAD or middle / values[0] > LOG_SPREAD


def is_log(figure: Figure) -> bool:
    return bool(figure["layout"]["yaxis"].get("type") == "log")


def _layout(
    metric: ComparedMetric, axis: Axis, theme: Theme, log: bool, zoom: tuple[float, float] | None
) -> dict[str, Any]:
    kinds = nonfinite_kinds(metric.curves)
    strip = 0.09 * len(kinds)
    line = {"gridcolor": theme.grid, "linecolor": theme.border, "zeroline": False, "color": theme.muted}
    x: dict[str, Any] = {"showgrid": False, "nticks": 6, "ticks": "outside", "ticklen": 3, "title": None}
    x |= {"range": list(zoom), "autorange": False} if zoom else {"autorange": True}
    top = 1.0 - strip - (0.05 if kinds else 0.0)
    y: dict[str, Any] = {"domain": [0, top], "fixedrange": True, "nticks": 5, "exponentformat": "power"}
    hidden = {"domain": [0.99, 1], "visible": False, "fixedrange": True, "range": [0, 1]}
    shown = {
        "type": "category",
        "domain": [1.0 - strip, 1],
        "categoryorder": "array",
        "categoryarray": list(reversed(kinds)),
        "range": [-0.5, len(kinds) - 0.5],
        "fixedrange": True,
        "showgrid": False,
        "zeroline": False,
        "tickfont": {"size": 10, "color": theme.text},
    }
    return {
        "height": HEIGHT_PX + 16 * len(kinds),
        "margin": {"l": 52, "r": 12, "t": 10, "b": 24, "pad": 0},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": _FONT, "size": 11, "color": theme.muted},
        "showlegend": False,
        "hovermode": "x",
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.border, "font": {"color": theme.text}},
        "dragmode": "zoom",
        "xaxis": line | x | {"tickformat": ".3~g" if axis is Axis.TIME else "~s"},
        "yaxis": line | y | ({"type": "log", "nticks": 4} if log else {}),
        "yaxis2": shown if kinds else hidden,
    }


def place_words(axis: Axis, at: float) -> str:
    """A place on the axis as people say it."""
    if axis is Axis.TIME:
        return duration(at)
    told = f"{at:,.0f}"
    return t("step {step}", step=told) if axis is Axis.STEP else f"{told} {t(TITLES[axis])}"
