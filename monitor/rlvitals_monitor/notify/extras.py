"""What a message shows beside its changes, read from the store as it is sent.

All of it is as it was at the step of the change, so that a message that is sent again says the same. Only its
links are new each time: nobody but their reader knows them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from rlvitals.contract.alert import Alert, Transition
from rlvitals.contract.codec import DecodeError
from rlvitals.contract.command import CommandState
from rlvitals.contract.report import RunInfo
from rlvitals.contract.view import TextView
from rlvitals_monitor.alerts import liveness
from rlvitals_monitor.diagnosis.diagnose import Incident, diagnose
from rlvitals_monitor.diagnosis.fired import Fired
from rlvitals_monitor.errors import NotFound
from rlvitals_monitor.notify.channel import Channel
from rlvitals_monitor.notify.facts import in_short, is_firing
from rlvitals_monitor.notify.notification import Act, Action, Diagnosis, Extras, Notification, Sample
from rlvitals_monitor.notify.trend import Trend
from rlvitals_monitor.store import alerts, commands, links, runs, series, texts
from rlvitals_monitor.store.links import LinkAct

TREND_STEPS = 120
ALERTS_LIMIT = 200
SAMPLES_LIMIT = 64
COMMANDS_LIMIT = 50
APPROVALS_SHOWN = 2
_ACTS = {LinkAct.ACKNOWLEDGE: Act.ACKNOWLEDGE, LinkAct.SILENCE: Act.SILENCE}


def gather(conn: Connection, channel: Channel, told: Notification, public_url: str, now: datetime) -> Extras:
    """Trend, sample, diagnosis and links of the first item; empty for a digest.

    Writes: the links' digests. Call it in the transaction that claims the message.
    """
    beside = Extras(draws=channel.picture, template=channel.template)
    if told.run is None:
        return beside
    lead = told.lead.transition
    if public_url:
        beside = replace(beside, actions=tuple(_actions(conn, channel, told, public_url, now)))
    try:
        attempt, _ = runs.find_attempt(conn, lead.alert.run, lead.alert.attempt)
    except NotFound:
        return beside
    # What a run wrote says nothing of why it stopped talking.
    shows = channel.samples and lead.alert.rule not in liveness.NAMES
    if not is_firing(lead):
        return replace(beside, trend=_trend(conn, attempt, lead))
    return replace(
        beside,
        trend=_trend(conn, attempt, lead),
        sample=_sample(texts.read_last(conn, attempt, lead.step, SAMPLES_LIMIT)) if shows else None,
        diagnosis=_diagnosis(conn, lead, told.lead.run),
    )


def _trend(conn: Connection, attempt: int, lead: Transition) -> Trend | None:
    """Of a metric that is measured now and then, these steps only: what is between is not missing."""
    if not lead.alert.metric:
        return None
    found = series.read_trend(conn, attempt, lead.alert.metric, lead.step, TREND_STEPS)
    known = [one for one in found if one[1] is not None]
    if not known:
        return None
    shown = known if len(known) * 2 <= len(found) else found
    return Trend(
        metric=lead.alert.metric,
        steps=tuple(step for step, _ in shown),
        values=tuple(value for _, value in shown),
        threshold=lead.alert.threshold,
    )


def _sample(kept: Sequence[TextView]) -> Sample | None:
    """Broken bytes first, then what was kept as a worst one, then the least reward."""
    found = [text for text in kept if text.completion]
    if not found:
        return None
    worst = min(found, key=_badness)
    return Sample(
        step=worst.step,
        completion=worst.completion,
        why=worst.why,
        reward=worst.reward,
        invalid_utf8=worst.invalid_utf8,
    )


def _badness(text: TextView) -> tuple[int, bool, float, int]:
    """A NaN reward is worse than any, one that nobody told says nothing."""
    reward = math.inf if text.reward is None else -math.inf if math.isnan(text.reward) else text.reward
    return -(text.invalid_utf8 or 0), text.why == "reservoir", reward, text.sample


def _diagnosis(conn: Connection, lead: Transition, run: RunInfo) -> Diagnosis | None:
    try:
        found, _ = alerts.page(conn, run=lead.alert.run, limit=ALERTS_LIMIT)
    except DecodeError:
        # One that an older version wrote: the news go without what they mean together.
        return None
    own = (alert for alert in found if alert.attempt == lead.alert.attempt)
    fired = [one for one in (_as_of(alert, lead.step) for alert in own) if one is not None]
    incidents = [i for i in diagnose(fired) if lead.alert.rule in i.alerts]
    return _told(incidents[-1], run.framework) if incidents else None


def _as_of(alert: Alert, step: int) -> Fired | None:
    """The alert as it stood at a step."""
    fired = Fired.of(alert)
    if fired is None or fired.fired > step:
        return None
    is_later = fired.resolved is not None and fired.resolved > step
    return Fired(alert=fired.alert, severity=fired.severity, fired=fired.fired) if is_later else fired


def _told(incident: Incident, framework: str) -> Diagnosis:
    change = dict(incident.change)
    own = ((framework, change[framework]),) if framework in change else incident.change
    return Diagnosis(
        headline=incident.headline,
        confidence=incident.confidence,
        advice=incident.advice,
        change=own,
        isnt=incident.isnt,
    )


def _actions(
    conn: Connection, channel: Channel, told: Notification, public_url: str, now: datetime
) -> Iterator[Action]:
    base, alert = public_url.rstrip("/"), told.lead.transition.alert
    if is_firing(told.lead.transition):
        for act, shown in _ACTS.items():
            path = links.make(conn, act, alert.id, links.fingerprint(alert), channel.name, now)
            yield Action(act=shown, url=base + path)
    about = {item.transition.alert.id for item in told.items}
    waiting, _ = commands.page(conn, run=alert.run, state=CommandState.PROPOSED, limit=COMMANDS_LIMIT)
    for command in [one for one in waiting if one.alert_id in about][:APPROVALS_SHOWN]:
        content, words = links.fingerprint(command), in_short(command.kind, command.knob, command.argument)
        for act, shown in ((LinkAct.APPROVE, Act.APPROVE), (LinkAct.DENY, Act.DENY)):
            path = links.make(conn, act, command.id, content, channel.name, now)
            yield Action(act=shown, url=base + path, about=words)
