"""What one looks for first: what is wrong, since when, what to do, and who looks after it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from dash import dcc, html

from rlvitals.contract.alert import Alert, AlertState
from rlvitals.contract.incident import IncidentView
from rlvitals.contract.view import RuleView, RunView
from rlvitals_dashboard.alert_panel import silenced
from rlvitals_dashboard.asking import do, subject_of
from rlvitals_dashboard.components import LONGEST_NAME, Component, fact, mark, standing_of, visible, when
from rlvitals_dashboard.language import counted, t, woven
from rlvitals_dashboard.theme import SEVERITIES
from rlvitals_dashboard.words import gpu_hours

MOST_OTHERS = 3


def health_card(
    run: RunView, incidents: Sequence[IncidentView], alerts: Sequence[Alert], rules: Sequence[RuleView], below: str
) -> Component:
    """``incidents`` are those of the attempt, ``below`` is the address of the run's page."""
    still = sorted((one for one in incidents if one.is_open), key=lambda one: (-one.severity.rank, one.onset_step))
    if not still:
        return _well(run, rules, informs=any(alert.state is AlertState.FIRING for alert in alerts))
    worst, others = still[0], still[1:]
    return html.Section(
        [
            html.Div([mark(SEVERITIES[worst.severity]), html.H2(visible(worst.headline, 300))], className="wrong"),
            html.Dl(
                [
                    fact(t("Since"), _since(worst)),
                    fact(t("What to do"), _advice(worst, run), ""),
                    fact(t("Looked after by"), _who(worst, alerts)),
                    *_silenced(worst, alerts),
                ],
                className="facts",
            ),
            *[html.P(_other(one, below), className="quiet") for one in others[:MOST_OTHERS]],
            html.P(
                dcc.Link(
                    counted(
                        len(still), "The whole story of this incident", "The whole story of {count} incidents"
                    ),
                    href=f"{below}/incidents?{urlencode({'cause': worst.cause})}",
                )
            ),
        ],
        className=f"health tone-{SEVERITIES[worst.severity].tone}",
    )


def _well(run: RunView, rules: Sequence[RuleView], *, informs: bool) -> Component:
    """Without an incident something may fire all the same: what merely informs."""
    now = standing_of(rules)
    count = len(now.watching)
    words = (
        [counted(count, "{count} rule watches.", "{count} rules watch."), t("What fires merely informs.")]
        if informs
        else [counted(count, "{count} rule watches and none fires.", "{count} rules watch and none fires.")]
    )
    if now.unknown:
        words.append(counted(len(now.unknown), "{count} cannot tell yet.", "{count} cannot tell yet."))
    if now.dormant:
        words.append(counted(len(now.dormant), "{count} cannot run here.", "{count} cannot run here."))
    if run.last_step is None:
        words.insert(0, t("No step has arrived yet."))
    return html.P(" ".join(words), className="health quiet")


def _since(incident: IncidentView) -> Component:
    step = incident.onset_step if incident.since_step is None else incident.since_step
    words: list[Component] = [t("step {step}", step=step)]
    words += [t(", "), when(incident.onset_at)] if incident.onset_at else []
    if incident.gpu_hours is not None:
        words.append(t(", {hours} GPU-hours", hours=gpu_hours(incident.gpu_hours)))
    return html.Span(words)


def _advice(incident: IncidentView, run: RunView) -> Component:
    framework = run.framework.partition(" ")[0].casefold()
    setting = next((what for name, what in incident.change.items() if name.casefold() == framework), "")
    words = [html.Span(visible(incident.advice, 500))] if incident.advice else [t("Nothing is known to help.")]
    return html.Div([*words, html.Code(visible(setting, 200))] if setting else words)


def _who(incident: IncidentView, alerts: Sequence[Alert]) -> Component:
    mine = [a for a in alerts if a.id in incident.alert_ids and a.state is AlertState.FIRING]
    names = dict.fromkeys(a.acknowledged_by for a in mine if a.acknowledged_by)
    free = [a.id for a in mine if not a.acknowledged_by]
    said = html.Span(visible(", ".join(names), LONGEST_NAME)) if names else html.Span(t("nobody yet"))
    act = do(t("I look after it"), "acknowledge-all", subject_of(*free), tone="quiet") if free else None
    return html.Div([said, act], className="who")


def _silenced(incident: IncidentView, alerts: Sequence[Alert]) -> list[Component]:
    """Of its firing alerts; those of which people are still told are counted."""
    mine = [a for a in alerts if a.id in incident.alert_ids and a.state is AlertState.FIRING]
    hushed = [a.silenced for a in mine if a.silenced is not None]
    if not hushed:
        return []
    words = silenced(min(hushed, key=lambda one: one.until))
    left = len(mine) - len(hushed)
    loud = counted(left, "{count} other alert of it is told.", "{count} other alerts of it are told.")
    return [fact(t("Silenced"), html.Span([*words, " ", loud] if left else words))]


def _other(incident: IncidentView, below: str) -> list[Component]:
    link = dcc.Link(
        visible(incident.headline, 160), href=f"{below}/incidents?{urlencode({'cause': incident.cause})}"
    )
    return woven("Also {incident}, since step {step}", incident=link, step=incident.onset_step)
