"""DingTalk: its signature in the address against the definition of HMAC, and nobody mentioned."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.contract.report import RunInfo
from rlvitals_monitor.notify import dingtalk
from rlvitals_monitor.notify.channel import Channel, ChannelKind
from rlvitals_monitor.notify.notification import tell_one
from rlvitals_monitor.notify.parcel import Parcel
from tests.monitor.planted import NOW, a_transition, an_alert, later

URL = "https://oapi.dingtalk.com/robot/send?access_token=t0ken"
CHANNEL = Channel(name="team", kind=ChannelKind.DINGTALK, url=URL, secret="SECfake")


def built(name: str = "tiny", **alert: object) -> Parcel:
    run = RunInfo(id="r1", name=name, project=name)
    note = tell_one(id="m1", transition=a_transition(an_alert(**alert)), run=run, link="https://me/ui/run/r1")
    return dingtalk.build(CHANNEL, note, NOW)


def hmac_of(key: bytes, signed: bytes) -> str:
    """RFC 2104 spelt out, sharing nothing with what it checks."""
    block = key.ljust(64, b"\0") if len(key) <= 64 else hashlib.sha256(key).digest().ljust(64, b"\0")
    inner = hashlib.sha256(bytes(b ^ 0x36 for b in block) + signed).digest()
    return base64.b64encode(hashlib.sha256(bytes(b ^ 0x5C for b in block) + inner).digest()).decode()


@pytest.mark.parametrize("secret", ["SECfake", "SEC" + "f" * 80])
def test_the_signature_is_of_time_and_secret_under_the_secret(secret: str) -> None:
    expected = hmac_of(secret.encode(), f"1577262236757\n{secret}".encode())
    assert dingtalk.sign(secret, 1577262236757) == expected


def test_each_attempt_is_signed_for_its_own_time_in_the_address_and_the_body_stays() -> None:
    note = tell_one(id="m1", transition=a_transition(), run=RunInfo(id="r1"))
    first, second = (dingtalk.build(CHANNEL, note, at) for at in (NOW, later(60)))
    assert int(second.query["timestamp"]) - int(first.query["timestamp"]) == 60_000
    assert first.query["sign"] != second.query["sign"]
    assert first.body == second.body
    assert dingtalk.build(replace(CHANNEL, secret=""), note, NOW).query == {}


@settings(max_examples=40)
@given(text=st.text(max_size=3000))
def test_no_text_makes_a_body_that_dingtalk_would_not_take(text: str) -> None:
    body = built(text, rule=text, metric=text, summary=text, advice=text).body
    told = json.loads(body)
    assert len(body) <= 20_000
    assert told["markdown"]["title"]
    assert told["at"] == {"atMobiles": [], "atUserIds": [], "isAtAll": False}


def test_a_name_that_looks_like_a_mention_is_none_in_title_and_text() -> None:
    told = json.loads(built("@all @13800138000", rule="@所有人").body)["markdown"]
    for text in (told["title"], told["text"]):
        assert not any(name in text for name in ("@all", "@138", "@所有人"))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, ""),
        ({"secret": ""}, ""),
        ({"secret": "fake"}, "starts with SEC"),
        ({"url": "https://oapi.dingtalk.com/robot/send"}, "access_token=<token>"),
        ({"url": "https://oapi.dingtalk.com/other?access_token=t0ken"}, "access_token=<token>"),
    ],
)
def test_a_channel_that_cannot_work_says_what_was_expected(given: dict[str, str], told: str) -> None:
    words = dingtalk.check(replace(CHANNEL, **given))  # type: ignore[arg-type]
    assert told in words
    assert (words == "") is (told == "")
    assert "t0ken" not in words
