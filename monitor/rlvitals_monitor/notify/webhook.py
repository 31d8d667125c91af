"""The generic webhook: our JSON or Alertmanager's body, signed as Standard Webhooks says (HMAC-SHA256)."""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import replace
from datetime import datetime

from rlvitals.contract import codec
from rlvitals.contract.alert import Alert
from rlvitals.contract.report import RunInfo
from rlvitals_monitor.notify import alertmanager
from rlvitals_monitor.notify.channel import Channel, secret_key
from rlvitals_monitor.notify.compose import compose
from rlvitals_monitor.notify.digest import totals
from rlvitals_monitor.notify.message import as_text
from rlvitals_monitor.notify.notification import Diagnosis, Item, Notification, RunCount, Sample
from rlvitals_monitor.notify.parcel import Answer, Parcel, Reply, judge_status
from rlvitals_monitor.notify.plain_text import SAMPLE_LIMIT, TEXT_LIMIT, clip, spelt
from rlvitals_monitor.notify.trend import sparkline

BODY_VERSION = 1
CHANGES = 12
"""Of a message of more changes the rest is only counted, as in its text."""
RUNS = 20
RULES = 3
SHORT = 200
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
    """``run``, ``alert`` and ``transition`` are of the first change; ``changes`` has them all."""
    message, lead, extras = compose(notification), notification.lead, notification.extras
    return {
        "type": f"alert.{lead.transition.after.value}",
        "version": BODY_VERSION,
        "id": notification.id,
        "timestamp": lead.transition.at,
        **_change(lead),
        "changes": [_change_of(item) for item in notification.items[:CHANGES]],
        "counts": [_count(count) for count in notification.counts[:RUNS]],
        "totals": dict(zip(("firing", "resolved"), totals(notification.counts), strict=True)),
        "diagnosis": _diagnosis(extras.diagnosis),
        "trend": None if extras.trend is None else sparkline(extras.trend),
        "sample": _sample(extras.sample),
        "link": notification.link,
        "links": [{"text": link.text, "url": link.url} for link in message.links],
        "text": as_text(message),
    }


def _change(item: Item) -> dict[str, object]:
    transition = item.transition
    return {
        "run": _run(item.run),
        "alert": _bounded(transition.alert),
        "transition": {
            "id": transition.id,
            "before": transition.before,
            "after": transition.after,
            "step": transition.step,
            "at": transition.at,
            "reason": _cut(transition.reason),
        },
    }


def _change_of(item: Item) -> dict[str, object]:
    transition, alert = item.transition, item.transition.alert
    return {
        "id": transition.id,
        "run_id": item.run.id,
        "alert_id": alert.id,
        "rule": _cut(alert.rule, SHORT),
        "severity": alert.severity,
        "before": transition.before,
        "after": transition.after,
        "since_step": alert.since_step,
        "step": transition.step,
        "at": transition.at,
        "metric": _cut(alert.metric, SHORT),
        "value": alert.value,
        "threshold": alert.threshold,
        "summary": _cut(alert.summary, SHORT),
        "symptom_of": _cut(item.symptom_of, SHORT),
        "purpose": item.purpose,
        "link": item.link,
    }


def _diagnosis(found: Diagnosis | None) -> dict[str, object] | None:
    if found is None:
        return None
    return {
        "headline": _cut(found.headline),
        "confidence": found.confidence,
        "advice": _cut(found.advice),
        "change": {key: _cut(text) for key, text in found.change},
        "isnt": _cut(found.isnt),
    }


def _sample(sample: Sample | None) -> dict[str, object] | None:
    if sample is None:
        return None
    completion = spelt(sample.completion, SAMPLE_LIMIT)
    return {"step": sample.step, "why": sample.why, "reward": sample.reward, "completion": completion}


def _count(count: RunCount) -> dict[str, object]:
    return {
        "run_id": count.run.id,
        "name": _cut(count.run.name, SHORT),
        "project": _cut(count.run.project, SHORT),
        "firing": count.firing,
        "resolved": count.resolved,
        "severity": count.severity,
        "rules": [{"rule": _cut(rule, SHORT), "changes": changes} for rule, changes in count.rules[:RULES]],
        "link": count.link,
    }


def _run(run: RunInfo) -> dict[str, str]:
    return {
        "id": run.id,
        "name": _cut(run.name),
        "project": _cut(run.project),
        "framework": _cut(run.framework),
        "model": _cut(run.model),
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


def _cut(text: str, limit: int = TEXT_LIMIT) -> str:
    return clip(text[: limit + 1].encode("utf-8", errors="replace").decode(), characters=limit)
