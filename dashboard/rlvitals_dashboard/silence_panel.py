"""Silences and maintenance windows as people see them, and what is asked to make one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from dash import html

from rlvitals.contract.view import SilencePurpose, SilenceState, SilenceView
from rlvitals_dashboard.asking import ask_once, do, say, say_number
from rlvitals_dashboard.components import LONGEST_NAME, Component, folded, mark, visible, when
from rlvitals_dashboard.language import phrase, t, woven
from rlvitals_dashboard.theme import SILENCE_STATES
from rlvitals_dashboard.words import duration

HUSH_S = 3600.0
"""How long one press silences an alert."""
FIELDS = {
    "project": phrase("Project"),
    "run": phrase("Run"),
    "rule": phrase("Rule"),
    "severity": phrase("Severity"),
    "tag": phrase("Tag"),
}
"""What the form asks for; the others can be given by REST and on the command line."""
_HINTS = {
    "project": "math-*",
    "run": phrase("name or id"),
    "rule": "kl_*",
    "severity": phrase("info, warning or critical"),
}
_PURPOSES = {SilencePurpose.SILENCE: phrase("Silence"), SilencePurpose.MAINTENANCE: phrase("Maintenance")}
_ORDER = (SilenceState.ACTIVE, SilenceState.RESTING, SilenceState.PENDING)


def silence_list(silences: Sequence[SilenceView]) -> Component:
    """What is in force first; what is over behind a click."""
    live = sorted(
        (s for s in silences if s.state is not SilenceState.ENDED),
        key=lambda s: (_ORDER.index(s.state), s.ends_at),
    )
    over = [s for s in silences if s.state is SilenceState.ENDED]
    body: list[Component] = [html.Ol([_row(s) for s in live], className="silences")] if live else []
    if not live:
        body.append(html.P(t("No alert is silenced."), className="quiet"))
    if over:
        body.append(
            folded(
                t("{count} of the past", count=len(over)), html.Ol([_row(s) for s in over], className="silences")
            )
        )
    return body


def _row(silence: SilenceView) -> Component:
    over = silence.state is SilenceState.ENDED
    end = ask_once(
        t("End it"),
        t("From now on messages about these alerts go out again."),
        do(t("Yes, end it"), "end-silence", silence.id),
    )
    return html.Li(
        [
            html.Div(
                [
                    mark(SILENCE_STATES[silence.state]),
                    html.Strong(t(_PURPOSES[silence.purpose])),
                    *_matchers(silence),
                ]
            ),
            html.Div(_times(silence), className="times"),
            html.Div(_who(silence), className="muted"),
            None if over else html.Div(end, className="buttons"),
        ],
        className="past" if over else "",
    )


def _matchers(silence: SilenceView) -> list[Component]:
    return [html.Code(visible(matcher, LONGEST_NAME), className="matcher") for matcher in silence.match]


def _times(silence: SilenceView) -> list[Component]:
    if silence.state is SilenceState.ENDED:
        return woven("ended {moment}", moment=when(silence.ends_at))
    if silence.cron:
        lasts = duration(silence.lasts_s) if silence.lasts_s is not None else "–"
        again: list[Component] = woven(
            "{cron} for {lasts}, {zone}",
            cron=html.Code(visible(silence.cron, 60)),
            lasts=lasts,
            zone=visible(silence.zone, 60),
        )
        if silence.now_until is not None:
            return woven("now, until {moment}; again at {again}", moment=when(silence.now_until), again=again)
        return [
            *again,
            *(woven("; next {moment}", moment=when(silence.next_at)) if silence.next_at is not None else []),
        ]
    if silence.state is SilenceState.PENDING:
        return woven(
            "begins {moment}, for {span}",
            moment=when(silence.starts_at),
            span=_span(silence.starts_at, silence.ends_at),
        )
    return woven("ends {moment}", moment=when(silence.ends_at))


def _span(start: datetime, end: datetime) -> str:
    return duration((end - start).total_seconds())


def _who(silence: SilenceView) -> list[Component]:
    said: list[Component] = [*visible(silence.who or t("somebody"), LONGEST_NAME), ", ", when(silence.created_at)]
    if silence.ended_by:
        said += woven("; ended by {name}", name=visible(silence.ended_by, LONGEST_NAME))
    return [*said, ": ", *visible(silence.why, 300)] if silence.why else said


def new_silence() -> Component:
    act = html.Div(
        [
            *_which("silence"),
            say_number("silence", "", t("Hours that it lasts"), 1, low=0),
            say("silence", "", "why", t("Why")),
            do(t("Yes, silence them"), "silence", ""),
        ]
    )
    words = t("Alerts that fit all of this go on and stand on the pages; nobody gets a message, until it is over.")
    return ask_once(t("Silence alerts"), words, act, tone="primary")


def new_maintenance() -> Component:
    act = html.Div(
        [
            *_which("maintenance"),
            say("maintenance", "", "starts", t("From (UTC)"), holder=t("now, or 2026-03-01 22:00")),
            say_number("maintenance", "", t("Hours that it lasts"), 2, low=0),
            say("maintenance", "", "cron", t("Comes again"), holder=t("no, or 0 22 * * 6")),
            say("maintenance", "", "zone", t("Time zone of that"), value="UTC"),
            say("maintenance", "", "why", t("Why")),
            do(t("Yes, plan it"), "maintenance", ""),
        ]
    )
    words = t(
        "In these hours nobody gets a message about alerts that fit all of this. To have it "
        "come again, give minute, hour, day, month and weekday as cron does."
    )
    return ask_once(t("Plan maintenance"), words, act)


def _which(deed: str) -> list[Component]:
    return [say(deed, "", name, t(FIELDS[name]), holder=t(_HINTS.get(name, phrase("any")))) for name in FIELDS]
