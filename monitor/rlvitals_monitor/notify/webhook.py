"""The generic webhook: our JSON or Alertmanager's body, signed as Standard Webhooks says (HMAC-SHA256)."""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import replace
from datetime import datetime

from rlvitals.contract import codec
from rlvitals.contract.alert import Alert
from rlvitals_monitor.notify import alertmanager
from rlvitals_monitor.notify.channel import Channel, secret_key
from rlvitals_monitor.notify.message import TEXT_LIMIT, as_text, clip, compose
from rlvitals_monitor.notify.notification import Notification
from rlvitals_monitor.notify.parcel import Answer, Parcel, Reply, judge_status

BODY_VERSION = 1
BODIES = ("rlvitals", "alertmanager")
OPTIONS = ("body",)


def check(channel: Channel) -> str:
    if channel.options.get("body", BODIES[0]) not in BODIES:
        return f"body: expected one of {', '.join(BODIES)}"
    return ""


def build(channel: Channel, notification: Notification, now: datetime) -> Parcel:
    """The body is the same at every attempt; the time and with it the signature are of this one."""
    body = codec.dumps(
        alertmanager.event(notification, channel.name)
        if channel.options.get("body") == BODIES[1]
        else _event(notification)
    )
    headers = {"webhook-id": notification.id, "webhook-timestamp": str(int(now.timestamp()))}
    if channel.secret:
        headers["webhook-signature"] = sign(channel.secret, notification.id, int(now.timestamp()), body)
    return Parcel(body=body, headers=headers)


def judge(reply: Reply, now: datetime) -> Answer:
    return judge_status(reply, now)


def sign(secret: str, event_id: str, timestamp_s: int, body: bytes) -> str:
    """``v1,`` and the base64 HMAC-SHA256 of "id.timestamp.body"."""
    signed = f"{event_id}.{timestamp_s}.".encode() + body
    digest = hmac.new(secret_key(secret), signed, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode("ascii")


def _event(notification: Notification) -> dict[str, object]:
    transition = notification.lead.transition
    return {
        "type": f"alert.{transition.after.value}",
        "version": BODY_VERSION,
        "id": notification.id,
        "timestamp": transition.at,
        "run": {
            "id": notification.lead.run.id,
            "name": _cut(notification.lead.run.name),
            "project": _cut(notification.lead.run.project),
            "framework": _cut(notification.lead.run.framework),
            "model": _cut(notification.lead.run.model),
        },
        "alert": _bounded(transition.alert),
        "transition": {
            "id": transition.id,
            "before": transition.before,
            "after": transition.after,
            "step": transition.step,
            "at": transition.at,
            "reason": _cut(transition.reason),
        },
        "link": notification.link,
        "text": as_text(compose(notification)),
    }


def _bounded(alert: Alert) -> Alert:
    """Texts come from training processes: none makes a body that a receiver would not take."""
    return replace(
        alert,
        rule=_cut(alert.rule),
        metric=_cut(alert.metric),
        summary=_cut(alert.summary),
        advice=_cut(alert.advice),
    )


def _cut(text: str) -> str:
    return clip(text[: TEXT_LIMIT + 1].encode("utf-8", errors="replace").decode(), characters=TEXT_LIMIT)
