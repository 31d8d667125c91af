"""Alerts as people see them: what, since when, against what, what to do, and who looks after it."""

from __future__ import annotations

from collections.abc import Sequence

from dash import dcc, html

from rlvitals.contract.alert import Alert, AlertState, Silenced
from rlvitals_dashboard.asking import do
from rlvitals_dashboard.components import LONGEST_NAME, Component, folded, mark, visible, when
from rlvitals_dashboard.language import t, woven
from rlvitals_dashboard.nav import PREFIX
from rlvitals_dashboard.runbooks import runbook_of
from rlvitals_dashboard.theme import ALERT_STATES, SEVERITIES
from rlvitals_dashboard.words import number


def alert_list(alerts: Sequence[Alert]) -> Component:
    """Firing first, worst first; the resolved ones behind a click."""
    order = {AlertState.FIRING: 0, AlertState.PENDING: 1}
    live = [a for a in alerts if a.state in order]
    live.sort(key=lambda a: (order[a.state], -a.severity.rank, a.since_step))
    past = sorted((a for a in alerts if a.state is AlertState.RESOLVED), key=lambda a: -a.since_step)
    body: list[Component] = [alert_card(a) for a in live]
    if not live:
        body.append(html.P(t("Nothing fires. Every rule that can run here is quiet."), className="quiet"))
    if past:
        body.append(folded(t("{count} resolved", count=len(past)), [alert_card(a) for a in past]))
    return body


def alert_card(alert: Alert) -> Component:
    look = SEVERITIES[alert.severity]
    state = t(ALERT_STATES[alert.state])
    quiet = " past" if alert.state is AlertState.RESOLVED else ""
    return html.Article(
        [
            html.Header([mark(look), html.Strong(alert.rule), html.Span(state, className="state")]),
            html.P(visible(alert.summary, 400), className="summary") if alert.summary else None,
            html.P(evidence(alert), className="evidence"),
            html.P([html.B(t("What to do: ")), *visible(alert.advice, 800)], className="advice")
            if alert.advice
            else None,
            html.P(silenced(alert.silenced), className="muted") if alert.silenced else None,
            html.Footer([*_runbook(alert.runbook), *_deeds(alert)]),
        ],
        className=f"alert tone-{look.tone}{quiet}",
    )


def silenced(told: Silenced) -> list[Component]:
    """That nobody hears of it, until when, who asked for that, and why."""
    who = visible(told.who or t("somebody"), LONGEST_NAME)
    words = woven("Silenced by {who}: nobody is told of it; ends {moment}.", who=who, moment=when(told.until))
    return [*words, " ", html.Q(visible(told.why, 200))] if told.why else words


def evidence(alert: Alert) -> list[Component]:
    """What was measured, its value, below or above what it fires, and since which step."""
    words: list[Component] = []
    if alert.metric:
        words += [html.Code(alert.of), " "]
    if alert.value is not None:
        words += [html.B(number(alert.value)), t(", ")]
        words += [*woven(alert.limit, limit=html.B(number(alert.threshold))), t(", ")] if alert.limit else []
    words += [t("since step {step}", step=alert.since_step)]
    if alert.resolved_step is not None:
        words += [t(", over at step {step}", step=alert.resolved_step)]
    return words


def _runbook(runbook: str) -> list[Component]:
    if runbook.startswith(("https://", "http://", "/")):
        return [html.A(t("Runbook"), href=runbook, target="_blank", rel="noreferrer noopener")]
    return runbook_link(runbook) or (
        [html.Span(woven("Runbook: {runbook}", runbook=html.Code(runbook)), className="muted")] if runbook else []
    )


def runbook_link(runbook: str) -> list[Component]:
    """Where it came with the rules, and so is shown here."""
    name = runbook_of(runbook)
    return [dcc.Link(t("Runbook"), href=f"{PREFIX}runbook/{name}")] if name else []


def _deeds(alert: Alert) -> list[Component]:
    firing = alert.state is AlertState.FIRING
    if not alert.acknowledged_by:
        return [do(t("I have seen it"), "acknowledge", alert.id, tone="quiet"), _hush(alert)] if firing else []
    seen = html.Span(
        woven("Seen by {names}", names=visible(alert.acknowledged_by, LONGEST_NAME)),
        className="muted",
    )
    return (
        [seen, do(t("Take that back"), "unacknowledge", alert.id, tone="quiet"), _hush(alert)]
        if firing
        else [seen]
    )


def _hush(alert: Alert) -> Component:
    return do(t("Silence 1 h"), "hush", alert.id, tone="quiet")
