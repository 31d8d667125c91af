"""Discord: nothing in an embed acts, no text leaves its limits, and its clock is read in the right unit."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.contract.alert import Severity
from rlvitals.contract.report import RunInfo
from rlvitals_monitor.notify import discord
from rlvitals_monitor.notify.channel import Channel, ChannelKind
from rlvitals_monitor.notify.notification import Notification, tell_one
from rlvitals_monitor.notify.parcel import RETRY_AFTER_CAP_S, Reply, Verdict
from tests.monitor.notify.provider import Got
from tests.monitor.notify.providers.discord import Discord
from tests.monitor.planted import NOW, a_transition, an_alert, resolved

URL = "https://discord.com/api/webhooks/1/t0ken"
CHANNEL = Channel(name="discord", kind=ChannelKind.DISCORD, url=URL)
LINK = "https://me/ui/run/r1?attempt=t1&from=20&to=220"
ESCAPED = re.compile(r"\\[^0-9A-Za-z\s]")


def note(name: str = "tiny", project: str = "demo", **alert: object) -> Notification:
    run = RunInfo(id="r1", name=name, project=project)
    return tell_one(id="m1", transition=a_transition(an_alert(**alert)), run=run, link=LINK)


def body_of(notification: Notification) -> dict[str, Any]:
    return dict(json.loads(discord.build(CHANNEL, notification, NOW).body))


@pytest.mark.parametrize(
    "text",
    [
        "<@123> <@!123> <@&1> <#1> <:smile:1> <a:b:1> <t:0:R> </stop:1> <id:browse>",
        "[click](https://evil.example) ||spoiler|| **b** __u__ ~~s~~ `c` ```x```",
        "# big",
        "-# small",
        ">>> quote",
        "\\*not escaped\\*",
    ],
)
def test_of_what_a_run_says_no_sign_of_markup_is_left_unescaped(text: str) -> None:
    body = body_of(note(text, text, rule=text, metric=text, summary=text, advice=text))
    (embed,) = body["embeds"]
    texts = [embed["title"], embed["description"].rsplit("\n\n", 1)[0]]
    texts += [words for field in embed["fields"] for words in (field["name"], field["value"])]
    for words in texts:
        assert not set(ESCAPED.sub("", words)) & set("*_~`|<>[]()#\\")
    assert embed["description"].endswith(f"\n\n[Open the run at step 120]({LINK})")


def test_nobody_can_be_mentioned_and_the_preview_holds_nothing_from_outside() -> None:
    body = body_of(note("@everyone"))
    assert body["allowed_mentions"] == {"parse": []}
    assert body["content"] == "RL Vitals: WARNING"


@settings(max_examples=40)
@given(name=st.text(max_size=300), words=st.text(max_size=3000))
def test_no_text_leaves_discords_limits(name: str, words: str) -> None:
    parcel = discord.build(CHANNEL, note(name, name, rule=name, metric=name, summary=words, advice=words), NOW)
    assert list(Discord().faults(Got(path="/?wait=true", headers={}, body=parcel.body))) == []


@pytest.mark.parametrize("filler", ["*", "好", "🙂", "é"])
def test_texts_that_grow_by_escaping_still_fit_and_are_not_cut_within_an_escape(filler: str) -> None:
    long = filler * 5000
    parcel = discord.build(CHANNEL, note(long, long, rule=long, metric=long, summary=long, advice=long), NOW)
    assert list(Discord().faults(Got(path="/?wait=true", headers={}, body=parcel.body))) == []
    for text in re.findall(r'"(?:title|value)": "((?:[^"\\]|\\.)*)"', parcel.body.decode()):
        assert not json.loads(f'"{text}"').rstrip("…").replace("\\\\", "").replace("\\*", "").endswith("\\")


def test_an_empty_project_is_a_dash_since_discord_takes_no_empty_field() -> None:
    (embed,) = body_of(note(project=""))["embeds"]
    assert {field["name"]: field["value"] for field in embed["fields"]}["Project"] == discord.NOTHING


def test_the_colour_tells_severity_and_the_end() -> None:
    colours = [body_of(note(severity=severity))["embeds"][0]["color"] for severity in Severity]
    over = body_of(tell_one(id="m1", transition=resolved(a_transition()), run=RunInfo(id="r1")))
    assert len({*colours, over["embeds"][0]["color"]}) == 4
    assert over["content"] == "RL Vitals: RESOLVED"


def answered(status: int, body: bytes = b"", **headers: str) -> tuple[Verdict, float | None]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = discord.judge(Reply(status=status, headers=named, body=body), NOW)
    return answer.verdict, answer.rest_s


def test_204_is_delivered_and_the_last_message_of_a_bucket_asks_for_a_rest() -> None:
    assert answered(204) == (Verdict.DELIVERED, None)
    assert answered(204, x_ratelimit_remaining="4", x_ratelimit_reset_after="1.5") == (Verdict.DELIVERED, None)
    assert answered(204, x_ratelimit_remaining="0", x_ratelimit_reset_after="1.5") == (Verdict.DELIVERED, 1.5)
    assert answered(200, b'{"id":"1"', x_ratelimit_remaining="0") == (Verdict.DELIVERED, None)


@pytest.mark.parametrize(
    ("body", "rest_s"),
    [
        (b'{"retry_after": 0.3}', 0.3),
        (b'{"retry_after": "12"}', 12.0),
        (b'{"retry_after": -5}', 0.0),
        (b'{"retry_after": 1e999}', RETRY_AFTER_CAP_S),
        (b'{"retry_after": NaN}', None),
        (b'{"retry_after": Infinity}', RETRY_AFTER_CAP_S),
        (b'{"retry_after": -Infinity}', 0.0),
        (b'{"retry_after": null}', None),
        (b'{"retry_after": true}', None),
        (b"{}", None),
        (b"", None),
    ],
)
def test_a_wait_that_is_missing_or_no_number_is_none(body: bytes, rest_s: float | None) -> None:
    assert answered(429, body) == (Verdict.RETRY, rest_s)


@pytest.mark.parametrize(
    ("url", "fine"),
    [
        (URL, True),
        ("https://discord.com/api/v10/webhooks/1/t0ken", True),
        ("https://discordapp.com/api/webhooks/1/t0ken?thread_id=2", True),
        ("https://discord.com/api/webhooks/1/t0ken/slack", False),
        ("https://discord.com/channels/1/2", False),
    ],
)
def test_only_the_address_of_a_webhook_is_taken(url: str, fine: bool) -> None:
    told = discord.check(replace(CHANNEL, url=url))
    assert (told == "") is fine
    assert "t0ken" not in told
    assert "secret" in discord.check(replace(CHANNEL, secret="x"))
