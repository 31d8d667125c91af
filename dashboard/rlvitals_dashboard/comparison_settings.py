"""The settings of several runs side by side. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dash import dcc, html

from rlvitals.contract.comparison import SettingsView
from rlvitals_dashboard.comparison_blocks import swatch
from rlvitals_dashboard.comparison_view import View
from rlvitals_dashboard.components import Component, aria, panel, visible
from rlvitals_dashboard.config_panel import LONGEST_VALUE
from rlvitals_dashboard.language import t
from rlvitals_dashboard.words import number, plural

Way = Callable[..., str]
SETTINGS_MAX = 400


def settings_panel(found: SettingsView, view: View, letters: Mapping[str, str], way: Way) -> Component:
    """Those that differ; all of them on demand. A run that did not tell a setting has a dash there."""
    everything = view.settings == "all"
    rows = [setting for setting in found.settings if everything or not setting.alike]
    count = t("{different} differ of {count}", different=found.different, count=len(found.settings))
    untold = [letters[run] for run in found.untold]
    notes = (
        [html.P(t("{untold} told no settings.", untold=" and ".join(untold)), className="muted")] if untold else []
    )
    if not found.settings:
        return panel(t("Settings"), html.P(t("None of these runs told its settings."), className="quiet"))
    switch = dcc.Link(
        t("Only those that differ") if everything else t("Show all {count}", count=len(found.settings)),
        href=way(settings="" if everything else "all"),
    )
    if not rows:
        return panel(t("Settings"), [html.P(t("All settings are alike.")), *notes, switch], count=count)
    head = html.Thead(
        html.Tr(
            [
                html.Th(t("Setting"), scope="col"),
                *(html.Th(swatch(letters[run]), scope="col") for run in found.runs),
            ]
        )
    )
    body = [
        html.Tr(
            [
                html.Td(html.Code(visible(row.name, 200)), className="detail"),
                *(_setting(row.values, run, letters[run]) for run in found.runs),
            ],
            className="" if row.alike else "unlike",
        )
        for row in rows[:SETTINGS_MAX]
    ]
    left = len(rows) - SETTINGS_MAX
    more = (
        html.P(t("{settings} not shown", settings=plural(left, "more setting")), className="muted")
        if left > 0
        else None
    )
    table = html.Div(
        html.Table([head, html.Tbody(body)], className="lines beside"),
        className="scroll",
        tabIndex="0",
        role="region",
        **aria(label=t("Settings")),
    )
    return panel(t("Settings"), [table, more, *notes, switch], count=count)


def _setting(values: Mapping[str, Any], run: str, letter: str) -> Component:
    shown = _value(values[run]) if run in values else html.Span(t("not told"), className="muted")
    return html.Td([html.Span(letter, className="whose-value"), html.Span(shown)], className="detail")


def _value(value: Any) -> Component:
    if value is None:
        return html.Span(t("not set"), className="muted")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < 10**20 else number(float(value))
    if isinstance(value, float):
        return number(value)
    if isinstance(value, (list, tuple)):
        return visible(", ".join(number(v) if isinstance(v, float) else str(v) for v in value), LONGEST_VALUE)
    return visible(str(value), LONGEST_VALUE)
