"""What is wrong now, on any run: every open incident, the strongest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dash import html

from rlvitals_dashboard.api import Api
from rlvitals_dashboard.components import Component, panel
from rlvitals_dashboard.heart import Block, Heart, Query
from rlvitals_dashboard.incident_list import open_list
from rlvitals_dashboard.language import t
from rlvitals_dashboard.live import fingerprint
from rlvitals_dashboard.words import plural

PACE_S = 2.0
"""Every run that is sick is judged for one look."""


async def layout(api: Api, prefix: str, query: Query) -> Component:
    blocks = await heart(prefix).draw(api, query)
    return html.Main(
        [
            html.Div([html.H1(t("Open incidents")), html.P(blocks["summary"])], className="page-head"),
            blocks["list"],
            blocks["heart"],
        ],
        className="page incidents",
    )


def heart(prefix: str) -> Heart:
    async def look(api: Api, _query: Query) -> Mapping[str, Block]:
        found = await api.open_incidents()
        count = len({one.run for one in found})
        summary = (
            t("{incidents} on {runs}", incidents=plural(len(found), "incident"), runs=plural(count, "run"))
            if found
            else t("nothing is wrong")
        )
        shown = [replace(one, gpu_hours=None) for one in found]
        return {
            "summary": Block(stamp=fingerprint(summary), make=lambda: summary),
            "list": Block(
                stamp=fingerprint(shown),
                make=lambda: panel(t("All runs"), open_list(found, prefix), count=t("strongest first")),
            ),
        }

    return Heart(key="open-incidents", blocks=("summary", "list"), look=look, pace_s=PACE_S)
