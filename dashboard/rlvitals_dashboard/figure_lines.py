"""The lines of a chart: least and greatest, the values, a smooth one, and those of attempts before. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rlvitals.contract.view import SeriesView
from rlvitals_dashboard.figure_marks import Trace, rug
from rlvitals_dashboard.figure_scale import Scale
from rlvitals_dashboard.smoothing import Smoothing
from rlvitals_dashboard.theme import Theme
from rlvitals_dashboard.words import NAN, NEG_INF, POS_INF

SPARSE_POINTS = 48
"""Up to so many points a line has markers, so that a single point is seen."""
LONGEST_GAP = 2.5
"""A gap longer than this many usual strides is a gap in the line."""
_STEPPED = frozenset({"kl.coef", "policy.learning_rate"})


def envelope(series: SeriesView, scale: Scale, theme: Theme) -> list[Trace]:
    quiet: Trace = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "line": {"width": 0}}
    bucketed = series.bucket > 1
    x = list(series.step) if bucketed else []
    low = scale.places(series.low) if bucketed else []
    high = scale.places(series.high) if bucketed else []
    return [
        quiet | {"name": "least", "x": x, "y": low},
        quiet | {"name": "greatest", "x": x, "y": high, "fill": "tonexty", "fillcolor": theme.envelope},
    ]


def value_line(series: SeriesView, scale: Scale, theme: Theme, behind: bool) -> Trace:
    """``behind`` a smooth line it stays, thinner."""
    x, y = broken_line(series, scale, gaps=series.bucket == 1)
    sparse = sum(v is not None for v in y) <= SPARSE_POINTS
    where = "step %{x:,}" if series.bucket == 1 else f"steps %{{x:,}} to +{series.bucket - 1:,}<br>last"
    said = "" if scale.symlog else "<br><b>%{y:.4~g}</b>" if series.bucket == 1 else " <b>%{y:.4~g}</b>"
    return {
        "type": "scatter",
        "name": "value",
        "x": x,
        "y": y,
        "mode": "lines+markers" if sparse else "lines",
        "opacity": 0.45 if behind else 1,
        "line": {
            "color": theme.series,
            "width": 1 if behind else 1.6,
            "shape": "hv" if series.metric in _STEPPED else "linear",
        },
        "marker": {"color": theme.series, "size": 4},
        "connectgaps": False,
        "hovertemplate": f"{where}{said}<extra></extra>",
        "meta": {"bucket": series.bucket, "linear": scale.code},
    }


def smooth_line(series: SeriesView, scale: Scale, theme: Theme, smoothing: Smoothing | None) -> Trace:
    x, y = _broken_values(series, gaps=series.bucket == 1) if smoothing else ([], [])
    smooth = smoothing.fold(y)[0] if smoothing else []
    return {
        "type": "scatter",
        "name": "smooth",
        "mode": "lines",
        "x": x,
        "y": scale.places(smooth),
        "line": {"color": theme.series, "width": 2.2},
        "connectgaps": False,
        "hoverinfo": "skip",
    }


def earlier_lines(before: Sequence[tuple[str, SeriesView]], scale: Scale, theme: Theme) -> Iterator[Trace]:
    for name, series in before:
        x, y = broken_line(series, scale, gaps=series.bucket == 1)
        yield {
            "type": "scatter",
            "name": name,
            "mode": "lines",
            "x": x,
            "y": y,
            "line": {"color": theme.muted, "width": 1.2, "dash": "dot"},
            "connectgaps": False,
            "hoverinfo": "skip",
        }
        yield from (
            rug(at, word, theme, f" ({name})")
            for word, at in ((NAN, series.nan), (POS_INF, series.pos_inf), (NEG_INF, series.neg_inf))
            if at
        )


def broken_line(series: SeriesView, scale: Scale, *, gaps: bool) -> tuple[list[int], list[float | None]]:
    x, y = _broken_values(series, gaps=gaps)
    return x, scale.places(y)


def _broken_values(series: SeriesView, *, gaps: bool) -> tuple[list[int], list[float | None]]:
    """The line, with a break at every non-finite value and, in a raw series, where steps were not reported."""
    if not gaps:
        return list(series.step), [value if math.isfinite(value) else None for value in series.value]
    x: list[int] = []
    y: list[float | None] = []
    longest = _stride(series.step) * LONGEST_GAP
    for at, value in zip(series.step, series.value, strict=True):
        if x and at - x[-1] > longest:
            x.append(x[-1] + 1)
            y.append(None)
        x.append(at)
        y.append(value if math.isfinite(value) else None)
    return x, y


def _stride(steps: Sequence[int]) -> float:
    strides = sorted(b - a for a, b in pairwise(steps))
    return strides[len(strides) // 2] if strides else math.inf
