"""Who may steer which runs: what the service's settings say, and what was chosen over them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from dash import html

from rlvitals_dashboard import nav
from rlvitals_dashboard.api import Api
from rlvitals_dashboard.components import Component, panel
from rlvitals_dashboard.deeds import verdict_place
from rlvitals_dashboard.heart import Block, Heart, Query
from rlvitals_dashboard.language import phrase, t
from rlvitals_dashboard.live import fingerprint
from rlvitals_dashboard.policy_panel import new_policy, new_steering, policy_table, steering_table

_PRECEDENCE = phrase(
    "The more cautious of a run's and a rule's policy holds; without either the project's, then every run's."
)


async def _look(api: Api, _query: Query) -> Mapping[str, Block]:
    policies, steering = await asyncio.gather(api.policies(), api.steering())
    return {
        "list": Block(
            stamp=fingerprint(policies),
            make=lambda: panel(
                t("Who may steer"), [policy_table(policies), html.P(t(_PRECEDENCE), className="quiet")]
            ),
        ),
        "steering": Block(
            stamp=fingerprint(steering),
            make=lambda: panel(t("KL policies in force"), steering_table(steering)),
        ),
    }


HEART = Heart(key="policies", blocks=("list", "steering"), look=_look)


async def layout(api: Api, prefix: str, query: Query) -> Component:
    blocks = await HEART.draw(api, query)
    wheel = panel(t("Choose a KL policy"), html.Div(new_steering(), className="buttons own"))
    ask = panel(t("Choose a policy"), html.Div(new_policy(), className="buttons own"))
    return html.Main(
        [
            html.Div(html.H1(t("Policies")), className="page-head"),
            nav.tabs(prefix, "control/policies"),
            html.Div(
                [
                    html.Div([blocks["list"], blocks["steering"]], className="main"),
                    html.Aside([ask, wheel]),
                ],
                className="columns",
            ),
            verdict_place(),
            blocks["heart"],
        ],
        className="page control",
    )
