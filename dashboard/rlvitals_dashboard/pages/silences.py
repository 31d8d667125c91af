"""Which alerts nobody is told of, until when, and by whom: silences and maintenance windows."""

from __future__ import annotations

from collections.abc import Mapping

from dash import html

from rlvitals.contract.view import SilenceState
from rlvitals_dashboard import nav
from rlvitals_dashboard.api import Api
from rlvitals_dashboard.components import Component, panel
from rlvitals_dashboard.deeds import verdict_place
from rlvitals_dashboard.heart import Block, Heart, Query
from rlvitals_dashboard.language import t
from rlvitals_dashboard.live import fingerprint
from rlvitals_dashboard.silence_panel import new_maintenance, new_silence, silence_list
from rlvitals_dashboard.words import plural


async def _look(api: Api, _query: Query) -> Mapping[str, Block]:
    silences = await api.silences()
    active = sum(s.state is SilenceState.ACTIVE for s in silences)
    summary = (
        t("{silences} in force", silences=plural(active, "silence")) if active else t("nothing is silenced now")
    )
    return {
        "summary": Block(stamp=fingerprint(summary), make=lambda: summary),
        "list": Block(
            stamp=fingerprint(silences), make=lambda: panel(t("Silences and maintenance"), silence_list(silences))
        ),
    }


HEART = Heart(key="silences", blocks=("summary", "list"), look=_look)


async def layout(api: Api, prefix: str, query: Query) -> Component:
    blocks = await HEART.draw(api, query)
    ask = panel(t("New"), html.Div([new_silence(), new_maintenance()], className="buttons own"))
    return html.Main(
        [
            html.Div([html.H1(t("Silences")), html.P(blocks["summary"])], className="page-head"),
            nav.tabs(prefix, "control/silences"),
            html.Div([html.Div(blocks["list"], className="main"), html.Aside(ask)], className="columns"),
            verdict_place(),
            blocks["heart"],
        ],
        className="page control",
    )
