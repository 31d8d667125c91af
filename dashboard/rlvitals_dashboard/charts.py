"""The chart part of the run page: families of small multiples, each chart with its words beside it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dash import dcc, html

from rlvitals.contract.alert import Alert, AlertState
from rlvitals.contract.metrics import find
from rlvitals.contract.view import CommandView, MetricView, SeriesView
from rlvitals_dashboard import figures
from rlvitals_dashboard.components import Component, aria, visible
from rlvitals_dashboard.panels import Panel
from rlvitals_dashboard.theme import SEVERITIES, Theme
from rlvitals_dashboard.words import NAN, NEG_INF, POS_INF, number, plural, steps, unit

GRAPH_CONFIG: Any = {
    "displayModeBar": False,
    "doubleClick": "autosize",
    "responsive": True,
    "scrollZoom": False,
    "showTips": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Everything that one drawing of the charts needs."""

    theme: Theme
    span: figures.Span
    series: Mapping[str, SeriesView]
    alerts: Sequence[Alert]
    commands: Sequence[CommandView]
    more: frozenset[str]
    closed: frozenset[str]


def families(panels: Sequence[Panel], drawing: Drawing) -> list[Component]:
    return [_family(panel, drawing) for panel in panels]


def _family(panel: Panel, drawing: Drawing) -> Component:
    is_open = panel.key not in drawing.closed
    header = html.Button(
        [
            html.Span("▾" if is_open else "▸", className="chevron", **aria(hidden="true")),
            html.Span(panel.title, className="title"),
            *[_raised(alert) for alert in panel.alerts],
            html.Span(_size(panel), className="muted"),
        ],
        id={"type": "fold", "family": panel.key},
        className="family-head",
        **aria(expanded=str(is_open).lower()),
    )
    body = _body(panel, drawing) if is_open else None
    narrow = not is_open or (len(panel.lead) == 1 and not panel.missing and not panel.rest)
    return html.Section([html.H2(header), body], className="family narrow" if narrow else "family")


def _raised(alert: Alert) -> Component:
    look = SEVERITIES[alert.severity]
    return html.Span([html.Span(look.mark, className="mark"), alert.rule], className=f"badge tone-{look.tone}")


def _size(panel: Panel) -> str:
    drawn = len(panel.lead) + len(panel.rest)
    words = [plural(drawn, "metric")] if drawn else []
    return ", ".join([*words, f"{len(panel.missing)} missing"] if panel.missing else words)


def _body(panel: Panel, drawing: Drawing) -> Component:
    everything = panel.key in drawing.more
    cards = [_card(view, drawing) for view in panel.drawn(everything)]
    parts: list[Component] = [html.Div(cards, className="charts")] if cards else []
    if panel.rest:
        words = "Show fewer" if everything else f"Show {plural(len(panel.rest), 'more metric')}"
        parts.append(html.Button(words, id={"type": "more", "family": panel.key}, className="button quiet more"))
    if panel.missing:
        parts.append(_missing(panel.missing))
    return html.Div(parts, className="family-body")


def _missing(views: Sequence[MetricView]) -> Component:
    """Missing is its own thing: named with its reason, never drawn as a zero. One line for each reason."""
    by_reason: dict[str, list[str]] = {}
    for view in views:
        by_reason.setdefault(view.missing_reason or "no value and no reason was reported", []).append(view.metric)
    rows = [
        html.Li(
            [
                html.Span("missing", className="badge tone-idle"),
                *[html.Code(visible(name, 96)) for name in names],
                html.Span(visible(reason, 300)),
            ]
        )
        for reason, names in by_reason.items()
    ]
    return html.Ul(rows, className="reasons missing-list")


def _card(view: MetricView, drawing: Drawing) -> Component:
    metric = find(view.metric)
    meaning = metric.meaning if metric else _meaning_of_own(view.metric)
    words = unit(metric.unit) if metric else ""
    series = drawing.series.get(view.metric) or _empty(view)
    figure = figures.chart(
        series,
        metric,
        theme=drawing.theme,
        span=drawing.span,
        alerts=drawing.alerts,
        commands=drawing.commands,
    )
    firing = [a for a in drawing.alerts if a.metric == view.metric and a.state is AlertState.FIRING]
    worst = max(firing, key=lambda a: a.severity.rank, default=None)
    caption = html.Figcaption(
        [
            html.Div(
                [
                    html.Span(_breakable(view.metric), className="name"),
                    html.Span("log scale", className="scale") if figures.is_log(figure) else None,
                    html.Span(number(view.last_value), id={"type": "now", "metric": view.metric}, className="now"),
                ],
                className="caption",
            ),
            html.P([html.Span(words, className="unit"), meaning], className="meaning", title=meaning),
        ]
    )
    graph = dcc.Graph(
        id={"type": "chart", "metric": view.metric},
        figure=figure,
        config=GRAPH_CONFIG,
        style={"height": f"{figure['layout']['height']}px"},
    )
    return html.Figure(
        [
            caption,
            html.Div(graph, role="img", **aria(label=f"{view.metric}, last value {number(view.last_value)}")),
            html.Div(marks(series), id={"type": "marks", "metric": view.metric}, className="marks"),
        ],
        className=f"chart firing tone-{SEVERITIES[worst.severity].tone}" if worst else "chart",
    )


def _meaning_of_own(name: str) -> str:
    """Trainers call reward functions ``rewards/<function>/<what>``."""
    parts = name.split("/")
    if len(parts) < 3 or parts[0] != "rewards":
        return "A metric of your own."
    return f"Of your reward function {'/'.join(parts[1:-1])}."


def _breakable(name: str) -> list[Component]:
    """A dotted name that may wrap after its dots and underscores, nowhere else."""
    parts = re.split(r"(?<=[._])", name[:96])
    return [piece for part in parts for piece in (*visible(part), html.Wbr())]


def marks(series: SeriesView) -> list[Component]:
    """NaN, +Inf, −Inf and missing in words, for those who cannot see or hover the marks."""
    rows = ((NAN, "nan", series.nan), (POS_INF, "pos-inf", series.pos_inf), (NEG_INF, "neg-inf", series.neg_inf))
    shapes = {NAN: "✕", POS_INF: "▲", NEG_INF: "▼"}
    said: list[Component] = [
        html.Span([html.B(f"{shapes[word]} {word}"), f" × {len(at):,}, {steps(at)}"], className=f"kind {css}")
        for word, css, at in rows
        if at
    ]
    if series.missing_reason:
        said.append(
            html.Span([html.B("– missing"), ": ", *visible(series.missing_reason, 200)], className="kind missing")
        )
    return said


def _empty(view: MetricView) -> SeriesView:
    """A metric without a point in the chosen steps."""
    return SeriesView(run="", attempt="", metric=view.metric, bucket=1, step=(), value=())
