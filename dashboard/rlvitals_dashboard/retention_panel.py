"""What is kept how long, as people see it and choose it."""

from __future__ import annotations

from collections.abc import Sequence

from dash import html

from rlvitals.contract.view import RetentionView
from rlvitals_dashboard.asking import ask_once, do, say, say_number, subject_of
from rlvitals_dashboard.components import LONGEST_NAME, Component, visible, when
from rlvitals_dashboard.language import counted, phrase, t
from rlvitals_dashboard.line_table import line_table
from rlvitals_dashboard.words import number

KINDS = {
    "points_days": phrase("Single points"),
    "texts_days": phrase("Completions"),
    "histograms_days": phrase("Histograms"),
    "runs_days": phrase("Whole runs"),
}
"""By the name in `RetentionView`."""


def retention_table(choices: Sequence[RetentionView]) -> Component:
    heads = [t("Project"), *(t(word) for word in KINDS.values()), t("Set by")]
    names = [*heads, html.Span(t("Deed"), className="unseen")]
    return line_table(t("What is kept how long"), names, [_row(choice) for choice in choices])


def kept(days: float | None) -> str:
    if days is None:
        return t("for ever")
    return counted(int(days), "{count} day", "{count} days") if days == int(days) else f"{number(days)} d"


def _row(choice: RetentionView) -> Component:
    name = visible(choice.project, LONGEST_NAME) if choice.project else t("every project")
    said = [*visible(choice.changed_by, LONGEST_NAME), ", ", when(choice.changed_at)] if choice.changed_at else []
    back = None
    if choice.changed_at is not None and not choice.inherited:
        words = t("What holds for every project holds again; for every project: all is kept for ever.")
        subject = subject_of("project", choice.project)
        back = ask_once(t("Take back"), words, do(t("Yes, take it back"), "take-retention-back", subject))
    as_all = html.Span(t("as every project"), className="muted") if choice.inherited else None
    return html.Tr(
        [
            html.Td(html.B(name)),
            *(html.Td(kept(getattr(choice, kind))) for kind in KINDS),
            html.Td(as_all if choice.inherited else said or html.Span(t("nobody yet"), className="muted")),
            html.Td(back),
        ]
    )


def new_retention() -> Component:
    fields = [
        say("choose-retention", "retention", "project", t("Project"), holder=t("empty: every project")),
        *(
            say_number("choose-retention", "retention", t(word), None, low=1, name=kind)
            for kind, word in KINDS.items()
        ),
    ]
    words = t(
        "In days; an empty field keeps for ever. What is older goes in the background and does not come back. "
        "Alerts, commands, overviews of charts and the audit always stay; with a whole run all but the audit goes."
    )
    act = html.Div([*fields, do(t("Yes, keep it so"), "choose-retention", "retention", tone="danger")])
    return ask_once(t("Choose how long"), words, act, tone="primary")
