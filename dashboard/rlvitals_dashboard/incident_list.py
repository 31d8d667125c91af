"""Incidents in a line each: of one run, and the open ones of all."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, urlencode

from dash import dcc, html

from rlvitals.contract.incident import IncidentView
from rlvitals.contract.view import RunView
from rlvitals_dashboard.components import LONGEST_NAME, Component, aria, mark, notice, visible, when
from rlvitals_dashboard.language import t, woven
from rlvitals_dashboard.theme import SEVERITIES, Look
from rlvitals_dashboard.words import plural

OPEN = Look(tone="idle", mark="▶", word="Open")
OVER = Look(tone="idle", mark="✓", word="Over")
SEEN = Look(tone="info", mark="●", word="Looked after")


def state_of(one: IncidentView) -> Look:
    if not one.is_open:
        return OVER
    return OPEN if one.unseen else SEEN


def address(prefix: str, run: str, cause: str = "", attempt: str = "") -> str:
    query = urlencode({k: v for k, v in (("cause", cause), ("attempt", attempt)) if v})
    return f"{prefix}run/{quote(run, safe='')}/incidents{f'?{query}' if query else ''}"


def incident_links(found: Sequence[IncidentView], prefix: str, chosen: str, attempt: str) -> Component:
    """Of one run, in the order of onset; the chosen one is marked."""
    rows = [
        html.Li(
            dcc.Link(
                _line(one),
                href=address(prefix, one.run, one.cause, attempt),
                className=_tone(one) + (" here" if one.cause == chosen else ""),
            )
        )
        for one in found
    ]
    return html.Ol(rows, className="incident-list")


def open_list(found: Sequence[IncidentView], prefix: str) -> Component:
    """Of all runs: the whole line leads to the incident."""
    if not found:
        return [
            html.P(t("No incident is open on any run."), className="quiet"),
            html.P(
                woven(
                    "An incident is what alerts mean together. Those that are over stand on their run's "
                    "page: {link}.",
                    link=dcc.Link(t("Runs"), href=prefix),
                ),
                className="quiet",
            ),
        ]
    rows = [
        html.Li(
            dcc.Link(
                [
                    html.Span(
                        [
                            html.B(visible(one.run_name or one.run, LONGEST_NAME)),
                            " ",
                            *visible(one.project, LONGEST_NAME),
                        ],
                        className="of-run",
                    ),
                    *_line(one),
                ],
                href=address(prefix, one.run, one.cause, one.attempt),
                className=_tone(one),
            )
        )
        for one in found
    ]
    return html.Ol(rows, className="incident-list wide")


def _tone(one: IncidentView) -> str:
    return f"incident-link tone-{SEVERITIES[one.severity].tone}"


def _line(one: IncidentView) -> list[Component]:
    since = one.onset_step if one.since_step is None else one.since_step
    began = [" ", when(one.onset_at)] if one.onset_at else [t(" time not told")]
    return [
        html.Span([mark(SEVERITIES[one.severity]), mark(state_of(one))], className="signs"),
        html.Strong(visible(one.headline, 200)),
        html.Span(
            woven(
                "since step {step},{began}, {rules}",
                step=since,
                began=began,
                rules=plural(len(one.alerts), "rule"),
            ),
            className="muted",
        ),
    ]


def attempt_links(run: RunView, prefix: str, chosen: str) -> Component:
    """Only where there is a choice; the newest first."""
    if len(run.attempts) < 2:
        return None
    rows = sorted(run.attempts, key=lambda a: a.ordinal, reverse=True)
    newest = rows[0].id
    links = [
        dcc.Link(
            t("Attempt {ordinal}", ordinal=one.ordinal),
            href=address(prefix, run.id, attempt="" if one.id == newest else one.id),
            className="here" if one.id == (chosen or newest) else "",
        )
        for one in rows[:20]
    ]
    return html.Nav(links, className="tabs", **aria(label=t("Attempts")))


def gone(cause: str, run: str, prefix: str) -> Component:
    words = woven(
        "{cause} is not among this run's incidents any more: its alerts may mean something else by now. {link}",
        cause=html.Code(visible(cause, 96)),
        link=dcc.Link(t("All incidents of this run"), href=address(prefix, run)),
    )
    return notice(t("This incident is not there"), words, tone="warning")


def most_urgent(found: Sequence[IncidentView]) -> str:
    """Open before over, strong before weak, late before early."""
    ranked = sorted(found, key=lambda one: (not one.is_open, -one.severity.rank, -one.onset_step))
    return ranked[0].cause if ranked else ""
