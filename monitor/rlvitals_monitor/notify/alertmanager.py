"""The body of Alertmanager's webhook (version 4), so that relays that take Alertmanager's take ours."""

from __future__ import annotations

from datetime import datetime, timezone

from rlvitals.contract.alert import AlertState
from rlvitals_monitor.notify.message import TEXT_LIMIT, compose, number, plain
from rlvitals_monitor.notify.notification import Notification

NOT_ENDED = datetime(1, 1, 1, tzinfo=timezone.utc)
"""What Go's empty time reads as: Alertmanager sends it while an alert fires."""


def event(notification: Notification, receiver: str) -> dict[str, object]:
    """One alert, in a group of its own; every label and annotation is a text, as Alertmanager's are."""
    transition, alert = notification.lead.transition, notification.lead.transition.alert
    is_over = transition.after is AlertState.RESOLVED
    labels, annotations = _labels(notification), _annotations(notification)
    one = {
        "status": "resolved" if is_over else "firing",
        "labels": labels,
        "annotations": annotations,
        "startsAt": alert.since_time,
        "endsAt": transition.at if is_over else NOT_ENDED,
        "generatorURL": notification.link,
        "fingerprint": alert.id,
    }
    group = {name: labels[name] for name in ("alertname", "run")}
    return {
        "version": "4",
        "groupKey": f"{{}}:{{run={group['run']!r}, alertname={group['alertname']!r}}}",
        "truncatedAlerts": 0,
        "status": one["status"],
        "receiver": receiver,
        "groupLabels": group,
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": notification.link.partition("/ui/")[0],
        "alerts": [one],
    }


def _labels(notification: Notification) -> dict[str, str]:
    alert, run = notification.lead.transition.alert, notification.lead.run
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


def _annotations(notification: Notification) -> dict[str, str]:
    message, alert = compose(notification), notification.lead.transition.alert
    told = {
        "title": message.title,
        "summary": message.summary,
        "description": message.advice,
        "value": number(alert.value),
        "threshold": "" if alert.threshold is None else number(alert.threshold),
        "run_name": plain(notification.lead.run.name, TEXT_LIMIT),
        "since_step": str(alert.since_step),
        "step": str(notification.lead.transition.step),
    }
    return {name: text for name, text in told.items() if text}
