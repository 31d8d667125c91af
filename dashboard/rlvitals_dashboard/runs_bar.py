"""The bar above the runs: words to look for, filters, grouping. The browser reads it (assets/runs.js)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dash import dcc, html

from rlvitals.contract.view import RunChoices
from rlvitals_dashboard.components import Component, aria, data
from rlvitals_dashboard.language import phrase, t
from rlvitals_dashboard.runs_view import LONGEST_WORDS, RunsView
from rlvitals_dashboard.theme import LIGHTS, RUN_STATES

ARCHIVED = {"no": phrase("Not archived"), "only": phrase("Archived only"), "any": phrase("Archived too")}
LONGEST_CHOICE = 60


def runs_bar(view: RunsView, choices: RunChoices) -> Component:
    """Each part bears in ``data-filter`` what of the view it is."""
    archived = {name: t(words) for name, words in ARCHIVED.items()}
    fields = [
        html.Label(
            [
                html.Span(t("Search")),
                dcc.Input(
                    id="runs-search",
                    type="search",
                    value=view.q,
                    maxLength=LONGEST_WORDS,
                    placeholder=t("name, tag, model …"),
                    autoComplete="off",
                ),
            ],
            className="search",
        ),
        _lights(view.light),
        _choose("state", t("State"), {s.value: t(look.word) for s, look in RUN_STATES.items()}, view.state),
        _choose("project", t("Project"), _names(choices.projects, view.project), view.project),
        _choose("framework", t("Trainer"), _names(choices.frameworks, view.framework), view.framework),
        _choose("owner", t("Owner"), _names(choices.owners, view.owner), view.owner),
        _choose("label", t("Label"), _names(choices.labels, view.label), view.label),
        _choose("archived", t("Archive"), archived, view.archived, every=False),
        _choose("group", t("Group"), {"": t("Not grouped"), "project": t("By project")}, view.group, every=False),
    ]
    more = html.Button(t("More filters"), id="runs-more", className="button", **aria(expanded="false"))
    clear = html.Button(t("Clear"), id="runs-clear", className="button quiet", hidden=not view.is_narrow)
    return html.Div(
        [*fields[:2], more, *fields[2:], clear],
        id="runs-bar",
        className="runs-bar",
        role="search",
        **aria(label=t("Runs")),
    )


def _lights(chosen: str) -> Component:
    """Several may be on at once."""
    buttons = [
        html.Button(
            [html.Span(look.mark, className="mark", **aria(hidden="true")), html.Span(t(look.word))],
            className=f"light tone-{look.tone}",
            **data(light=light.value),
            **aria(pressed="true" if light.value in chosen.split(",") else "false"),
        )
        for light, look in LIGHTS.items()
    ]
    return html.Div(buttons, className="lights", role="group", **aria(label=t("Health")))


def _choose(name: str, label: str, choices: Mapping[str, str], chosen: str, *, every: bool = True) -> Component:
    """Without anything to choose between, the browser need not show it; what the address says is always there."""
    options = [html.Option(words, value=value) for value, words in choices.items()]
    if every:
        options.insert(0, html.Option(t("All"), value=""))
    field = html.Select(options, **data(filter=name, chosen=chosen))
    return html.Label([html.Span(label), field], hidden=len(options) < 2)


def _names(names: Iterable[str], chosen: str) -> Mapping[str, str]:
    told = dict.fromkeys([*names, *([chosen] if chosen else [])])
    return {name: name if len(name) <= LONGEST_CHOICE else f"{name[: LONGEST_CHOICE - 1]}…" for name in told}
