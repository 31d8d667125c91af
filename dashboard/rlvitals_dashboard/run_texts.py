"""The completions of the step that is looked at, the worst first."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from dash import dcc, html

from rlvitals_dashboard.api import Api
from rlvitals_dashboard.components import Component, panel, text_list
from rlvitals_dashboard.language import t
from rlvitals_dashboard.nav import PREFIX
from rlvitals_dashboard.run_view import Glance, View

FEW = 4


async def texts_at(api: Api, view: View, glance: Glance) -> Component:
    """Nothing while the newest step is looked at: its completions stand below."""
    if glance.step is None:
        return None
    found = await api.texts(view.run, FEW, step=glance.step, attempt=view.attempt, worst=True)
    asked = {"step": str(glance.step)} | ({"attempt": view.attempt} if view.attempt else {})
    link = dcc.Link(
        t("All completions of this step"),
        href=f"{PREFIX}run/{quote(view.run, safe='')}/texts?{urlencode(asked)}",
    )
    title = t("Completions of step {step}", step=glance.step)
    if not found:
        return panel(title, html.P(t("None was kept of this step."), className="quiet"))
    return panel(title, [*text_list(found), link], count=t("worst first"))
