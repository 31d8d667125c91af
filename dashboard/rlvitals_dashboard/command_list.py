"""What became of the commands: each in a line, and the stations of one."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from dash import dcc, html

from rlvitals.contract.command import CommandKind, CommandState
from rlvitals.contract.view import CommandView
from rlvitals_dashboard.command_panel import rounded, title
from rlvitals_dashboard.components import LONGEST_NAME, Component, aria, mark, visible, when
from rlvitals_dashboard.course import Station
from rlvitals_dashboard.language import t, woven
from rlvitals_dashboard.theme import COMMAND_STATES
from rlvitals_dashboard.words import number


def command_list(commands: Sequence[CommandView], prefix: str = "", *, name_run: bool = False) -> Component:
    """Newest first. With ``prefix`` each row leads to the command's own page."""
    past = sorted(
        (c for c in commands if c.state is not CommandState.PROPOSED), key=lambda c: c.created_at, reverse=True
    )
    if not past:
        return html.P(t("No action so far."), className="quiet")
    return html.Ol([_row(c, prefix, name_run=name_run) for c in past], className="commands")


def _row(command: CommandView, prefix: str, *, name_run: bool) -> Component:
    look = COMMAND_STATES[command.state]
    where = t(" at step {step}", step=command.step) if command.step is not None else ""
    who = command.decided_by or command.who
    name: Component = html.Strong(title(command))
    if prefix:
        name = dcc.Link(name, href=f"{prefix}control/command/{quote(command.id, safe='')}")
    run = woven(" on {run}", run=visible(command.run, LONGEST_NAME)) if name_run else []
    return html.Li(
        [
            html.Div([mark(look), name, *outcome(command), where]),
            html.Div(
                [
                    *(visible(who, LONGEST_NAME) if who else [t("policy")]),
                    *run,
                    ", ",
                    when(command.decided_at or command.created_at),
                ],
                className="muted",
            ),
            html.Div(visible(command.reason, 300), className="muted") if command.reason else None,
        ]
    )


def outcome(command: CommandView) -> list[Component]:
    """What it changed, as it was read back; before that, what it would change."""
    if command.after is not None or command.before is not None:
        return [" ", html.B(f"{number(command.before)} → {number(command.after)}")]
    value = rounded(command) if command.state is CommandState.PROPOSED else command.argument
    if value is None:
        return []
    if command.kind is CommandKind.PAUSE:
        return woven(" for at most {seconds} s", seconds=html.B(number(value)))
    return [t(" by ") if command.kind is CommandKind.SCALE_LR else t(" to "), html.B(number(value))]


def course_list(stations: Sequence[Station]) -> Component:
    return html.Ol([_station(station) for station in stations], className="course")


def _station(station: Station) -> Component:
    sign = "✕" if station.ill else "✓" if station.passed else "○"
    tone = "critical" if station.ill else "good" if station.passed else "idle"
    said: list[Component] = [*visible(station.who, LONGEST_NAME)] if station.who else []
    if station.at is not None:
        said += [", " if said else "", when(station.at)]
    if station.note:
        said += [", " if said else "", station.note]
    words = html.Span(t("passed") if station.passed else t("still to come"), className="unseen")
    return html.Li(
        [
            html.Span(sign, className="mark", **aria(hidden="true")),
            html.Div([html.Strong(station.title), words, html.Div(said, className="muted") if said else None]),
        ],
        className=f"tone-{tone}",
    )
