"""The chart part of the run page: families of small multiples, each chart with its words beside it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dash import html

from rlvitals.contract.alert import Alert
from rlvitals.contract.view import MetricView, SeriesView
from rlvitals_dashboard.chart_card import ChartParts, chart_card, chart_parts
from rlvitals_dashboard.components import Component, aria, visible
from rlvitals_dashboard.figures import Drawing
from rlvitals_dashboard.language import counted, t
from rlvitals_dashboard.panels import FOUND, MOST_MORE, Panel
from rlvitals_dashboard.theme import SEVERITIES

MOST_NAMES = 40
"""Of missing metrics that are named for one reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charts:
    """Everything that one drawing of the charts needs. ``more`` are families drawn in full, ``closed`` folded
    ones, ``attempt`` is the chosen one, "" for the newest."""

    drawing: Drawing
    series: Mapping[str, SeriesView]
    run: str = ""
    attempt: str = ""
    more: frozenset[str] = frozenset()
    closed: frozenset[str] = frozenset()


def families(panels: Sequence[Panel], charts: Charts) -> list[Component]:
    return [_family(panel, charts) for panel in panels]


def card_parts(view: MetricView, charts: Charts) -> ChartParts:
    """Of the card of a metric, what goes by the steps that are shown."""
    return chart_parts(view, _points(view, charts), charts.drawing, run=charts.run, attempt=charts.attempt)


def _family(panel: Panel, charts: Charts) -> Component:
    is_open = panel.key not in charts.closed
    found = panel.key == FOUND
    title = [t("Found: "), *visible(panel.title, 60)] if found else t(panel.title)
    header = html.Button(
        [
            html.Span("▾" if is_open else "▸", className="chevron", **aria(hidden="true")),
            html.Span(title, className="title"),
            *[_raised(alert) for alert in panel.alerts],
            html.Span(_size(panel), className="muted"),
        ],
        id={"type": "fold", "family": panel.key},
        className="family-head",
        **aria(expanded=str(is_open).lower()),
    )
    body = _body(panel, charts) if is_open else None
    narrow = not is_open or (len(panel.lead) == 1 and not panel.missing and not panel.rest)
    narrow = narrow and not found
    return html.Section([html.H2(header), body], className="family narrow" if narrow else "family")


def _raised(alert: Alert) -> Component:
    look = SEVERITIES[alert.severity]
    return html.Span([html.Span(look.mark, className="mark"), alert.rule], className=f"badge tone-{look.tone}")


def _size(panel: Panel) -> str:
    drawn = len(panel.lead) + len(panel.rest)
    words = [counted(drawn, "{count} metric", "{count} metrics")] if drawn else []
    return ", ".join([*words, t("{count} missing", count=len(panel.missing))] if panel.missing else words)


def _body(panel: Panel, charts: Charts) -> Component:
    everything = panel.key in charts.more
    cards = [_card(view, charts) for view in panel.drawn(everything)]
    body: list[Component] = [html.Div(cards, className="charts")] if cards else []
    if not cards and not panel.missing:
        body.append(html.P(t("No metric of this run has such a name."), className="quiet"))
    if panel.rest:
        few = min(len(panel.rest), MOST_MORE)
        words = (
            t("Show fewer")
            if everything
            else counted(few, "Show {count} more metric", "Show {count} more metrics")
        )
        body.append(html.Button(words, id={"type": "more", "family": panel.key}, className="button quiet more"))
    if len(panel.rest) > MOST_MORE:
        left = len(panel.rest) - MOST_MORE
        body.append(html.P(t("{count} others are found by their name: press /", count=left), className="quiet"))
    if panel.missing:
        body.append(_missing(panel.missing))
    return html.Div(body, className="family-body")


def _card(view: MetricView, charts: Charts) -> Component:
    return chart_card(view, _points(view, charts), charts.drawing, run=charts.run, attempt=charts.attempt)


def _missing(views: Sequence[MetricView]) -> Component:
    """Missing is its own thing: named with its reason, never drawn as a zero. One line for each reason."""
    by_reason: dict[str, list[str]] = {}
    for view in views:
        why = view.missing_reason or t("no value and no reason was reported")
        by_reason.setdefault(why, []).append(view.metric)
    rows = [
        html.Li(
            [
                html.Span(t("missing"), className="badge tone-idle"),
                *[html.Code(visible(name, 96)) for name in names[:MOST_NAMES]],
                html.Span(t("and {count} more", count=len(names) - MOST_NAMES))
                if len(names) > MOST_NAMES
                else None,
                html.Span(visible(reason, 300)),
            ]
        )
        for reason, names in list(by_reason.items())[:MOST_NAMES]
    ]
    return html.Ul(rows, className="reasons missing-list")


def _points(view: MetricView, charts: Charts) -> SeriesView:
    """Empty for a metric without a point in the chosen steps."""
    nothing = SeriesView(run="", attempt="", metric=view.metric, bucket=1, step=(), value=())
    return charts.series.get(view.metric) or nothing
