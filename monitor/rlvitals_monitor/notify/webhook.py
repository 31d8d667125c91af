"""The generic webhook: our JSON, signed as Standard Webhooks says (HMAC-SHA256 over id, time and body)."""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import datetime

from rlvitals.contract import codec
from rlvitals_monitor.notify.channel import Channel, secret_key
from rlvitals_monitor.notify.message import Notification, as_text, compose
from rlvitals_monitor.notify.parcel import Answer, Parcel, Reply, judge_status

BODY_VERSION = 1


def build(channel: Channel, notification: Notification, now: datetime) -> Parcel:
    """The body is the same at every attempt; the time and with it the signature are of this one."""
    body = codec.dumps(_event(notification))
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
    transition = notification.transition
    return {
        "type": f"alert.{transition.after.value}",
        "version": BODY_VERSION,
        "id": notification.id,
        "timestamp": transition.at,
        "run": {
            "id": notification.run.id,
            "name": notification.run.name,
            "project": notification.run.project,
            "framework": notification.run.framework,
            "model": notification.run.model,
        },
        "alert": transition.alert,
        "transition": {
            "id": transition.id,
            "before": transition.before,
            "after": transition.after,
            "step": transition.step,
            "at": transition.at,
            "reason": transition.reason,
        },
        "link": notification.link,
        "text": as_text(compose(notification)),
    }
