"""From transitions to messages: `route` in the worker's transaction, `deliver_due` outside of any.

At least once, recorded exactly once: a message is claimed (its attempt counted), sent with no transaction open,
and its outcome recorded. A process that dies between the provider's acceptance and our record leaves a claim that
runs out; the message goes again under the same id, which a provider that takes idempotency keys drops.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import httpx2
from sqlalchemy import Connection

from rlvitals.contract.alert import Alert, AlertState, Severity, Transition
from rlvitals.contract.report import RunInfo
from rlvitals.contract.view import ChannelTest, ChannelView
from rlvitals_monitor.notify.channel import Channel, Channels
from rlvitals_monitor.notify.message import link_to
from rlvitals_monitor.notify.notification import Notification, tell_one
from rlvitals_monitor.notify.parcel import Answer, Verdict
from rlvitals_monitor.notify.post import build_client, send
from rlvitals_monitor.store import outbox
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.outbox import Claim, Standing
from rlvitals_monitor.store.runs import read_info

ATTEMPTS_LIMIT = 20
BACKOFF_BASE_S = 2.0
BACKOFF_CAP_S = 3600.0
LEASE_MARGIN_S = 60.0
BURST_LIMIT = 50
"""Messages to one channel in one call, so that a long list on one channel cannot starve the others."""

Clock = Callable[[], datetime]


def route(conn: Connection, transition: Transition, channels: Channels, now: datetime) -> int:
    """Writes a delivery for each channel that wants this transition; how many are new. Routing twice adds none."""
    hearing = [channel for channel in channels if wants(channel, transition)]
    if any(channel.matchers for channel in hearing):
        run = read_info(conn, transition.alert.run)
        hearing = [channel for channel in hearing if all(m.holds(transition, run) for m in channel.matchers)]
    return outbox.add(conn, transition.id, {channel.name: due(channel, transition, now) for channel in hearing})


def due(channel: Channel, transition: Transition, now: datetime) -> datetime:
    """At once, or when the channel's quiet hours end."""
    return now if channel.quiet is None else channel.quiet.until(now, transition.alert.severity)


def wants(channel: Channel, transition: Transition) -> bool:
    """People hear of firing and of resolved, from the channel's least severity on."""
    if transition.alert.severity.rank < channel.severity.rank:
        return False
    if transition.after is AlertState.RESOLVED:
        return channel.send_resolved
    return transition.after is AlertState.FIRING


def deliver_due(store: Store, channels: Channels, now: datetime, client: httpx2.Client | None = None) -> int:
    """Sends what is due and records what came of it; answers the attempts made.

    Waits for providers, up to each channel's time-out: call it where waiting harms nobody (see `Dispatcher`).
    """
    due = [channel for channel in channels if _is_due(store, channel, now)]
    if not due:
        return 0
    clock, owner = _running(now), secrets.token_hex(8)
    if client is not None:
        return sum(_drain(store, channel, channels.public_url, owner, clock, client) for channel in due)
    with build_client() as ours:
        return sum(_drain(store, channel, channels.public_url, owner, clock, ours) for channel in due)


def fire_test(
    channel: Channel, now: datetime, public_url: str = "", client: httpx2.Client | None = None
) -> ChannelTest:
    """Sends a message that says that it is a test, at once and unrecorded."""
    notification = replace(_test_notification(now, public_url), language=channel.language)
    if client is not None:
        answer = send(channel, notification, now, client)
    else:
        with build_client() as ours:
            answer = send(channel, notification, now, ours)
    return ChannelTest(channel=channel.name, delivered=answer.verdict is Verdict.DELIVERED, answer=answer.words)


def view_channels(conn: Connection, channels: Channels) -> tuple[ChannelView, ...]:
    """The channels as people may see them: no address but the host, no secret."""
    standings = outbox.standings(conn)
    return tuple(_view(channel, standings.get(channel.name, Standing())) for channel in channels)


def backoff_s(attempts: int, jitter: float) -> float:
    """Doubles from `BACKOFF_BASE_S` to `BACKOFF_CAP_S`; ``jitter`` in [0, 1) spreads it over the upper half."""
    whole = min(BACKOFF_BASE_S * 2.0 ** min(attempts - 1, 60), BACKOFF_CAP_S)
    return whole * (0.5 + 0.5 * jitter)


def _is_due(store: Store, channel: Channel, now: datetime) -> bool:
    with store.read() as conn:
        return outbox.is_due(conn, channel.name, now)


def _running(now: datetime) -> Clock:
    """``now`` and what has passed since: a lease must not be counted from before an earlier time-out."""
    started = time.monotonic()
    return lambda: now + timedelta(seconds=time.monotonic() - started)


def _drain(
    store: Store, channel: Channel, public_url: str, owner: str, clock: Clock, client: httpx2.Client
) -> int:
    for sent in range(BURST_LIMIT):
        taken = _claim(store, channel, owner, clock())
        if taken is None:
            return sent
        answer = send(channel, _notification(taken, channel, public_url), clock(), client)
        with store.begin() as conn:
            record(conn, channel, taken, answer, clock(), random.random())
        if answer.verdict is Verdict.RETRY:
            return sent + 1
    return BURST_LIMIT


def _claim(store: Store, channel: Channel, owner: str, now: datetime) -> Claim | None:
    with store.begin() as conn:
        lease_s = LEASE_MARGIN_S + 2 * channel.timeout_s
        return outbox.claim(conn, channel.name, owner, now, lease_s=lease_s, gap_s=channel.gap_s)


def record(conn: Connection, channel: Channel, taken: Claim, answer: Answer, now: datetime, jitter: float) -> bool:
    """Writes down what came of one attempt. False when it is not ours to say any more.

    A rest that the provider asked for holds the whole channel, also after a message that was the last for now.
    """
    if answer.rest_s is not None:
        outbox.hold_channel(conn, channel.name, now + timedelta(seconds=answer.rest_s))
    if answer.verdict is Verdict.DELIVERED:
        return outbox.record_delivered(conn, taken, answer.words, now)
    if answer.verdict is Verdict.PERMANENT:
        return outbox.record_failed(conn, taken, answer.words)
    if taken.attempts >= ATTEMPTS_LIMIT:
        return outbox.record_failed(conn, taken, f"given up after {taken.attempts} attempts: {answer.words}")
    wait_s = max(answer.rest_s or 0.0, backoff_s(taken.attempts, jitter))
    return outbox.record_retry(conn, taken, answer.words, now + timedelta(seconds=wait_s))


def _notification(taken: Claim, channel: Channel, public_url: str) -> Notification:
    link = link_to(public_url, taken.transition.alert, taken.transition.step)
    return tell_one(taken.transition, taken.run, id=taken.id, link=link, language=channel.language)


def _view(channel: Channel, standing: Standing) -> ChannelView:
    return ChannelView(
        name=channel.name,
        kind=channel.kind.value,
        host=channel.host,
        severity=channel.severity,
        send_resolved=channel.send_resolved,
        signed=bool(channel.secret),
        waiting=standing.waiting,
        delivered=standing.delivered,
        failed=standing.failed,
        answer=standing.answer,
    )


def _test_notification(now: datetime, public_url: str) -> Notification:
    alert = Alert(
        id="test",
        run="test",
        attempt="test",
        rule="test",
        severity=Severity.INFO,
        state=AlertState.FIRING,
        since_step=0,
        since_time=now,
        metric="test",
        value=1.0,
        threshold=0.0,
        summary="This is a test message of RL Vitals: no run is in trouble.",
        advice="Nothing: if you can read this, alerts reach you here.",
    )
    transition = Transition(
        id="test",
        alert=alert,
        before=AlertState.PENDING,
        after=AlertState.FIRING,
        step=0,
        at=now,
        reason="test",
    )
    run = RunInfo(id="test", name="test")
    return tell_one(transition, run, id=f"test-{secrets.token_hex(8)}", link=public_url)
