"""The first page of the settings: how the service itself fares, live."""

from __future__ import annotations

from collections.abc import Mapping

from dash import html

from rlvitals_dashboard import nav
from rlvitals_dashboard.api import Api
from rlvitals_dashboard.components import Component
from rlvitals_dashboard.heart import Block, Heart, Query
from rlvitals_dashboard.language import t
from rlvitals_dashboard.live import fingerprint
from rlvitals_dashboard.nav import PREFIX
from rlvitals_dashboard.service_panel import service_panels

PACE_S = 2.0


async def _look(api: Api, _query: Query) -> Mapping[str, Block]:
    told = await api.service()
    return {"panels": Block(stamp=fingerprint(told), make=lambda: service_panels(told, PREFIX))}


HEART = Heart(key="service", blocks=("panels",), look=_look, pace_s=PACE_S)


async def layout(api: Api, prefix: str, query: Query) -> Component:
    blocks = await HEART.draw(api, query)
    return html.Main(
        [
            html.Div(html.H1(t("Settings")), className="page-head"),
            nav.settings_tabs(prefix, "settings"),
            blocks["panels"],
            blocks["heart"],
        ],
        className="page settings-page",
    )
