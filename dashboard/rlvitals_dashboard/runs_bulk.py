"""What is done with all runs that were chosen: the bar that says it, each deed once asked."""

from __future__ import annotations

from collections.abc import Sequence

from dash import dcc, html

from rlvitals_dashboard.components import Component, aria, data
from rlvitals_dashboard.language import t, woven

LONGEST_FIELD = 128


def bulk_bar(prefix: str) -> Component:
    """Hidden until a run is chosen; the browser writes how many into ``.how-many``."""
    head = html.Div(
        [
            html.Strong(woven("{many} chosen", many=html.Span(className="how-many"))),
            html.Span(className="which muted"),
            html.Button(t("Choose none"), id="runs-none", className="button quiet"),
        ],
        className="bulk-head",
    )
    compare = html.A(t("Compare"), id="runs-compare", className="button", **data(way=f"{prefix}compare?runs="))
    return html.Section(
        [head, html.Div([compare, *_deeds()], className="buttons")],
        id="runs-bulk",
        className="runs-bulk",
        hidden=True,
        **aria(label=t("Chosen runs")),
    )


def _deeds() -> list[Component]:
    why = _say("why", t("Why"), t("is kept in the audit"))
    return [
        _ask(t("Silence 1 h"), t("Nobody is told of alerts of the chosen runs for one hour."), "silence"),
        _ask(
            t("Acknowledge"),
            t("All alerts that fire on the chosen runs get your name; reminders and escalation stop."),
            "acknowledge",
        ),
        _ask(
            t("Owner"),
            t("Who looks after the chosen runs. An empty name takes the owner away."),
            "owner",
            [_say("owner", t("Name"))],
        ),
        _ask(
            t("Labels"),
            t("Labels are your own words for runs, with commas between them."),
            "labels",
            [_say("add", t("Add")), _say("remove", t("Remove"))],
        ),
        _ask(t("Archive"), t("The chosen runs leave this list. Nothing of them is removed."), "archive"),
        _ask(t("Take back"), t("The chosen runs come back from the archive."), "unarchive"),
        _ask(
            t("Pause"),
            t("Each trainer holds at its next step, until it is resumed or its longest pause is over."),
            "pause",
            [why],
        ),
        _ask(
            t("Delete"),
            t("The chosen runs and all their data are removed for good. Trainers that still send are told so."),
            "delete",
            tone="danger",
        ),
    ]


def _ask(
    label: str, words: str, deed: str, fields: Sequence[Component] = (), *, tone: str = "primary"
) -> Component:
    """As `asking.ask_once`, for whatever is chosen when it is pressed."""
    act = html.Button(
        woven("{label}: {many}", label=label, many=html.Span(className="how-many")),
        id={"type": "bulk", "deed": deed},
        className=f"button {tone}",
    )
    shut = html.Summary(
        [html.Span(label, className="shut"), html.Span(t("Back"), className="back")], className="button"
    )
    return html.Details(
        [shut, html.Div([html.P(words), *fields, act], className="asked")], className="asking deed"
    )


def _say(name: str, label: str, holder: str = "") -> Component:
    field = dcc.Input(
        id={"type": "bulk-say", "name": name},
        type="text",
        value="",
        maxLength=LONGEST_FIELD,
        placeholder=holder,
        autoComplete="off",
    )
    return html.Label([html.Span(label), field], className="argument")
