"""One incident: what it is, since when, what it costs, what to do, and who looks after it."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, urlencode

from dash import dcc, html

from rlvitals.contract.alert import AlertState
from rlvitals.contract.command import CommandState
from rlvitals.contract.incident import IncidentStory, IncidentView
from rlvitals.contract.view import TextView
from rlvitals_dashboard.alert_panel import alert_card
from rlvitals_dashboard.asking import ask_once, do, say, subject_of
from rlvitals_dashboard.command_list import command_list
from rlvitals_dashboard.command_panel import decision
from rlvitals_dashboard.components import (
    LONGEST_NAME,
    Component,
    fact,
    folded,
    mark,
    text_list,
    visible,
    when,
)
from rlvitals_dashboard.incident_list import state_of
from rlvitals_dashboard.language import phrase, t, woven
from rlvitals_dashboard.swimlane import Way, swimlane
from rlvitals_dashboard.theme import SEVERITIES
from rlvitals_dashboard.words import gpu_hours

CONFIDENCES = {"high": phrase("high"), "medium": phrase("medium"), "low": phrase("low")}


def _confidence(word: str) -> str:
    known = CONFIDENCES.get(word)
    return t(known) if known else word


def head(story: IncidentStory) -> Component:
    """What is wrong, since when, the way back, what it costs."""
    one = story.incident
    since = one.onset_step if one.since_step is None else one.since_step
    facts = [
        fact(
            t("Began"),
            woven("step {step} {moment}", step=since, moment=when(one.onset_at) if one.onset_at else None),
        ),
        fact(t("First alert"), t("step {step}", step=one.onset_step)),
        fact(t("Last healthy checkpoint"), _way_back(one)),
        fact(t("GPU-hours since"), t("devices not told") if one.gpu_hours is None else gpu_hours(one.gpu_hours)),
        fact(
            t("Cause"),
            woven(
                "{cause} ({confidence} confidence)",
                cause=html.Code(visible(one.cause, LONGEST_NAME)),
                confidence=_confidence(one.confidence),
            ),
        ),
    ]
    return html.Div(
        [
            html.P([mark(SEVERITIES[one.severity]), mark(state_of(one))], className="signs"),
            html.H2(visible(one.headline, 400)),
            html.Dl(facts, className="facts"),
        ],
        className=f"incident-head tone-{SEVERITIES[one.severity].tone}",
    )


def _way_back(one: IncidentView) -> Component:
    if one.healthy_checkpoint is None:
        return t("none was told of before it")
    path = html.Code(visible(one.healthy_checkpoint_path, 300), className="path")
    return woven(
        "step {step} {path}",
        step=one.healthy_checkpoint,
        path=path if one.healthy_checkpoint_path else t("(path not told)"),
    )


def advice(story: IncidentStory) -> Component:
    """The run's own trainer first, others behind a click."""
    one, framework = story.incident, story.run.framework
    own = [(name, what) for name, what in one.change.items() if framework.startswith(name)]
    others = [(name, what) for name, what in one.change.items() if not framework.startswith(name)]
    told = one.advice or t(
        "No cause that is known explains these alerts together. Look at the charts around the onset."
    )
    return [
        html.P(visible(told, 1200)),
        _changes(own),
        folded(t("In other trainers"), _changes(others)) if own and others else _changes(others),
        html.P(visible(one.isnt, 600), className="quiet") if one.isnt else None,
    ]


def _changes(lines: Sequence[tuple[str, str]]) -> Component:
    if not lines:
        return None
    rows = [html.Li([html.B(visible(name, 40)), " ", html.Span(visible(what, 600))]) for name, what in lines]
    return html.Ul(rows, className="changes")


def evidence(story: IncidentStory, way: Way) -> Component:
    lines = [html.Li(visible(line, 600)) for line in story.incident.evidence]
    return [swimlane(story, way), html.Ul(lines, className="evidence-lines") if lines else None]


def deeds(story: IncidentStory, channels: Sequence[str]) -> Component:
    """What can be done for all of its alerts at once."""
    firing = [alert for alert in story.alerts if alert.state is AlertState.FIRING]
    free = [alert.id for alert in firing if not alert.acknowledged_by]
    seen = sorted({alert.acknowledged_by for alert in firing if alert.acknowledged_by})
    if not firing:
        return html.P(t("Nothing of it fires any more."), className="quiet")
    names = [piece for who in seen for piece in (*visible(who, LONGEST_NAME), ", ")][:-1]
    all_ids = subject_of(*(alert.id for alert in firing))
    free_ids = subject_of(*free)
    return [
        html.P(woven("Seen by {names}.", names=names))
        if seen
        else html.P(t("Nobody has said that they look after it.")),
        html.Div(
            [
                do(t("I look after it"), "acknowledge-all", free_ids) if free else None,
                do(t("Silence 1 h"), "hush-all", all_ids, tone=""),
                _escalation(free_ids, channels) if free and channels else None,
            ],
            className="buttons",
        ),
        html.P(
            woven(
                "No other channel can be told: there is none yet. {link}",
                link=dcc.Link(t("Channels"), href="/ui/channels"),
            ),
            className="quiet",
        )
        if not channels
        else None,
    ]


def _escalation(subject: str, channels: Sequence[str]) -> Component:
    first = channels[0] if len(channels) == 1 else ""
    field = say("escalate", subject, "channel", t("Channel"), value=first, holder=t("its name"), choices=channels)
    words = t("The channel hears of its alerts at once, and its quiet hours and silences hold.")
    return ask_once(t("Escalate"), words, html.Div([field, do(t("Yes, tell it"), "escalate", subject)]))


def exports(story: IncidentStory) -> Component:
    one = story.incident
    base = f"/api/v1/runs/{quote(one.run, safe='')}/incidents/{quote(one.cause, safe='')}/post-mortem"
    files = [
        html.A(
            label,
            href=f"{base}?{urlencode({'attempt': one.attempt, 'form': form})}",
            className="button",
            download="",
        )
        for label, form in (("Markdown", "md"), ("HTML", "html"))
    ]
    return [
        html.P(t("All of this as a file that needs nothing else."), className="quiet"),
        html.Div(files, className="buttons"),
    ]


def guilty(story: IncidentStory, prefix: str) -> Component:
    """The named ones first, as the service ordered them."""
    if not story.texts:
        return html.P(t("No completion of that time was kept."), className="quiet")
    base = f"{prefix}run/{quote(story.run.id, safe='')}/texts"
    return [_guilty(text, base, named=text.number in story.named) for text in story.texts]


def _guilty(text: TextView, base: str, *, named: bool) -> Component:
    where = urlencode({"attempt": text.attempt, "step": text.step, "text": text.number})
    sign = html.Span(t("◆ named by the evidence"), className="badge tone-critical") if named else None
    link = dcc.Link(t("Token by token"), href=f"{base}?{where}")
    return html.Div([*text_list([text]), html.P([sign, link], className="signs")], className="guilty")


def alerts(story: IncidentStory) -> Component:
    return [alert_card(alert) for alert in story.alerts]


def done(story: IncidentStory, prefix: str) -> Component:
    """What waits for a decision, and what became of the rest."""
    if not story.commands:
        return html.P(t("No command was given because of it."), className="quiet")
    waiting = [c for c in story.commands if c.state is CommandState.PROPOSED]
    past = [c for c in story.commands if c.state is not CommandState.PROPOSED]
    return [*(decision(c, story.run) for c in waiting), command_list(past, prefix) if past else None]
