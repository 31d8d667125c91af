"""Settings: who may come in, what is kept how long. Each page is one table and what can be done about it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from dash import html

from rlvitals_dashboard import nav
from rlvitals_dashboard.access_people import new_user, people_table
from rlvitals_dashboard.access_sessions import end_all, session_table, share_table
from rlvitals_dashboard.access_tokens import new_token, token_table
from rlvitals_dashboard.api import Api
from rlvitals_dashboard.components import Component, panel
from rlvitals_dashboard.deeds import verdict_place
from rlvitals_dashboard.heart import Block, Heart, Query
from rlvitals_dashboard.language import t
from rlvitals_dashboard.live import fingerprint
from rlvitals_dashboard.nav import PREFIX
from rlvitals_dashboard.retention_panel import new_retention, retention_table

ADMIN = "admin"
BLOCKS = ("list", "ask")


async def _people(api: Api, _query: Query) -> Mapping[str, Block]:
    users, me = await asyncio.gather(api.users(), api.me())
    return {
        "list": Block(stamp=fingerprint(users, me.name), make=lambda: panel(t("People"), people_table(users, me))),
        "ask": Block(stamp=0, make=lambda: _ask(new_user())),
    }


async def _tokens(api: Api, _query: Query) -> Mapping[str, Block]:
    tokens = await api.tokens()
    return {
        "list": Block(stamp=fingerprint(tokens), make=lambda: panel(t("API tokens"), token_table(tokens))),
        "ask": Block(stamp=0, make=lambda: _ask(new_token())),
    }


async def _sessions(api: Api, _query: Query) -> Mapping[str, Block]:
    """An administrator sees everybody's, anybody else their own."""
    everybody = ADMIN in (await api.me()).may
    sessions = await api.sessions(everybody=everybody)
    return {
        "list": Block(stamp=fingerprint(sessions), make=lambda: panel(t("Sessions"), session_table(sessions))),
        "ask": Block(stamp=int(everybody), make=lambda: end_all(everybody=everybody)),
    }


async def _shares(api: Api, _query: Query) -> Mapping[str, Block]:
    shares = await api.shares()
    return {
        "list": Block(
            stamp=fingerprint(shares), make=lambda: panel(t("Shared links"), share_table(shares, PREFIX))
        ),
        "ask": Block(stamp=0, make=lambda: None),
    }


async def _retention(api: Api, _query: Query) -> Mapping[str, Block]:
    choices = await api.retention()
    return {
        "list": Block(
            stamp=fingerprint(choices), make=lambda: panel(t("What is kept how long"), retention_table(choices))
        ),
        "ask": Block(stamp=0, make=lambda: _ask(new_retention())),
    }


def _ask(button: Component) -> Component:
    return html.Div(button, className="buttons own")


HEARTS = {
    "settings/people": Heart(key="people", blocks=BLOCKS, look=_people),
    "settings/tokens": Heart(key="tokens", blocks=BLOCKS, look=_tokens),
    "settings/sessions": Heart(key="sessions", blocks=BLOCKS, look=_sessions),
    "settings/shares": Heart(key="shares", blocks=BLOCKS, look=_shares),
    "settings/retention": Heart(key="retention", blocks=BLOCKS, look=_retention),
}
"""By place."""


async def layout(place: str, api: Api, prefix: str, query: Query) -> Component:
    """One of `HEARTS`; refused to who may not see it."""
    blocks = await HEARTS[place].draw(api, query)
    return html.Main(
        [
            html.Div(html.H1(t("Settings")), className="page-head"),
            nav.settings_tabs(prefix, place),
            blocks["ask"],
            blocks["list"],
            verdict_place(),
            blocks["heart"],
        ],
        className="page settings-page",
    )
