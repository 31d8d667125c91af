"""Telegram: well-formed HTML with nothing active in it, and a bot's token that is never told."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.contract.report import RunInfo
from rlvitals_monitor.notify import telegram
from rlvitals_monitor.notify.channel import Channel, ChannelKind
from rlvitals_monitor.notify.notification import Notification, tell_one
from rlvitals_monitor.notify.parcel import RETRY_AFTER_CAP_S, Reply, Verdict
from rlvitals_monitor.notify.post import send
from tests.monitor.notify.conftest import Opened
from tests.monitor.notify.provider import Got, Said
from tests.monitor.notify.providers.telegram import Page, Telegram
from tests.monitor.planted import NOW, a_transition, an_alert

TOKEN = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDfake"
URL = f"https://api.telegram.org/bot{TOKEN}/sendMessage"
CHANNEL = Channel(name="bot", kind=ChannelKind.TELEGRAM, url=URL, options=Telegram.options)


def note(name: str = "tiny", **alert: object) -> Notification:
    run = RunInfo(id="r1", name=name, project=name)
    link = "https://me/ui/run/r1?attempt=t1&from=20&to=220"
    return tell_one(id="m1", transition=a_transition(an_alert(**alert)), run=run, link=link)


def built(notification: Notification, channel: Channel = CHANNEL) -> bytes:
    return telegram.build(channel, notification, NOW).body


@settings(max_examples=40)
@given(name=st.text(max_size=300), words=st.text(max_size=3000))
def test_no_text_makes_a_message_that_telegram_would_not_take_or_act_on(name: str, words: str) -> None:
    body = built(note(name, rule=name, metric=name, summary=words, advice=words))
    assert list(Telegram().faults(Got(path="", headers={}, body=body))) == []


@pytest.mark.parametrize(
    "text",
    [
        "/stop@bot /help",
        "#hashtag $USD @username evil.example",
        '<a href="tg://user?id=1">x</a>',
        "</code><b>out</b>",
        "&lt;code&gt; &#60;b&#62; &amp;",
        "<tg-spoiler>x</tg-spoiler><pre>",
    ],
)
def test_what_telegram_would_make_active_stays_text_and_is_shown_as_it_came(text: str) -> None:
    body = built(note(text, rule=text, summary=text, advice=text))
    assert list(Telegram().faults(Got(path="", headers={}, body=body))) == []
    page = Page()
    page.feed(json.loads(body)["text"])
    shown = "".join(page.shown).replace("\u200b", "")
    assert text in shown


@pytest.mark.parametrize("filler", ["好", "🙂", "&", "<", "a"])
def test_the_longest_texts_fit_4096_characters_as_telegram_counts_them(filler: str) -> None:
    long = filler * 5000
    body = built(note(long, rule=long, metric=long, summary=long, advice=long))
    assert list(Telegram().faults(Got(path="", headers={}, body=body))) == []


def test_a_chat_without_topics_gets_none() -> None:
    body = json.loads(built(note(), replace(CHANNEL, options={"chat_id": "@my_channel"})))
    assert body["chat_id"] == "@my_channel"
    assert "message_thread_id" not in body


def said(status: int, body: bytes) -> Reply:
    return Reply(status=status, headers={}, body=body)


def test_a_delivered_message_is_told_by_its_number_even_where_the_reply_was_cut() -> None:
    answer = telegram.judge(said(200, Telegram.ok.body[:4096]), NOW)
    assert (answer.verdict, answer.words) == (Verdict.DELIVERED, "HTTP 200: message 365")
    assert telegram.judge(said(200, b'{ "ok": true, "result": {}}'), NOW).verdict is Verdict.DELIVERED
    assert telegram.judge(said(200, b'{"ok":false}'), NOW).verdict is Verdict.RETRY
    assert telegram.judge(said(200, b""), NOW).verdict is Verdict.RETRY


@pytest.mark.parametrize(
    ("told", "rest_s"),
    [
        ("35", 35.0),
        ("999999", RETRY_AFTER_CAP_S),
        ("0", None),
        ("-1", None),
        ("NaN", None),
        ("Infinity", None),
        ("-Infinity", None),
        ("null", None),
        ('"5"', None),
    ],
)
def test_a_wait_is_a_whole_number_of_seconds_or_unknown(told: str, rest_s: float | None) -> None:
    body = f'{{"ok":false,"error_code":429,"parameters":{{"retry_after":{told}}}}}'.encode()
    answer = telegram.judge(said(429, body), NOW)
    assert (answer.verdict, answer.rest_s) == (Verdict.RETRY, rest_s)


def test_a_group_that_became_a_supergroup_stops_and_says_its_new_number() -> None:
    body = b'{"ok":false,"description":"upgraded","parameters":{"migrate_to_chat_id":-1009876543210}}'
    answer = telegram.judge(said(400, body), NOW)
    assert answer.verdict is Verdict.PERMANENT
    assert "give the new chat_id: -1009876543210" in answer.words


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, ""),
        ({"secret": "x"}, "secret: expected none"),
        ({"options": {}}, "chat_id: expected"),
        ({"options": {"chat_id": "my chat"}}, "chat_id: expected"),
        ({"options": {"chat_id": "-100", "message_thread_id": "x"}}, "message_thread_id: expected"),
        ({"url": f"https://api.telegram.org/bot{TOKEN}"}, "/sendMessage"),
        ({"url": f"https://api.telegram.org/{TOKEN}/sendMessage"}, "/sendMessage"),
    ],
)
def test_a_channel_that_cannot_work_says_what_was_expected(given: dict[str, object], told: str) -> None:
    words = telegram.check(replace(CHANNEL, **given))  # type: ignore[arg-type]
    assert told in words
    assert (words == "") is (told == "")
    assert TOKEN not in words


def test_the_token_is_in_no_answer_and_no_log_whatever_the_provider_repeats(
    provide: Opened, client: httpx2.Client, caplog: pytest.LogCaptureFixture
) -> None:
    quoted = TOKEN.replace(":", "%3A")
    repeated = f"no bot{TOKEN}, no {TOKEN}, no {quoted}, no /bot{TOKEN}/getMe".encode()
    provider = provide(Said(status=404, body=repeated), Said(status=500, body=repeated))
    url = provider.url.replace("/hook/T0KEN", f"/bot{TOKEN}/sendMessage")
    channel = replace(CHANNEL, url=url, allow_private=True)
    with caplog.at_level(logging.DEBUG):
        answers = [send(channel, note(), NOW, client) for _ in range(2)]
        gone = replace(channel, url=url.replace("127.0.0.1", "127.0.0.9"), timeout_s=1.0)
        answers.append(send(gone, note(), NOW, client))
    for text in [*(answer.words for answer in answers), caplog.text, repr(channel)]:
        assert TOKEN not in text
        assert quoted not in text
    assert "***" in answers[0].words
