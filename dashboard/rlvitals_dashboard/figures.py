"""SeriesView → Plotly figure, as plain dictionaries. Pure: no request, no callback, no clock.

Non-finite values never reach a coordinate, since JSON would turn them into null and a browser into nothing:
they are marks at finite places in a strip of their own above the plot, one row a kind. A missing value is not
drawn at all; the line breaks there.

Every figure has the same traces in the same order, so that a live update can extend them by index; attempts
before the shown one stand behind these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlvitals.contract.alert import Alert, AlertState
from rlvitals.contract.command import CommandState
from rlvitals.contract.metrics import Metric
from rlvitals.contract.view import CommandView, RuleView, SeriesView
from rlvitals_dashboard.figure_lines import broken_line, earlier_lines, envelope, smooth_line, value_line
from rlvitals_dashboard.figure_marks import (
    Trace,
    action_marks,
    alert_bands,
    firing_band,
    limit_lines,
    limits_of,
    nonfinite_kinds,
    rug,
    strip_axis,
    upright,
    within_reach,
)
from rlvitals_dashboard.figure_scale import Scale, value_axis
from rlvitals_dashboard.smoothing import Smoothing
from rlvitals_dashboard.theme import Theme
from rlvitals_dashboard.words import NAN, NEG_INF, POS_INF

Figure = dict[str, Any]

FIRING, LOW, HIGH, VALUE, SMOOTH, NANS, POS_INFS, NEG_INFS, EXTENT, ACTIONS = range(10)
"""Indices of the traces of every figure."""

HEIGHT_PX = 176
"""Of every chart: what is no number takes its strip from the plot, so that no zoom moves the page."""
_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Steps that every chart of a page shows; ``zoomed`` when a person chose them."""

    first: int
    last: int
    zoomed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """What all charts of one drawing share. ``earlier`` are attempts before the shown one, newest first: what each
    is called, and its series by metric."""

    theme: Theme
    span: Span
    alerts: Sequence[Alert] = ()
    commands: Sequence[CommandView] = ()
    rules: Sequence[RuleView] = ()
    wish: str = ""
    smoothing: Smoothing | None = None
    earlier: Sequence[tuple[str, Mapping[str, SeriesView]]] = field(default=())

    def before(self, metric: str) -> list[tuple[str, SeriesView]]:
        """The earlier attempts that had the metric."""
        return [(name, found[metric]) for name, found in self.earlier if metric in found and found[metric].step]


def scale_of(series: SeriesView, drawing: Drawing) -> Scale:
    return Scale.of([series, *(s for _, s in drawing.before(series.metric))], drawing.wish)


def chart(series: SeriesView, metric: Metric | None, drawing: Drawing) -> Figure:
    """Of what the drawing knows of the whole run, only what belongs on this chart is drawn."""
    own = [a for a in drawing.alerts if a.metric == series.metric and a.state is not AlertState.INACTIVE]
    marks = [c for c in drawing.commands if c.state is CommandState.APPLIED and c.step is not None]
    theme, before, scale = drawing.theme, drawing.before(series.metric), scale_of(series, drawing)
    shown = [series, *(s for _, s in before)]
    shapes = [
        *limit_lines(within_reach(limits_of(series.metric, drawing.rules, own), shown, scale), scale, theme),
        *alert_bands(own, theme),
        *(upright(c.step, theme.action, "dashdot") for c in marks),
        *(upright(series.step[0], theme.muted, "longdash") for _ in before[:1] if series.step),
    ]
    return {
        "data": [
            firing_band(own, drawing.span.last, theme),
            *envelope(series, scale, theme),
            value_line(series, scale, theme, drawing.smoothing is not None),
            smooth_line(series, scale, theme, drawing.smoothing),
            rug(series.nan, NAN, theme),
            rug(series.pos_inf, POS_INF, theme),
            rug(series.neg_inf, NEG_INF, theme),
            _extent(drawing.span),
            action_marks(marks, theme),
            *earlier_lines(before, scale, theme),
        ],
        "layout": _layout(shown, metric, drawing, scale) | {"shapes": shapes},
    }


def extension(
    series: SeriesView,
    *,
    enveloped: bool,
    firing: bool,
    last_step: int,
    scale: Scale | None = None,
    smooth: Sequence[float | None] = (),
) -> tuple[dict[str, Any], list[int]]:
    """New finite raw points as ``(data, trace indices)``, as Plotly's own extendTraces takes them.

    A series with new non-finite values needs a new drawing instead, since its strip grows and its words change.
    ``enveloped``: the drawn series is bucketed, so the new points are their own least and greatest.
    ``firing``: the chart has the band of a firing alert, which grows with the run.
    """
    scale = scale or Scale()
    x, y = broken_line(series, scale, gaps=False)
    rows: dict[int, tuple[list[int], list[Any]]] = {EXTENT: ([last_step], [0.5])}
    if firing:
        rows[FIRING] = ([last_step], [1])
    if x:
        rows[VALUE] = (x, y)
    if x and smooth:
        rows[SMOOTH] = (x, [scale.place(v) for v in smooth])
    if x and enveloped:
        rows[LOW] = rows[HIGH] = (x, y)
    indices = sorted(rows)
    return {"x": [rows[i][0] for i in indices], "y": [rows[i][1] for i in indices]}, indices


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


def _layout(shown: Sequence[SeriesView], metric: Metric | None, drawing: Drawing, scale: Scale) -> dict[str, Any]:
    theme, span, kinds = drawing.theme, drawing.span, nonfinite_kinds(shown)
    strip = 0.115 * len(kinds)
    axis = {"gridcolor": theme.grid, "linecolor": theme.border, "zeroline": False, "color": theme.muted}
    top = 1.0 - strip - (0.05 if kinds else 0.0)
    return {
        "height": HEIGHT_PX,
        "margin": {"l": 46, "r": 12, "t": 8, "b": 24, "pad": 0},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": _FONT, "size": 11, "color": theme.muted},
        "showlegend": False,
        "hovermode": "x",
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.border, "font": {"color": theme.text}},
        "dragmode": "zoom",
        "uirevision": f"{shown[0].attempt}:{span.first if span.zoomed else ''}:{scale.code}",
        "xaxis": axis | step_axis(span),
        "yaxis": axis | value_axis(shown, metric, scale, top),
        "yaxis2": strip_axis(kinds, theme, bottom=1.0 - strip),
        "yaxis3": {"range": [0, 1], "visible": False, "fixedrange": True, "overlaying": "y"},
    }


def step_axis(span: Span) -> dict[str, Any]:
    """The axis of steps of every figure of a page."""
    axis: dict[str, Any] = {"showgrid": False, "tickformat": "~s", "nticks": 6, "ticks": "outside", "ticklen": 3}
    if span.last - span.first < 10_000:
        axis["tickformat"] = ",d"
    if span.zoomed:
        return axis | {"range": [span.first, span.last], "autorange": False}
    # marks of what is no number would make room for themselves, and put their chart's steps elsewhere
    bounds = {"clipmin": span.first, "clipmax": span.last} if span.last > span.first else {}
    return axis | {"autorange": True, "autorangeoptions": bounds}
