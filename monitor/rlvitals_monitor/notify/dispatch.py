"""From transitions to messages: `route` in the worker's transaction, `deliver_due` outside of any.

At least once, recorded exactly once: what is due is sealed into a message and claimed (its attempt counted), sent
with no transaction open, and its outcome recorded. A process that dies between the provider's acceptance and our
record leaves a claim that runs out; the message goes again under the same id, which a provider that takes
idempotency keys drops.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import httpx2
from sqlalchemy import Connection

from rlvitals.contract.alert import AlertState, Transition
from rlvitals.contract.view import ChannelTest, ChannelView
from rlvitals_monitor.notify.attempt import give_up, record, take
from rlvitals_monitor.notify.channel import Channel, Channels
from rlvitals_monitor.notify.notice import read_notice
from rlvitals_monitor.notify.notification import Notification
from rlvitals_monitor.notify.parcel import Verdict
from rlvitals_monitor.notify.post import build_client, send
from rlvitals_monitor.notify.trial import make_trial
from rlvitals_monitor.store import messages, outbox
from rlvitals_monitor.store.deliveries import Standing, standings
from rlvitals_monitor.store.due import is_due
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.messages import Claim
from rlvitals_monitor.store.outbox import Order
from rlvitals_monitor.store.runs import read_info

BURST_LIMIT = 50
"""Messages to one channel in one call, so that a long list on one channel cannot starve the others."""

Clock = Callable[[], datetime]


def route(conn: Connection, transition: Transition, channels: Channels, now: datetime) -> int:
    """Writes a delivery for each channel that wants this transition; how many are new. Routing twice adds none."""
    hearing = [channel for channel in channels if wants(channel, transition)]
    if any(channel.matchers for channel in hearing):
        run = read_info(conn, transition.alert.run)
        hearing = [c for c in hearing if all(m.matches(transition.alert, run) for m in c.matchers)]
    orders = [Order(channel=channel.name, due=due(channel, transition, now)) for channel in hearing]
    orders += _escalated(transition, hearing, channels, now)
    return outbox.add(conn, transition.id, orders)


def _escalated(
    transition: Transition, hearing: Sequence[Channel], channels: Channels, now: datetime
) -> list[Order]:
    """What channels hear in place of those who do not answer, and of its end."""
    orders: list[Order] = []
    named = {channel.name for channel in hearing}
    for escalation in [channel.escalation for channel in hearing if channel.escalation is not None]:
        other = channels.get(escalation.to)
        if other is None:
            continue
        if transition.after is AlertState.FIRING:
            after = now + timedelta(seconds=escalation.after_s)
            orders.append(Order(channel=other.name, due=after, purpose=outbox.ESCALATION))
        elif other.send_resolved and other.name not in named:
            orders.append(Order(channel=other.name, due=due(other, transition, now)))
    return orders


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
    notification = make_trial(channel, now, public_url)
    if client is not None:
        answer = send(channel, notification, now, client)
    else:
        with build_client() as ours:
            answer = send(channel, notification, now, ours)
    return ChannelTest(channel=channel.name, delivered=answer.verdict is Verdict.DELIVERED, answer=answer.words)


def view_channels(conn: Connection, channels: Channels) -> tuple[ChannelView, ...]:
    """The channels as people may see them: no address but the host, no secret."""
    known = standings(conn)
    return tuple(_view(channel, known.get(channel.name, Standing())) for channel in channels)


def _is_due(store: Store, channel: Channel, now: datetime) -> bool:
    with store.read() as conn:
        return messages.is_due(conn, channel.name, now) or is_due(conn, channel.name, now)


def _running(now: datetime) -> Clock:
    """``now`` and what has passed since: a lease must not be counted from before an earlier time-out."""
    started = time.monotonic()
    return lambda: now + timedelta(seconds=time.monotonic() - started)


def _drain(
    store: Store, channel: Channel, public_url: str, owner: str, clock: Clock, client: httpx2.Client
) -> int:
    sent = 0
    for _ in range(BURST_LIMIT):
        taken = take(store, channel, owner, clock())
        if taken is None:
            break
        notification = _read(store, taken, channel, public_url, clock())
        if notification is None:
            continue
        answer = send(channel, notification, clock(), client)
        sent += 1
        with store.begin() as conn:
            record(conn, channel, taken, answer, clock(), random.random())
        if answer.verdict is Verdict.RETRY:
            break
    return sent


def _read(store: Store, taken: Claim, channel: Channel, public_url: str, now: datetime) -> Notification | None:
    with store.begin() as conn:
        if give_up(conn, taken):
            return None
        notification = read_notice(conn, taken, channel, public_url, now)
        if notification is None:
            messages.record_failed(conn, taken, "nothing in it can be read")
    return notification


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
        dropped=standing.dropped,
        answer=standing.answer,
    )
