"""SeriesView → Plotly figure, as plain dictionaries. Pure: no request, no callback, no clock.

Non-finite values never reach a coordinate, since JSON would turn them into null and a browser into nothing:
they are marks at finite places in a strip of their own above the plot, one row a kind. A missing value is not
drawn at all; the line breaks there.

Every figure has the same traces in the same order, so that a live update can extend them by index.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rlvitals.contract.alert import Alert, AlertState, Severity
from rlvitals.contract.command import CommandState
from rlvitals.contract.metrics import Metric, Worse
from rlvitals.contract.view import CommandView, SeriesView
from rlvitals_dashboard.theme import Theme
from rlvitals_dashboard.words import NAN, NEG_INF, POS_INF, markup, number

Figure = dict[str, Any]
Trace = dict[str, Any]

FIRING, LOW, HIGH, VALUE, NANS, POS_INFS, NEG_INFS, EXTENT, ACTIONS = range(9)
"""Indices of the traces of every figure."""

HEIGHT_PX = 168
SPARSE_POINTS = 48
"""Up to so many points a line has markers, so that a single point is seen."""
LOG_SPREAD = 1000.0
"""Positive values that spread further than this are drawn on a logarithmic axis."""
ROUNDING = 1e-9
"""Values closer together than this share of their size are drawn as one level."""
LONGEST_GAP = 2.5
"""A gap longer than this many usual strides is a gap in the line."""
MOST_BANDS = 24
DRAWABLE_MAX = 1e300
"""Larger values are drawn at this edge: the span of an axis over ±1e308 is no double, and the chart breaks."""

_DASHES = {Severity.CRITICAL: "solid", Severity.WARNING: "dash", Severity.INFO: "dot"}
_STEPPED = frozenset({"kl.coef", "policy.learning_rate"})
_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Steps that every chart of a page shows; ``zoomed`` when a person chose them."""

    first: int
    last: int
    zoomed: bool = False


def chart(
    series: SeriesView,
    metric: Metric | None,
    *,
    theme: Theme,
    span: Span,
    alerts: Sequence[Alert] = (),
    commands: Sequence[CommandView] = (),
) -> Figure:
    """``alerts`` and ``commands`` may be those of the whole run: only what belongs on this chart is drawn."""
    own = [a for a in alerts if a.metric == series.metric and a.state is not AlertState.INACTIVE]
    marks = [c for c in commands if c.state is CommandState.APPLIED and c.step is not None]
    log = _wants_log(series)
    return {
        "data": [_firing(own, span, theme), *_traces(series, span=span, theme=theme, marks=marks)],
        "layout": _layout(series, metric, theme=theme, span=span, log=log)
        | {"shapes": [*_bands(own, theme, log), *_action_lines(marks, theme)]},
    }


def extension(
    series: SeriesView, *, enveloped: bool, firing: bool, last_step: int
) -> tuple[dict[str, Any], list[int]]:
    """New finite raw points as ``(data, trace indices)`` for ``dcc.Graph.extendData``.

    A series with new non-finite values needs a new drawing instead, since its strip grows and its words change.
    ``enveloped``: the drawn series is bucketed, so the new points are their own least and greatest.
    ``firing``: the chart has the band of a firing alert, which grows with the run.
    """
    x, y = _broken_line(series, gaps=False)
    rows: dict[int, tuple[list[int], list[Any]]] = {EXTENT: ([last_step], [0.5])}
    if firing:
        rows[FIRING] = ([last_step], [1])
    if x:
        rows[VALUE] = (x, y)
    if x and enveloped:
        rows[LOW] = rows[HIGH] = (x, y)
    indices = sorted(rows)
    return {"x": [rows[i][0] for i in indices], "y": [rows[i][1] for i in indices]}, indices


def nonfinite_kinds(series: SeriesView) -> list[str]:
    """The rows of the strip: which of NaN, +Inf and −Inf the series has."""
    found = ((POS_INF, series.pos_inf), (NAN, series.nan), (NEG_INF, series.neg_inf))
    return [kind for kind, at in found if at]


def _traces(series: SeriesView, *, span: Span, theme: Theme, marks: Sequence[CommandView]) -> list[Trace]:
    return [
        *_envelope(series, theme),
        _value(series, theme),
        _rug(series.nan, NAN, "x-thin", theme.nan),
        _rug(series.pos_inf, POS_INF, "triangle-up", theme.pos_inf),
        _rug(series.neg_inf, NEG_INF, "triangle-down", theme.neg_inf),
        _extent(span),
        _action_marks(marks, theme),
    ]


def _firing(alerts: Sequence[Alert], span: Span, theme: Theme) -> Trace:
    """The band of the worst firing alert: a trace and no shape, so that a live update can extend it."""
    firing = [a for a in alerts if a.state is AlertState.FIRING]
    worst = max(firing, key=lambda a: (a.severity.rank, -a.since_step), default=None)
    return {
        "type": "scatter",
        "name": "firing",
        "mode": "lines",
        "x": [worst.since_step, max(span.last, worst.since_step)] if worst else [],
        "y": [1, 1] if worst else [],
        "yaxis": "y3",
        "fill": "tozeroy",
        "fillcolor": _faint(theme.severity(worst.severity)) if worst else theme.envelope,
        "line": {"width": 0},
        "hoverinfo": "skip",
    }


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.10)"


def _envelope(series: SeriesView, theme: Theme) -> list[Trace]:
    quiet: Trace = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "line": {"width": 0}}
    bucketed = series.bucket > 1
    x = list(series.step) if bucketed else []
    low = [_drawable(v) for v in series.low] if bucketed else []
    high = [_drawable(v) for v in series.high] if bucketed else []
    return [
        quiet | {"name": "least", "x": x, "y": low},
        quiet | {"name": "greatest", "x": x, "y": high, "fill": "tonexty", "fillcolor": theme.envelope},
    ]


def _value(series: SeriesView, theme: Theme) -> Trace:
    x, y = _broken_line(series, gaps=series.bucket == 1)
    sparse = sum(v is not None for v in y) <= SPARSE_POINTS
    hover = "step %{x:,}<br><b>%{y:.4~g}</b>"
    trace: Trace = {
        "type": "scatter",
        "name": "value",
        "x": x,
        "y": y,
        "mode": "lines+markers" if sparse else "lines",
        "line": {"color": theme.series, "width": 1.6, "shape": "hv" if series.metric in _STEPPED else "linear"},
        "marker": {"color": theme.series, "size": 4},
        "connectgaps": False,
        "hovertemplate": hover + "<extra></extra>",
    }
    if series.bucket > 1:
        trace["hovertemplate"] = (
            f"steps %{{x:,}} to +{series.bucket - 1:,}<br>last <b>%{{y:.4~g}}</b><extra></extra>"
        )
    return trace


def _broken_line(series: SeriesView, *, gaps: bool) -> tuple[list[int], list[float | None]]:
    """The line, with a break at every non-finite value and, in a raw series, where steps were not reported."""
    x: list[int] = []
    y: list[float | None] = []
    longest = _stride(series.step) * LONGEST_GAP if gaps else math.inf
    for at, value in zip(series.step, series.value, strict=True):
        if x and at - x[-1] > longest:
            x.append(x[-1] + 1)
            y.append(None)
        x.append(at)
        y.append(_drawable(value))
    return x, y


def _stride(steps: Sequence[int]) -> float:
    strides = sorted(b - a for a, b in pairwise(steps))
    return strides[len(strides) // 2] if strides else math.inf


def _drawable(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return max(-DRAWABLE_MAX, min(value, DRAWABLE_MAX))


def _rug(at: Sequence[int], word: str, symbol: str, colour: str) -> Trace:
    return {
        "type": "scatter",
        "name": word,
        "mode": "markers",
        "x": list(at),
        "y": [word] * len(at),
        "yaxis": "y2",
        "marker": {"symbol": symbol, "size": 8, "color": colour, "line": {"color": colour, "width": 2}},
        "hovertemplate": f"step %{{x:,}}<br><b>{word}</b><extra></extra>",
        "cliponaxis": False,
    }


def _extent(span: Span) -> Trace:
    """Holds all charts of a page to the same steps, also while they grow."""
    return {
        "type": "scatter",
        "name": "extent",
        "mode": "lines",
        "x": [span.first, span.last],
        "y": [0.5, 0.5],
        "yaxis": "y3",
        "line": {"width": 0},
        "hoverinfo": "skip",
    }


def _action_marks(marks: Sequence[CommandView], theme: Theme) -> Trace:
    return {
        "type": "scatter",
        "name": "actions",
        "mode": "markers",
        "x": [c.step for c in marks],
        "y": [0.04] * len(marks),
        "yaxis": "y3",
        "text": [_action_words(c) for c in marks],
        "marker": {"symbol": "diamond", "size": 9, "color": theme.action},
        "hovertemplate": "step %{x:,}<br>%{text}<extra></extra>",
        "cliponaxis": False,
    }


def _action_words(command: CommandView) -> str:
    change = ""
    if command.before is not None or command.after is not None:
        change = f" {number(command.before)} → {number(command.after)}"
    by = f"<br>by {markup(command.decided_by or command.who)}" if command.decided_by or command.who else ""
    return f"<b>{markup(command.kind.value)}</b>{change}{by}"


def _action_lines(marks: Iterable[CommandView], theme: Theme) -> Iterator[dict[str, Any]]:
    for command in marks:
        yield _line(x=command.step, colour=theme.action, dash="dashdot")


def _bands(alerts: Sequence[Alert], theme: Theme, log: bool) -> Iterator[dict[str, Any]]:
    """Where each alert's condition first held, past ones until their recovery, a firing one with its threshold."""
    for alert in sorted(alerts, key=lambda a: a.since_step)[-MOST_BANDS:]:
        colour = theme.severity(alert.severity)
        yield _line(x=alert.since_step, colour=colour, dash=_DASHES[alert.severity])
        if alert.resolved_step is not None:
            yield _past(alert.since_step, alert.resolved_step, colour)
        if alert.state is AlertState.FIRING and _fits(alert.threshold, log):
            yield _threshold(float(alert.threshold or 0.0), colour)


def _past(first: int, last: int, colour: str) -> dict[str, Any]:
    return {
        "type": "rect",
        "xref": "x",
        "yref": "paper",
        "x0": first,
        "x1": last,
        "y0": 0,
        "y1": 1,
        "fillcolor": colour,
        "opacity": 0.06,
        "line": {"width": 0},
        "layer": "below",
    }


def _fits(threshold: float | None, log: bool) -> bool:
    return threshold is not None and math.isfinite(threshold) and (threshold > 0 or not log)


def _threshold(value: float, colour: str) -> dict[str, Any]:
    return {
        "type": "line",
        "xref": "paper",
        "yref": "y",
        "x0": 0,
        "x1": 1,
        "y0": value,
        "y1": value,
        "line": {"color": colour, "width": 1, "dash": "dot"},
    }


def _line(*, x: int | None, colour: str, dash: str) -> dict[str, Any]:
    return {
        "type": "line",
        "xref": "x",
        "yref": "paper",
        "x0": x,
        "x1": x,
        "y0": 0,
        "y1": 1,
        "line": {"color": colour, "width": 1.2, "dash": dash},
    }


def _wants_log(series: SeriesView) -> bool:
    values = [v for v in (*series.value, *series.low, *series.high) if v is not None and math.isfinite(v)]
    if len(values) < 3 or min(values) <= 0:
        return False
    middle = sorted(values)[len(values) // 2]
    return max(values) / middle > LOG_SPREAD or middle / min(values) > LOG_SPREAD


def is_log(figure: Figure) -> bool:
    return bool(figure["layout"]["yaxis"].get("type") == "log")


def _layout(series: SeriesView, metric: Metric | None, *, theme: Theme, span: Span, log: bool) -> dict[str, Any]:
    kinds = nonfinite_kinds(series)
    strip = 0.115 * len(kinds)
    axis = {"gridcolor": theme.grid, "linecolor": theme.border, "zeroline": False, "color": theme.muted}
    return {
        "height": HEIGHT_PX + 16 * len(kinds),
        "margin": {"l": 46, "r": 12, "t": 8, "b": 24, "pad": 0},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": _FONT, "size": 11, "color": theme.muted},
        "showlegend": False,
        "hovermode": "x",
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.border, "font": {"color": theme.text}},
        "dragmode": "zoom",
        "uirevision": f"{series.attempt}:{span.first if span.zoomed else ''}",
        "xaxis": axis | _x_axis(span),
        "yaxis": axis | _y_axis(series, metric, log=log, top=1.0 - strip - (0.05 if kinds else 0.0)),
        "yaxis2": _strip_axis(kinds, theme, bottom=1.0 - strip),
        "yaxis3": {"range": [0, 1], "visible": False, "fixedrange": True, "overlaying": "y"},
    }


def _x_axis(span: Span) -> dict[str, Any]:
    axis: dict[str, Any] = {"showgrid": False, "tickformat": "~s", "nticks": 6, "ticks": "outside", "ticklen": 3}
    if span.last - span.first < 10_000:
        axis["tickformat"] = ",d"
    return axis | ({"range": [span.first, span.last], "autorange": False} if span.zoomed else {"autorange": True})


def _y_axis(series: SeriesView, metric: Metric | None, *, log: bool, top: float) -> dict[str, Any]:
    axis: dict[str, Any] = {"domain": [0, top], "fixedrange": True, "nticks": 4, "exponentformat": "power"}
    axis["tickformat"] = _tick_format(series)
    if log:
        return axis | {
            "type": "log",
            "tickformat": "",
            "exponentformat": "power",
            "dtick": _decades(series),
            "tickfont": {"size": 9},
        }
    bounded = metric is not None and metric.unit == "1" and metric.worse is Worse.UP
    if level := _level(series):
        return axis | {"range": sorted((0.0, 1.1 * level)), "autorange": False, "tickformat": ".4~g"}
    return axis | {"rangemode": "tozero" if bounded or _flat(series) else "normal"}


def _decades(series: SeriesView) -> int:
    """Decades between two ticks, so that there are about four of them."""
    values = [v for v in (*series.value, *series.low, *series.high) if v is not None and 0 < v < math.inf]
    return max(1, round((math.log10(max(values)) - math.log10(min(values))) / 4))


def _tick_format(series: SeriesView) -> str:
    """Plotly's own choice, but for sizes whose digits would not fit beside a small chart."""
    largest = max((abs(v) for v in series.value if math.isfinite(v)), default=0.0)
    if largest >= 1e15 or 0 < largest < 1e-3:
        return ".2~e"
    return ".3~s" if largest >= 1e4 else ""


def _level(series: SeriesView) -> float:
    """The one value of a series that differs by rounding only, whose noise would fill the chart; else 0."""
    finite = [v for v in (*series.value, *series.low, *series.high) if v is not None and math.isfinite(v)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    largest = max(abs(low), abs(high))
    noise = low < high and high / 2 - low / 2 < ROUNDING * largest / 2
    return (low if low < 0 else high) if noise and largest < 1e300 else 0.0


def _flat(series: SeriesView) -> bool:
    finite = [v for v in series.value if math.isfinite(v)]
    return bool(finite) and min(finite) == max(finite) and finite[0] >= 0


def _strip_axis(kinds: Sequence[str], theme: Theme, *, bottom: float) -> dict[str, Any]:
    if not kinds:
        return {"domain": [0.99, 1], "visible": False, "fixedrange": True, "range": [0, 1]}
    return {
        "type": "category",
        "domain": [bottom, 1],
        "categoryorder": "array",
        "categoryarray": list(reversed(kinds)),
        "range": [-0.5, len(kinds) - 0.5],
        "fixedrange": True,
        "showgrid": False,
        "zeroline": False,
        "color": theme.text,
        "tickfont": {"size": 10, "color": theme.text},
        "ticks": "",
        "showline": False,
    }
