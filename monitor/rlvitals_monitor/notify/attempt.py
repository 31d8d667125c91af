"""One attempt to send: the channel's next message is taken, and what came of it is written down."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from rlvitals_monitor.notify.channel import Channel
from rlvitals_monitor.notify.parcel import Answer, Verdict
from rlvitals_monitor.notify.plan import Plan, plan
from rlvitals_monitor.store import messages, outbox, turns
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.messages import Claim, SealLost

ATTEMPTS_LIMIT = 20
BACKOFF_BASE_S = 2.0
BACKOFF_CAP_S = 3600.0
LEASE_MARGIN_S = 60.0
LEASE_TIMES = 6.0
"""Times the channel's time-out: one attempt is up to two POSTs (with the picture, and without), see `PATIENCE`."""
ROUNDS_LIMIT = 20
"""Looks for a message in one go, where each found only what is to wait or to be dropped."""


def take(store: Store, channel: Channel, owner: str, now: datetime) -> Claim | None:
    """Claims the channel's next message, sealing it if need be; None when there is none, or not yet."""
    for _ in range(ROUNDS_LIMIT):
        with store.read() as conn:
            planned = plan(conn, channel, now)
            is_again = messages.is_due(conn, channel.name, now)
        if planned.is_empty and not is_again:
            return None
        try:
            with store.begin() as conn:
                taken, is_done = _take(conn, channel, planned, owner, now)
        except SealLost:
            continue
        if is_done:
            return taken
    return None


def _take(
    conn: Connection, channel: Channel, planned: Plan, owner: str, now: datetime
) -> tuple[Claim | None, bool]:
    """The claim, and whether a further look would change nothing."""
    # First of all, so that processes that change the same deliveries take turns.
    is_turn = turns.lock(conn, channel.name, now)
    for wait, ids in (planned.waits or {}).items():
        outbox.postpone(conn, ids, wait.until, wait.why, silenced=wait.silenced)
    for dropped, ids in (planned.drops or {}).items():
        outbox.drop(conn, ids, dropped.why)
    if not is_turn:
        return None, True
    if channel.budget and turns.spent(conn, channel.name, now) >= channel.budget:
        return None, True
    lease_s = LEASE_MARGIN_S + LEASE_TIMES * channel.timeout_s
    taken = messages.claim(conn, channel.name, owner, now, lease_s=lease_s)
    if taken is None and planned.chosen:
        taken = messages.seal(conn, channel.name, planned.run, planned.chosen, owner, now, lease_s=lease_s)
    if taken is not None:
        turns.take(conn, channel.name, now, channel.gap_s)
    return taken, taken is not None


def give_up(conn: Connection, taken: Claim) -> bool:
    """Ends a message whose attempts were all claimed and never recorded: whatever it does to the process that
    sends it, it shall not do it for ever. False where it may still be tried.
    """
    if taken.attempts <= ATTEMPTS_LIMIT:
        return False
    messages.record_failed(conn, taken, f"given up: {ATTEMPTS_LIMIT} attempts ended without an answer")
    return True


def record(conn: Connection, channel: Channel, taken: Claim, answer: Answer, now: datetime, jitter: float) -> bool:
    """Writes down what came of one attempt. False when it is not ours to say any more.

    A rest that the provider asked for holds the whole channel, also after a message that was the last for now.
    """
    messages.note(conn, taken, answer.verdict.value, answer.words, now)
    if answer.rest_s is not None:
        turns.hold(conn, channel.name, now + timedelta(seconds=answer.rest_s))
    if answer.verdict is Verdict.DELIVERED:
        is_first = messages.record_delivered(conn, taken, answer.words, now)
        if is_first and channel.repeat_s > 0.0:
            outbox.remind(conn, taken.id, now + timedelta(seconds=channel.repeat_s))
        return is_first
    if answer.verdict is Verdict.PERMANENT:
        return messages.record_failed(conn, taken, answer.words)
    if taken.attempts >= ATTEMPTS_LIMIT:
        return messages.record_failed(conn, taken, f"given up after {taken.attempts} attempts: {answer.words}")
    wait_s = max(answer.rest_s or 0.0, backoff_s(taken.attempts, jitter))
    return messages.record_retry(conn, taken, answer.words, now + timedelta(seconds=wait_s))


def backoff_s(attempts: int, jitter: float) -> float:
    """Doubles from `BACKOFF_BASE_S` to `BACKOFF_CAP_S`; ``jitter`` in [0, 1) spreads it over the upper half."""
    whole = min(BACKOFF_BASE_S * 2.0 ** min(attempts - 1, 60), BACKOFF_CAP_S)
    return whole * (0.5 + 0.5 * jitter)
