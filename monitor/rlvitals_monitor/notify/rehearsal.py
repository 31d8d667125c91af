"""A test message as if a rule had fired: to those who would hear of it, marked as a test, and recorded nowhere."""

from __future__ import annotations

import secrets
from datetime import datetime

import httpx2

from rlvitals.contract.alert import Alert, AlertState, Transition
from rlvitals.contract.report import RunInfo
from rlvitals.contract.rulebook import RuleTestView
from rlvitals.contract.view import ChannelTest
from rlvitals_monitor.notify.channel import Channel, Channels
from rlvitals_monitor.notify.dispatch import wants
from rlvitals_monitor.notify.notification import Extras, Item, Notification
from rlvitals_monitor.notify.parcel import Verdict
from rlvitals_monitor.notify.post import build_client, send
from rlvitals_monitor.rules.rule import Rule, fill

MARK = "TEST"
SAID = "This is a test of a rule: no run is in trouble."


def rehearse(
    rule: Rule, run: RunInfo | None, channels: Channels, now: datetime, client: httpx2.Client | None = None
) -> RuleTestView:
    """Waits for the providers. Matchers count only where a run was chosen: without one they fit nothing real."""
    change = _transition(rule, run, now)
    hearing = [channel for channel in channels if _hears(channel, change, run)]
    deaf = tuple(channel.name for channel in channels if channel not in hearing)
    if client is not None:
        tests = tuple(_fire(channel, change, run, channels.public_url, now, client) for channel in hearing)
    else:
        with build_client() as ours:
            tests = tuple(_fire(channel, change, run, channels.public_url, now, ours) for channel in hearing)
    return RuleTestView(rule=rule.alert, severity=rule.severity, tests=tests, deaf=deaf)


def _hears(channel: Channel, change: Transition, run: RunInfo | None) -> bool:
    fits = run is None or all(matcher.matches(change.alert, run) for matcher in channel.matchers)
    return wants(channel, change) and fits


def _fire(
    channel: Channel, change: Transition, run: RunInfo | None, link: str, now: datetime, client: httpx2.Client
) -> ChannelTest:
    about = RunInfo(id=run.id if run else "test", name=f"{MARK} {run.name or run.id}" if run else MARK)
    notification = Notification(
        id=f"test-{secrets.token_hex(8)}",
        items=(Item(transition=change, run=about, link=link),),
        run=about,
        link=link,
        language=channel.language,
        extras=Extras(template=channel.template),
    )
    answer = send(channel, notification, now, client)
    return ChannelTest(channel=channel.name, delivered=answer.verdict is Verdict.DELIVERED, answer=answer.words)


def _transition(rule: Rule, run: RunInfo | None, now: datetime) -> Transition:
    metric = rule.expr.metrics[0] if rule.expr.metrics else ""
    alert = Alert(
        id="test",
        run=run.id if run else "test",
        attempt="test",
        rule=rule.alert,
        severity=rule.severity,
        state=AlertState.FIRING,
        since_step=0,
        since_time=now,
        metric=metric,
        summary=f"{SAID} {fill(rule.summary, None, None, 0, metric)}",
        advice=rule.description,
        runbook=rule.runbook,
    )
    return Transition(
        id="test", alert=alert, before=AlertState.PENDING, after=AlertState.FIRING, step=0, at=now, reason="test"
    )
