"""Who did what to which run: the append-only audit, with a filter that the address holds, and its export."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from dash import dcc, html

from rlvitals_dashboard import nav
from rlvitals_dashboard.api import Api
from rlvitals_dashboard.asking import do
from rlvitals_dashboard.audit_panel import audit_table
from rlvitals_dashboard.components import Component, panel
from rlvitals_dashboard.deeds import verdict_place
from rlvitals_dashboard.heart import Block, Heart, Query
from rlvitals_dashboard.language import phrase, t
from rlvitals_dashboard.live import fingerprint

FILTERS = {"run": phrase("Run"), "who": phrase("Who"), "what": phrase("What")}
LONGEST_FILTER = 128


async def layout(api: Api, prefix: str, query: Query) -> Component:
    asked = {name: query[name][:LONGEST_FILTER] for name in (*FILTERS, "cursor") if query.get(name)}
    blocks = await heart(prefix).draw(api, asked)
    return html.Main(
        [
            html.Div([html.H1(t("Audit")), html.P(t("Nothing is ever removed from it."))], className="page-head"),
            nav.tabs(prefix, "control/audit"),
            html.Div([_filter(prefix, asked), _deeds(asked)], className="filters"),
            blocks["list"],
            verdict_place(),
            blocks["heart"],
        ],
        className="page control",
    )


def _filter(prefix: str, asked: Query) -> Component:
    """A form as the web knows it: the answer is a page with an address of its own."""
    fields = [
        html.Label([t(word), dcc.Input(name=name, value=asked.get(name, ""), maxLength=LONGEST_FILTER)])
        for name, word in FILTERS.items()
    ]
    show = html.Button(t("Show"), type="submit", className="button")
    return html.Form([*fields, show], action=f"{prefix}control/audit", method="GET", className="filter")


def _deeds(asked: Query) -> Component:
    """The export has all lines that fit, not only those of this page."""
    wanted = {name: asked[name] for name in FILTERS if name in asked}
    files = [
        html.A(
            t("Export {form}", form=form.upper()),
            href=f"/api/v1/audit/export?{urlencode({**wanted, 'form': form})}",
            className="button",
            download=f"audit.{form}",
        )
        for form in ("csv", "jsonl")
    ]
    return html.Div([do(t("Check the chain"), "check-audit", "", tone=""), *files], className="buttons")


def heart(prefix: str) -> Heart:
    async def look(api: Api, query: Query) -> Mapping[str, Block]:
        shown, older = await api.audit(query)
        way = f"{prefix}control/audit?{urlencode({**query, 'cursor': older})}" if older else ""
        more = dcc.Link(t("Older lines"), href=way, refresh=True) if older else None
        return {
            "list": Block(
                stamp=fingerprint(shown, older),
                make=lambda: panel(t("Lines"), [audit_table(shown, prefix), more], count=t("newest first")),
            )
        }

    return Heart(key="audit", blocks=("list",), look=look)
