"""A receiver of Standard Webhooks: verifies id, time and signature before it looks at the body."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, ClassVar

from rlvitals_monitor.notify.channel import ChannelKind
from tests.monitor.notify.provider import Got, Said
from tests.monitor.notify.providers import HttpSimulator
from tests.monitor.planted import NOW

KEY = b"a key of twenty-four b.."
TOLERANCE_S = 300


class Webhook(HttpSimulator):
    kind = ChannelKind.WEBHOOK
    host = "pager.example"
    path = "/hooks/rl?team=vitals"
    secret = "whsec_" + base64.b64encode(KEY).decode()
    most_bytes = 128 * 1024
    ok = Said(status=204, body=b"")
    rejected = Said(status=401, body=b"bad signature or body")

    def faults(self, got: Got) -> Iterator[str]:
        event, moment = got.headers.get("webhook-id", ""), got.headers.get("webhook-timestamp", "")
        if not event or "." in event:
            yield f"webhook-id is {event!r}"
        if not moment.isdecimal() or abs(int(moment) - NOW.timestamp()) > TOLERANCE_S:
            yield f"webhook-timestamp is {moment!r}"
        signed = b".".join([event.encode(), moment.encode(), got.body])
        expected = "v1," + base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
        if expected not in got.headers.get("webhook-signature", "").split(" "):
            yield "the signature does not match"
        body = json.loads(got.body, parse_constant=lambda word: f"not JSON: {word}")
        yield from self.body_faults(body)
        if "not JSON: " in str(body):
            yield "body holds NaN or Infinity, which are not JSON"

    def body_faults(self, body: dict[str, Any]) -> Iterator[str]:
        if missing := {"type", "timestamp"} - set(body):
            yield f"body lacks {missing}"

    def text(self, got: Got) -> str:
        return str(json.loads(got.body)["text"])


class AlertmanagerRelay(Webhook):
    """A relay that reads Alertmanager's webhook, version 4, into its own types."""

    options: ClassVar = {"body": "alertmanager"}

    def body_faults(self, body: dict[str, Any]) -> Iterator[str]:
        expected = {"version", "groupKey", "truncatedAlerts", "status", "receiver", "alerts", "externalURL"}
        expected |= {"groupLabels", "commonLabels", "commonAnnotations"}
        if set(body) != expected or body["version"] != "4":
            yield f"keys {sorted(set(body) ^ expected)}, version {body.get('version')}"
        statuses = {alert["status"] for alert in body["alerts"]}
        if body["status"] != ("firing" if "firing" in statuses else "resolved"):
            yield f"status {body['status']} of {statuses}"
        for alert in body["alerts"]:
            yield from self._alert_faults(body, alert)

    def _alert_faults(self, body: dict[str, Any], alert: dict[str, Any]) -> Iterator[str]:
        for kept in (body["groupLabels"], body["commonLabels"], alert["labels"], alert["annotations"]):
            yield from (f"{name} is {value!r}" for name, value in kept.items() if not isinstance(value, str))
            yield from (f"label {name}" for name in kept if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name))
        starts, ends = (_moment(alert[name]) for name in ("startsAt", "endsAt"))
        if (ends.year == 1) is not (alert["status"] == "firing") or (ends.year != 1 and ends < starts):
            yield f"from {starts} to {ends} while {alert['status']}"

    def text(self, got: Got) -> str:
        lines: list[str] = []
        for alert in json.loads(got.body)["alerts"]:
            kept = {**alert["labels"], **alert["annotations"]}
            lines += [*(f"{name}: {value}" for name, value in kept.items()), alert["generatorURL"]]
        return "\n".join(lines)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
