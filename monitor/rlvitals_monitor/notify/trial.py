"""A message that says that it is a test, with all the parts that a real one has."""

from __future__ import annotations

import math
import secrets
from dataclasses import replace
from datetime import datetime, timezone

from rlvitals.contract.alert import Alert, AlertState, Severity, Transition
from rlvitals.contract.report import RunInfo
from rlvitals_monitor.notify.channel import Channel
from rlvitals_monitor.notify.compose import compose
from rlvitals_monitor.notify.notification import (
    Act,
    Action,
    Diagnosis,
    Extras,
    Item,
    Notification,
    Sample,
)
from rlvitals_monitor.notify.template import TemplateFault, fill, values
from rlvitals_monitor.notify.trend import Trend

STEPS = 60


def make_trial(channel: Channel, now: datetime, public_url: str = "") -> Notification:
    """Its run is not there and its links act on nothing."""
    run = RunInfo(id="test", name="test")
    lead = Item(transition=_transition(now, "test", 0), run=run, link=public_url)
    symptom = Item(transition=_transition(now, "test_symptom", 1), run=run, link=public_url, symptom_of="test")
    page = f"{public_url.rstrip('/')}/ui/" if public_url else ""
    acts = (Act.ACKNOWLEDGE, Act.SILENCE) if page else ()
    return Notification(
        id=f"test-{secrets.token_hex(8)}",
        items=(lead, symptom),
        run=run,
        link=public_url,
        language=channel.language,
        extras=Extras(
            trend=_trend(),
            draws=channel.picture,
            sample=Sample(step=STEPS, completion=SAMPLE) if channel.samples else None,
            diagnosis=Diagnosis(headline="This is what a diagnosis looks like", confidence="high", advice=""),
            actions=tuple(Action(act=act, url=page) for act in acts),
            template=channel.template,
        ),
    )


def template_fault(channel: Channel) -> str:
    """What is wrong with a channel's template, tried on such a message; empty where nothing is."""
    trial = make_trial(replace(channel, template=""), datetime.fromtimestamp(0, timezone.utc))
    try:
        fill(channel.template, values(compose(trial), trial))
    except TemplateFault as error:
        return str(error)
    return ""


SAMPLE = "The answer is 42.\nNo model wrote this: it shows how bad bytes look: \udcff\udcfe"


def _transition(now: datetime, rule: str, number: int) -> Transition:
    alert = Alert(
        id=f"test{number}",
        run="test",
        attempt="test",
        rule=rule,
        severity=Severity.INFO,
        state=AlertState.FIRING,
        since_step=STEPS,
        since_time=now,
        metric="test",
        value=1.0,
        threshold=0.0,
        summary="This is a test message of RL Vitals: no run is in trouble.",
        advice="Nothing: if you can read this, alerts reach you here.",
    )
    return Transition(
        id=f"test{number}",
        alert=alert,
        before=AlertState.PENDING,
        after=AlertState.FIRING,
        step=STEPS,
        at=now,
        reason="test",
    )


def _trend() -> Trend:
    """A wave, with each kind of value that is no number."""
    wave: list[float | None] = [math.sin(step / 6) for step in range(STEPS)]
    wave[20], wave[30], wave[40], wave[50] = math.nan, math.inf, -math.inf, None
    return Trend(metric="test", steps=tuple(range(1, STEPS + 1)), values=tuple(wave), threshold=0.0)
