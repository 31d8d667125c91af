"""The generic webhook's body and its signature, checked by another implementation and by the published vector."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping

import pytest

from rlvitals.contract.report import RunInfo
from rlvitals_monitor.notify import webhook
from rlvitals_monitor.notify.channel import Channel, ChannelKind
from rlvitals_monitor.notify.notification import Notification, tell_one
from tests.monitor.notify.conftest import SECRET
from tests.monitor.planted import NOW, a_transition, an_alert, later

CHANNEL = Channel(name="pager", kind=ChannelKind.WEBHOOK, url="https://pager.example/h", secret=SECRET)


def note(**alert: object) -> Notification:
    return tell_one(id="msg_1", transition=a_transition(an_alert(**alert)), run=RunInfo(id="r1", name="<b>"))


def verified(headers: Mapping[str, str], body: bytes, key: bytes) -> bool:
    """HMAC-SHA256 spelt out from its definition (RFC 2104), so that it shares nothing with what it checks."""
    block = key.ljust(64, b"\0") if len(key) <= 64 else hashlib.sha256(key).digest().ljust(64, b"\0")
    message = b".".join([headers["webhook-id"].encode(), headers["webhook-timestamp"].encode(), body])
    inner = hashlib.sha256(bytes(b ^ 0x36 for b in block) + message).digest()
    outer = hashlib.sha256(bytes(b ^ 0x5C for b in block) + inner).digest()
    return headers["webhook-signature"] == "v1," + base64.b64encode(outer).decode()


def test_the_signature_is_the_one_of_the_standards_own_example() -> None:
    signature = webhook.sign(SECRET, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("secret", [SECRET, "any text at all", "ü" * 80])
def test_a_receiver_with_its_own_implementation_can_verify_it(secret: str) -> None:
    channel = Channel(name="pager", kind=ChannelKind.WEBHOOK, url="https://pager.example/h", secret=secret)
    parcel = webhook.build(channel, note(), NOW)
    key = base64.b64decode(secret[6:]) if secret.startswith("whsec_") else secret.encode()
    assert verified(parcel.headers, parcel.body, key)
    assert not verified(parcel.headers, parcel.body + b" ", key)
    assert not verified({**parcel.headers, "webhook-id": "msg_2"}, parcel.body, key)


def test_without_a_secret_there_is_no_signature_but_an_id() -> None:
    channel = Channel(name="pager", kind=ChannelKind.WEBHOOK, url="https://pager.example/h")
    assert set(webhook.build(channel, note(), NOW).headers) == {"webhook-id", "webhook-timestamp"}


def test_a_later_attempt_has_the_same_id_and_body_and_a_signature_of_its_own_time() -> None:
    first, second = webhook.build(CHANNEL, note(), NOW), webhook.build(CHANNEL, note(), later(60))
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == "msg_1"
    assert first.headers["webhook-signature"] != second.headers["webhook-signature"]
    assert int(second.headers["webhook-timestamp"]) - int(first.headers["webhook-timestamp"]) == 60


@pytest.mark.parametrize(
    ("value", "written"),
    [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity"), (None, None), (1.5, 1.5)],
)
def test_the_four_kinds_of_no_number_stay_apart_in_the_body(value: float | None, written: object) -> None:
    body = webhook.build(CHANNEL, note(value=value), NOW).body
    assert json.loads(body, parse_constant=pytest.fail)["alert"]["value"] == written


def test_the_body_tells_event_run_alert_transition_and_link() -> None:
    told = json.loads(webhook.build(CHANNEL, note(), NOW).body)
    assert (told["type"], told["version"], told["id"]) == ("alert.firing", 1, "msg_1")
    assert told["timestamp"] == "2026-05-04T12:00:00Z"
    assert told["run"]["name"] == "<b>"
    assert told["alert"]["rule"] == "kl_pull_dominates"
    assert told["alert"]["proposal"] == {"kind": "set_kl_coef", "argument": 0.05, "knob": ""}
    assert told["transition"]["before"] == "pending"
    assert told["transition"]["step"] == 120
