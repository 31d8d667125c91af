"""Histograms of many steps → a heat map over the steps, as a plain Plotly figure. Pure.

Each column is one step and is normalized by itself: its colour is the share of that step's values. Rows are the
bins of all steps laid over each other, joined to at most `MOST_ROWS`; an axis of bins holds zero, negative and
infinite edges alike, which no logarithm does. A step without a histogram is a gap and no empty column.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rlvitals.contract.view import HistogramView
from rlvitals_dashboard.figure_marks import faint, level
from rlvitals_dashboard.figures import Figure, Span, step_axis
from rlvitals_dashboard.theme import Theme
from rlvitals_dashboard.words import number

HEIGHT_PX = 190
MOST_ROWS = 48
LONGEST_TICK = 6
MOST_TICKS = 6
LONGEST_GAP = 2.5
"""A gap longer than this many usual strides between two histograms is a gap in the map."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """A bound that is drawn in."""

    at: float
    name: str


def heat_figure(found: Sequence[HistogramView], *, theme: Theme, span: Span, cap: Cap | None = None) -> Figure:
    """``found`` in the order of their steps, each with a step of its own."""
    edges = row_edges(found)
    shares = [_shares(histogram, edges) for histogram in found]
    steps, columns = _with_gaps([histogram.step for histogram in found], shares)
    rows = len(edges) - 1
    z = [[None if column is None else column[row] for column in columns] for row in range(max(rows, 0))]
    ticks = _ticks(edges)
    axis = {"linecolor": theme.border, "zeroline": False, "color": theme.muted, "showgrid": False}
    heat = {
        "type": "heatmap",
        "x": steps,
        "y": [row + 0.5 for row in range(max(rows, 0))],
        "z": z,
        "text": _words(edges),
        "zmin": 0,
        "zmax": 1,
        "colorscale": [
            [0, faint(theme.series, 0.0)],
            [0.02, faint(theme.series, 0.12)],
            [0.35, theme.series],
            [1, theme.text],
        ],
        "showscale": False,
        "hoverongaps": False,
        "hoverinfo": "skip",
        "customdata": [_words(edges)],
    }
    return {
        "data": [heat],
        "layout": {
            "height": HEIGHT_PX,
            "margin": {"l": 46, "r": 12, "t": 8, "b": 24, "pad": 0},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"size": 11, "color": theme.muted},
            "showlegend": False,
            "dragmode": "zoom",
            "uirevision": f"{span.first if span.zoomed else ''}:{span.last if span.zoomed else ''}",
            "xaxis": axis | step_axis(span),
            "yaxis": axis
            | {
                "range": [0, max(rows, 1)],
                "fixedrange": True,
                "tickmode": "array",
                "tickvals": [row for row, _ in ticks],
                "ticktext": [words for _, words in ticks],
            },
            "shapes": [_line(place, cap, theme)] if cap and (place := place_of(cap.at, edges)) is not None else [],
        },
    }


def row_edges(found: Sequence[HistogramView]) -> list[float]:
    """Of the rows: all edges of all steps, thinned evenly; the first and the last stay."""
    every = sorted({edge for histogram in found for edge in histogram.edges})
    stride = math.ceil((len(every) - 1) / MOST_ROWS) if len(every) > 1 else 1
    kept = every[::stride]
    return kept if not every or kept[-1] == every[-1] else [*kept, every[-1]]


def place_of(value: float, edges: Sequence[float]) -> float | None:
    """Where a value lies on the axis of rows; at its end for what lies beyond; None without rows or for NaN."""
    if len(edges) < 2 or math.isnan(value):
        return None
    row = min(max(bisect_right(edges, value) - 1, 0), len(edges) - 2)
    low, high = edges[row], edges[row + 1]
    inside = 0.0 if math.isinf(high) or math.isinf(low) or high == low else (value - low) / (high - low)
    return row + min(max(inside, 0.0), 1.0)


def _shares(histogram: HistogramView, edges: Sequence[float]) -> list[float]:
    """Of the step's values in each row; a bin that reaches over several rows is spread evenly over them."""
    total = sum(histogram.counts)
    shares = [0.0] * (len(edges) - 1)
    for (low, high), count in zip(pairwise(histogram.edges), histogram.counts, strict=True):
        first = max(bisect_right(edges, low) - 1, 0)
        last = max(bisect_right(edges, high) - 1, first + 1)
        last = min(
            last if edges[min(last, len(edges) - 1)] == high or last == first + 1 else last + 1, len(shares)
        )
        first = min(first, len(shares) - 1)
        for row in range(first, max(last, first + 1)):
            shares[row] += count / total / max(last - first, 1) if total else 0.0
    return shares


def _with_gaps(steps: list[int], columns: list[list[float]]) -> tuple[list[int], list[list[float] | None]]:
    strides = sorted(b - a for a, b in pairwise(steps))
    usual = strides[len(strides) // 2] if strides else 1
    at: list[int] = []
    told: list[list[float] | None] = []
    for step, column in zip(steps, columns, strict=True):
        if at and step - at[-1] > LONGEST_GAP * usual:
            at += [at[-1] + usual, step - usual]
            told += [None, None]
        at.append(step)
        told.append(column)
    return at, told


def _ticks(edges: Sequence[float]) -> list[tuple[int, str]]:
    stride = max(1, math.ceil(len(edges) / MOST_TICKS))
    return [(row, _tick(edges[row])) for row in range(0, len(edges), stride)]


def _tick(value: float) -> str:
    """Not longer than the margin is wide: what is cut off there reads as another number."""
    words = number(value)
    if len(words) <= LONGEST_TICK:
        return words
    if abs(value) >= 0.01:
        return number(float(f"{value:.3g}"))
    digits, power = f"{value:.1e}".split("e")
    return f"{float(digits):g}e{int(power)}".replace("-", "−")


def _words(edges: Sequence[float]) -> list[str]:
    return [f"{number(low)} – {number(high)}" for low, high in pairwise(edges)]


def _line(place: float, cap: Cap, theme: Theme) -> dict[str, Any]:
    label = {"text": f"{cap.name} {number(cap.at)}", "textposition": "start", "yanchor": "bottom"}
    line = {"color": theme.warning, "width": 1.6, "dash": "dash"}
    return level(place, "cap", line) | {"label": label | {"font": {"size": 10, "color": theme.warning}}}
