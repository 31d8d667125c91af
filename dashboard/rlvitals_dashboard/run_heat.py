"""Distributions over the steps of a run: completion lengths with their cap, rewards, spread within groups."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from dash import dcc, html

from rlvitals.contract.report import Json
from rlvitals.contract.view import HistogramView
from rlvitals_dashboard.api import Api
from rlvitals_dashboard.chart_card import GRAPH_CONFIG
from rlvitals_dashboard.components import Component, aria, panel
from rlvitals_dashboard.figures import Span
from rlvitals_dashboard.heat_figure import Cap, heat_figure
from rlvitals_dashboard.language import phrase, t
from rlvitals_dashboard.run_view import View
from rlvitals_dashboard.theme import Theme, pick

COLUMNS = 160
"""Steps that a map shows at most: its charts are about 400 px wide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """``metric`` is the one with which the histograms are kept; ``cap`` the setting that is drawn in."""

    metric: str
    title: str
    meaning: str
    cap: str = ""


HEATS = (
    Heat(
        metric="length.mean",
        title=phrase("Completion length"),
        meaning=phrase("tokens of each completion; a dark row at the cap are completions that were cut"),
        cap="length_cap",
    ),
    Heat(
        metric="reward.mean",
        title=phrase("Reward"),
        meaning=phrase("of each completion; two rows far apart are a reward that says right or wrong"),
    ),
    Heat(
        metric="reward.group_std",
        title=phrase("Spread within groups"),
        meaning=phrase("standard deviation of each group's rewards; at zero there is nothing to learn from"),
    ),
)


async def heat_panel(api: Api, view: View, theme: str) -> Component:
    """Nothing where no histogram was told."""
    found = await asyncio.gather(*(_told(api, view, heat.metric) for heat in HEATS))
    if not any(found):
        return None
    config = (await api.run(view.run)).config
    span = _span(view, found)
    cards = [
        _card(heat, told, span, cap_of(heat, config), pick(theme))
        for heat, told in zip(HEATS, found, strict=True)
        if told
    ]
    return panel(t("Distributions over the steps"), html.Div(cards, className="charts"), key="heats")


async def _told(api: Api, view: View, metric: str) -> tuple[HistogramView, ...]:
    return await api.histograms(
        view.run, metric, attempt=view.attempt, first=view.first, last=view.last, columns=COLUMNS
    )


def _span(view: View, found: Sequence[Sequence[HistogramView]]) -> Span:
    steps = [histogram.step for told in found for histogram in told]
    if view.first is not None and view.last is not None:
        return Span(first=view.first, last=view.last, zoomed=True)
    return Span(first=min(steps), last=max(steps))


def cap_of(heat: Heat, config: Json) -> Cap | None:
    """As the trainer told it."""
    told = config.get(heat.cap) if heat.cap else None
    if isinstance(told, bool) or not isinstance(told, (int, float)) or told <= 0:
        return None
    return Cap(at=float(told), name=t("cap"))


def _card(heat: Heat, told: Sequence[HistogramView], span: Span, cap: Cap | None, theme: Theme) -> Component:
    figure = heat_figure(told, theme=theme, span=span, cap=cap)
    name, meaning = t(heat.title), t(heat.meaning)
    graph = dcc.Graph(
        id={"type": "heat", "metric": heat.metric},
        figure=figure,
        config=GRAPH_CONFIG,
        style={"height": f"{figure['layout']['height']}px"},
    )
    words = html.Div([html.Span(name, className="name"), html.Span(className="at")], className="caption")
    return html.Figure(
        [
            html.Figcaption([words, html.P(meaning, className="meaning", title=meaning)]),
            html.Div(graph, role="img", **aria(label=f"{name}: {meaning}")),
        ],
        className="chart heat",
    )
