"""The body of Alertmanager's webhook (version 4), so that relays that take Alertmanager's take ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

from rlvitals.contract.alert import AlertState
from rlvitals_monitor.notify.compose import compose
from rlvitals_monitor.notify.digest import totals
from rlvitals_monitor.notify.message import Message, as_text
from rlvitals_monitor.notify.notification import Item, Notification
from rlvitals_monitor.notify.plain_text import TEXT_LIMIT, number, plain

ALERTS = 20
NOT_ENDED = datetime(1, 1, 1, tzinfo=timezone.utc)
"""What Go's empty time reads as: Alertmanager sends it while an alert fires."""


def event(notification: Notification, receiver: str) -> dict[str, object]:
    """All alerts of the message as one group; every label and annotation is a text, as Alertmanager's are."""
    shown, message = notification.items[:ALERTS], compose(notification)
    alerts = [_alert(item, message if item is notification.lead else None) for item in shown]
    labels = [_labels(item) for item in shown]
    annotations = [_annotations(item, message if item is notification.lead else None) for item in shown]
    group = {} if notification.run is None else {"run": labels[0]["run"]}
    if len(shown) == 1:
        group = {name: labels[0][name] for name in ("alertname", "run")}
    return {
        "version": "4",
        "groupKey": f"{{}}:{{{', '.join(f'{name}={text!r}' for name, text in group.items())}}}",
        "truncatedAlerts": max(_changes(notification) - len(shown), 0),
        "status": "resolved" if notification.is_over else "firing",
        "receiver": receiver,
        "groupLabels": group,
        "commonLabels": _common(labels),
        "commonAnnotations": _common(annotations),
        "externalURL": notification.link.partition("/ui/")[0],
        "alerts": alerts,
    }


def _changes(notification: Notification) -> int:
    return max(sum(totals(notification.counts)), len(notification.items))


def _common(told: Sequence[Mapping[str, str]]) -> dict[str, str]:
    return {name: text for name, text in told[0].items() if all(one.get(name) == text for one in told)}


def _alert(item: Item, message: Message | None) -> dict[str, object]:
    transition, alert = item.transition, item.transition.alert
    is_over = transition.after is AlertState.RESOLVED
    return {
        "status": "resolved" if is_over else "firing",
        "labels": _labels(item),
        "annotations": _annotations(item, message),
        "startsAt": alert.since_time,
        "endsAt": transition.at if is_over else NOT_ENDED,
        "generatorURL": item.link,
        "fingerprint": alert.id,
    }


def _labels(item: Item) -> dict[str, str]:
    alert, run = item.transition.alert, item.run
    told = {
        "alertname": alert.rule,
        "severity": alert.severity.value,
        "run": run.id,
        "project": run.project,
        "framework": run.framework,
        "model": run.model,
        "metric": alert.metric,
        "attempt": alert.attempt,
    }
    return {name: plain(text, TEXT_LIMIT) for name, text in told.items() if text}


def _annotations(item: Item, message: Message | None) -> dict[str, str]:
    """With what the whole message shows at its first alert only."""
    alert = item.transition.alert
    shown = as_text(message) if message is not None else ""
    told = {
        "title": message.title if message is not None else "",
        "summary": plain(alert.summary, TEXT_LIMIT),
        "description": plain(alert.advice, TEXT_LIMIT) if item.transition.after is AlertState.FIRING else "",
        "text": shown,
        "symptom_of": plain(item.symptom_of, TEXT_LIMIT),
        "value": number(alert.value),
        "threshold": "" if alert.threshold is None else number(alert.threshold),
        "run_name": plain(item.run.name, TEXT_LIMIT),
        "since_step": str(alert.since_step),
        "step": str(item.transition.step),
    }
    return {name: text for name, text in told.items() if text}
