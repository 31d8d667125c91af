"""One chart with its words: name, values, what is no number, the limits of rules, and files to keep. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from dash import dcc, html

from rlvitals.contract.alert import AlertState
from rlvitals.contract.metrics import find
from rlvitals.contract.view import MetricView, SeriesView
from rlvitals_dashboard import figures
from rlvitals_dashboard.components import Component, aria, visible
from rlvitals_dashboard.figure_marks import MOST_LIMITS, Limit, limits_of
from rlvitals_dashboard.language import t
from rlvitals_dashboard.theme import SEVERITIES
from rlvitals_dashboard.words import NAN, NEG_INF, POS_INF, number, steps, unit

GRAPH_CONFIG: Any = {
    "displayModeBar": False,
    "doubleClick": "autosize",
    "responsive": True,
    "scrollZoom": False,
    "showTips": False,
}
LONGEST_NAME = 96


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartParts:
    """What of a card goes by the steps that are shown."""

    figure: figures.Figure
    caption: list[Component]
    marks: list[Component]


def chart_parts(
    view: MetricView, series: SeriesView, drawing: figures.Drawing, *, run: str = "", attempt: str = ""
) -> ChartParts:
    return ChartParts(
        figure=figures.chart(series, find(view.metric), drawing),
        caption=_caption(view, figures.scale_of(series, drawing).linear, run, attempt, drawing.span),
        marks=marks(series),
    )


def chart_card(
    view: MetricView, series: SeriesView, drawing: figures.Drawing, *, run: str = "", attempt: str = ""
) -> Component:
    parts = chart_parts(view, series, drawing, run=run, attempt=attempt)
    firing = [a for a in drawing.alerts if a.metric == view.metric and a.state is AlertState.FIRING]
    worst = max(firing, key=lambda a: a.severity.rank, default=None)
    limits = limits_of(view.metric, drawing.rules, drawing.alerts)
    graph = dcc.Graph(
        id={"type": "chart", "metric": view.metric},
        figure=parts.figure,
        config=GRAPH_CONFIG,
        style={"height": f"{figures.HEIGHT_PX}px"},
    )
    said = t("{metric}, last value {value}", metric=view.metric[:LONGEST_NAME], value=number(view.last_value))
    return html.Figure(
        [
            html.Figcaption(parts.caption, id={"type": "caption", "metric": view.metric}),
            html.Div(graph, role="img", **aria(label=said)),
            html.Div(parts.marks, id={"type": "marks", "metric": view.metric}, className="marks"),
            html.Div(_limit_words(limits), className="marks limits"),
        ],
        className=f"chart firing tone-{SEVERITIES[worst.severity].tone}" if worst else "chart",
    )


def _caption(view: MetricView, linear: bool, run: str, attempt: str, span: figures.Span) -> list[Component]:
    metric = find(view.metric)
    meaning = t(metric.meaning) if metric else _meaning_of_own(view.metric)
    words = unit(metric.unit) if metric else ""
    return [
        html.Div(
            [
                html.Span(_breakable(view.metric), className="name"),
                None if linear else html.Span(t("log scale"), className="scale"),
                html.Span(className="at"),
                html.Span(number(view.last_value), id={"type": "now", "metric": view.metric}, className="now"),
                _files(view.metric, run, attempt, span) if run else None,
            ],
            className="caption",
        ),
        html.P([html.Span(words, className="unit"), meaning], className="meaning", title=meaning),
    ]


def _files(metric: str, run: str, attempt: str, span: figures.Span) -> Component:
    """The picture as it is seen, and the numbers behind it."""
    asked: dict[str, Any] = {"metric": metric} | ({"attempt": attempt} if attempt else {})
    asked |= {"from": span.first, "to": span.last} if span.zoomed else {}
    path = f"/api/v1/runs/{quote(run, safe='')}/export"
    links = [
        html.A(name, href=f"{path}?{urlencode({'format': form} | asked)}", download="", className="button quiet")
        for form, name in (("csv", "CSV"), ("parquet", "Parquet"))
    ]
    picture = html.Button("PNG", className="button quiet picture", type="button")
    label = t("Save {metric}", metric=metric[:LONGEST_NAME])
    return html.Details(
        [
            html.Summary(html.Span("⤓", **aria(hidden="true")), title=label, **aria(label=label)),
            html.Div([picture, *links], className="files"),
        ],
        className="save",
    )


def _limit_words(limits: Sequence[Limit]) -> list[Component]:
    """What the dotted lines are, also of those that lie beyond the chart."""
    rest = len(limits) - MOST_LIMITS
    said: list[Component] = [
        html.Span(
            [
                html.B(f"┄ {limit.rule}", className=f"tone-{SEVERITIES[limit.severity].tone}"),
                f" {number(limit.at)}",
            ],
            className="kind",
        )
        for limit in limits[:MOST_LIMITS]
    ]
    return [*said, html.Span(t("and {count} more", count=rest), className="kind")] if rest > 0 else said


def _meaning_of_own(name: str) -> Component:
    """Trainers call reward functions ``rewards/<function>/<what>``."""
    parts = name.split("/")
    if len(parts) < 3 or parts[0] != "rewards":
        return t("A metric of your own.")
    return t("Of your reward function {name}.", name="/".join(parts[1:-1])[:LONGEST_NAME])


def _breakable(name: str) -> list[Component]:
    """A dotted name that may wrap after its dots and underscores, nowhere else."""
    parts = re.split(r"(?<=[._])", name[:LONGEST_NAME])
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
        reason = visible(series.missing_reason, 200)
        said.append(html.Span([html.B(f"– {t('missing')}"), ": ", *reason], className="kind missing"))
    return said
