"""A receiver of Standard Webhooks: verifies id, time and signature before it looks at the body."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator

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
    most_bytes = 64 * 1024
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
        if missing := {"type", "timestamp"} - set(body):
            yield f"body lacks {missing}"
        if "not JSON: " in str(body):
            yield "body holds NaN or Infinity, which are not JSON"

    def text(self, got: Got) -> str:
        return str(json.loads(got.body)["text"])
