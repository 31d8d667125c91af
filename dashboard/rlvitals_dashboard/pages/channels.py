"""Where alerts go, how it fared, and a test that repeats the provider's own words."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from dash import html

from rlvitals_dashboard.api import Api
from rlvitals_dashboard.channel_panel import (
    channel_cards,
    channel_summary,
    delivery_list,
    new_channel,
    problem_list,
)
from rlvitals_dashboard.components import Component, panel
from rlvitals_dashboard.deeds import verdict_place
from rlvitals_dashboard.heart import Block, Heart, Query
from rlvitals_dashboard.language import t
from rlvitals_dashboard.live import fingerprint
from rlvitals_dashboard.nav import PREFIX


async def _look(api: Api, _query: Query) -> Mapping[str, Block]:
    channels, deliveries, book = await asyncio.gather(api.channels(), api.deliveries(), api.channel_book())
    return {
        "problems": Block(stamp=fingerprint(book.problems, book.failed_at), make=lambda: problem_list(book)),
        "summary": Block(stamp=fingerprint(channels), make=lambda: channel_summary(channels)),
        "channels": Block(stamp=fingerprint(channels), make=lambda: channel_cards(channels)),
        "messages": Block(
            stamp=fingerprint(deliveries),
            make=lambda: panel(t("Messages"), delivery_list(deliveries, PREFIX), count=t("newest first")),
        ),
    }


HEART = Heart(key="channels", blocks=("summary", "problems", "channels", "messages"), look=_look)


async def layout(api: Api, query: Query) -> Component:
    blocks = await HEART.draw(api, query)
    return html.Main(
        [
            html.Div([html.H1(t("Channels")), html.P(blocks["summary"])], className="page-head"),
            blocks["problems"],
            blocks["channels"],
            html.Div(new_channel(), className="buttons own"),
            blocks["messages"],
            verdict_place(),
            blocks["heart"],
        ],
        className="page channels",
    )
