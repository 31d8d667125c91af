"""The incidents of one run, and of the chosen one its order of onset, evidence, deeds and files."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from dash import html

from rlvitals_dashboard import incident_list as lines
from rlvitals_dashboard import nav
from rlvitals_dashboard.api import Api
from rlvitals_dashboard.components import Component, named
from rlvitals_dashboard.deeds import verdict_place
from rlvitals_dashboard.heart import Block, Heart, Query
from rlvitals_dashboard.incident_snapshot import BESIDE, BLOCKS, LONGEST, MAIN, Snapshot
from rlvitals_dashboard.language import woven


async def layout(api: Api, prefix: str, run: str, query: Query) -> Component:
    asked = {"run": run} | {key: query[key][:LONGEST] for key in ("attempt", "cause") if query.get(key)}
    known, blocks = await asyncio.gather(api.run(run), heart(prefix).draw(api, asked))
    return html.Main(
        [
            html.Div(
                [html.H1(woven("Incidents of {known}", known=named(known))), html.P(blocks["summary"])],
                className="page-head",
            ),
            nav.run_tabs(prefix, run, "Incidents"),
            lines.attempt_links(known, prefix, asked.get("attempt", "")),
            html.Div(
                [
                    html.Div([blocks[name] for name in MAIN], className="main"),
                    html.Aside([blocks[name] for name in BESIDE]),
                ],
                className="columns",
            ),
            verdict_place(),
            blocks["heart"],
        ],
        className="page incidents",
    )


def heart(prefix: str) -> Heart:
    async def look(api: Api, query: Query) -> Mapping[str, Block]:
        return (await Snapshot.take(api, query)).blocks(prefix)

    return Heart(key="incidents", blocks=BLOCKS, look=look)
