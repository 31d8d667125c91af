"""WeCom: 4,096 bytes and not one more, cut between characters."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.contract.report import RunInfo
from rlvitals_monitor.notify import wecom
from rlvitals_monitor.notify.channel import Channel, ChannelKind
from rlvitals_monitor.notify.notification import tell_one
from tests.monitor.planted import NOW, a_transition, an_alert

URL = "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=693a91f6"
CHANNEL = Channel(name="team", kind=ChannelKind.WECOM, url=URL)
LINK = "https://me/ui/run/r1?attempt=t1&from=20&to=220"


def content(name: str = "tiny", link: str = LINK, **alert: object) -> str:
    run = RunInfo(id="r1", name=name, project=name)
    note = tell_one(id="m1", transition=a_transition(an_alert(**alert)), run=run, link=link)
    return str(json.loads(wecom.build(CHANNEL, note, NOW).body)["markdown"]["content"])


@pytest.mark.parametrize("filler", ["好", "🙂", "é", "a", "<"])
def test_the_longest_texts_in_any_script_fit_and_keep_their_link(filler: str) -> None:
    long = filler * 5000
    text = content(long, rule=long, metric=long, summary=long, advice=long)
    assert len(text.encode()) <= wecom.CONTENT_BYTES
    assert text.endswith(f"({LINK})")


@settings(max_examples=40)
@given(text=st.text(max_size=3000))
def test_no_text_leaves_the_bound_or_opens_a_tag(text: str) -> None:
    told = content(text, rule=text, metric=text, summary=text, advice=text)
    assert 0 < len(told.encode()) <= wecom.CONTENT_BYTES
    assert "<" not in told


@pytest.mark.parametrize("name", ["<@all>", "<@userid>", "@all", '<font color="warning">red</font>'])
def test_a_mention_or_a_colour_from_outside_is_only_text(name: str) -> None:
    told = content(name, summary=name, advice=name)
    assert "<" not in told
    assert "@all" not in told
    assert "@userid" not in told


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, ""),
        ({"secret": "x"}, "secret: expected none"),
        ({"url": "https://qyapi.weixin.qq.com/cgi-bin/webhook/send"}, "?key=<key>"),
        ({"url": "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?k=693a91f6"}, "?key=<key>"),
    ],
)
def test_a_channel_that_cannot_work_says_what_was_expected(given: dict[str, str], told: str) -> None:
    words = wecom.check(replace(CHANNEL, **given))  # type: ignore[arg-type]
    assert told in words
    assert (words == "") is (told == "")
    assert "693a91f6" not in words
