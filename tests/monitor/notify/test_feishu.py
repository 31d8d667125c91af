"""Feishu: its signature against the definition of HMAC, plain text only, and its limit in bytes."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.contract.alert import Severity
from rlvitals.contract.report import RunInfo
from rlvitals_monitor.notify import feishu
from rlvitals_monitor.notify.channel import Channel, ChannelKind
from rlvitals_monitor.notify.notification import Notification, tell_one
from rlvitals_monitor.notify.parcel import Reply, Verdict
from tests.monitor.notify.provider import Got
from tests.monitor.notify.providers.feishu import Feishu
from tests.monitor.planted import NOW, a_transition, an_alert, later, resolved

URL = "https://open.feishu.cn/open-apis/bot/v2/hook/0f9d3c2a-1111"
CHANNEL = Channel(name="team", kind=ChannelKind.FEISHU, url=URL, secret=Feishu.secret)
LINK = "https://me/ui/run/r1?attempt=t1&from=20&to=220"


def note(name: str = "tiny", **alert: object) -> Notification:
    run = RunInfo(id="r1", name=name, project=name)
    return tell_one(id="m1", transition=a_transition(an_alert(**alert)), run=run, link=LINK)


def hmac_of_nothing(key: bytes) -> str:
    """RFC 2104 spelt out, sharing nothing with what it checks."""
    block = key.ljust(64, b"\0") if len(key) <= 64 else hashlib.sha256(key).digest().ljust(64, b"\0")
    inner = hashlib.sha256(bytes(b ^ 0x36 for b in block)).digest()
    return base64.b64encode(hashlib.sha256(bytes(b ^ 0x5C for b in block) + inner).digest()).decode()


@pytest.mark.parametrize("secret", ["", "demo", "密" * 40])
def test_the_signature_is_that_of_nothing_under_time_and_secret(secret: str) -> None:
    assert feishu.sign(secret, 1599360473) == hmac_of_nothing(f"1599360473\n{secret}".encode())


def test_each_attempt_is_signed_for_its_own_time_and_without_a_secret_there_is_no_signature() -> None:
    first, second = (json.loads(feishu.build(CHANNEL, note(), at).body) for at in (NOW, later(60)))
    assert int(second["timestamp"]) - int(first["timestamp"]) == 60
    assert first["sign"] != second["sign"]
    assert first["card"] == second["card"]
    assert set(json.loads(feishu.build(replace(CHANNEL, secret=""), note(), NOW).body)) == {"msg_type", "card"}


@settings(max_examples=40)
@given(name=st.text(max_size=300), words=st.text(max_size=3000))
def test_no_text_makes_a_card_that_feishu_would_not_take(name: str, words: str) -> None:
    parcel = feishu.build(CHANNEL, note(name, rule=name, metric=name, summary=words, advice=words), NOW)
    assert list(Feishu().faults(Got(path="", headers={}, body=parcel.body))) == []


@pytest.mark.parametrize("filler", ["好", "🙂", '"', "\\", "é"])
def test_the_longest_texts_stay_within_20_kilobytes(filler: str) -> None:
    long = filler * 5000
    body = feishu.build(CHANNEL, note(long, rule=long, metric=long, summary=long, advice=long), NOW).body
    assert len(body) < Feishu.most_bytes
    assert "\ufffd" not in body.decode("utf-8")


def test_the_colour_tells_severity_and_the_end() -> None:
    notes = [note(severity=severity) for severity in Severity]
    notes.append(tell_one(id="m1", transition=resolved(a_transition()), run=RunInfo(id="r1")))
    bodies = [json.loads(feishu.build(CHANNEL, n, NOW).body) for n in notes]
    assert [b["card"]["header"]["template"] for b in bodies] == ["blue", "orange", "red", "green"]


def test_those_who_were_turned_away_together_come_back_apart() -> None:
    busy = Reply(status=200, headers={}, body=b'{"code":11232,"msg":"frequency limited"}')
    answers = [feishu.judge(busy, NOW + timedelta(milliseconds=100 * i)) for i in range(10)]
    rests = [answer.rest_s for answer in answers]
    assert {answer.verdict for answer in answers} == {Verdict.RETRY}
    assert len(set(rests)) == 10
    assert all(rest is not None and 5.0 <= rest < 30.0 for rest in rests)


@pytest.mark.parametrize(
    ("url", "fine"),
    [
        (URL, True),
        (URL.replace("feishu.cn", "larksuite.com"), True),
        ("https://open.feishu.cn/open-apis/bot/hook/0f9d3c2a-1111", False),
        ("https://www.feishu.cn/", False),
    ],
)
def test_only_the_address_of_a_custom_bot_is_taken(url: str, fine: bool) -> None:
    told = feishu.check(replace(CHANNEL, url=url))
    assert (told == "") is fine
    assert "0f9d3c2a" not in told


def test_a_message_without_an_own_address_has_no_button() -> None:
    card = json.loads(feishu.build(CHANNEL, replace(note(), link=""), NOW).body)["card"]
    assert [element["tag"] for element in card["elements"]] == ["div"] * 3
