"""Slack's body: limits on character boundaries, and nothing in it from outside that Slack would act on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.contract.report import RunInfo
from rlvitals_monitor.notify import slack
from rlvitals_monitor.notify.channel import Channel, ChannelKind
from rlvitals_monitor.notify.notification import tell_one
from rlvitals_monitor.notify.parcel import Reply, Verdict
from tests.monitor.planted import NOW, a_transition, an_alert

CHANNEL = Channel(name="slack", kind=ChannelKind.SLACK, url="https://hooks.slack.example/services/T/B/X")
LINK = "https://me/ui/run/r1?attempt=t1&from=20&to=220"


def body_of(name: str = "tiny", **alert: object) -> dict[str, Any]:
    run = RunInfo(id="r1", name=name, project=name)
    transition = a_transition(an_alert(**alert))
    note = tell_one(id="m1", transition=transition, run=run, link=LINK)
    return dict(json.loads(slack.build(CHANNEL, note, NOW).body))


def texts(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(type, text) of every text object, the preview included."""
    yield "preview", body["text"]
    for block in body["blocks"]:
        for entry in [block.get("text"), *block.get("fields", [])]:
            if entry:
                yield entry["type"], entry["text"]


@pytest.mark.parametrize(
    "name",
    [
        "<!channel> now",
        "<!here|here>",
        "<@U123456>",
        "<#C123456>",
        "<https://evil.example|click me>",
        "https://evil.example",
        "@channel @here",
        "*bold* _it_ `code` ~gone~",
        "a & b < c > d &lt;!channel&gt;",
        "\u202ecba\nnew line <!everyone>",
    ],
)
def test_a_hostile_run_name_mentions_links_and_marks_up_nothing(name: str) -> None:
    body = body_of(name, summary=name, advice=name, rule=name)
    for kind, text in texts(body):
        if kind == "mrkdwn":
            assert text == f"<{LINK}|Open the run at step 120>"
            continue
        assert "<" not in text
        assert ">" not in text
        assert "@channel" not in text
        assert "https://evil" not in text
    assert {kind for kind, _ in texts(body)} == {"preview", "plain_text", "mrkdwn"}
    assert (body["parse"], body["link_names"], body["unfurl_links"]) == ("none", False, False)


def test_the_three_escapes_are_slacks_and_are_not_done_twice() -> None:
    assert "a &amp; b &lt;c&gt;" in body_of(summary="a & b <c>")["text"]


@given(name=st.text(max_size=400), words=st.text(max_size=4000))
def test_no_text_leaves_slacks_limits(name: str, words: str) -> None:
    body = body_of(name, summary=words, advice=words)
    assert len(body["text"]) <= slack.PREVIEW_CHARACTERS
    assert len(body["blocks"]) <= 50
    header, *sections = body["blocks"]
    assert len(header["text"]["text"]) <= slack.HEADER_CHARACTERS
    for section in sections:
        assert len(section.get("fields", [])) <= slack.FIELDS
        for entry in [section.get("text"), *section.get("fields", [])]:
            assert entry is None or 0 < len(entry["text"]) <= slack.FIELD_CHARACTERS
    assert len(json.dumps(body["blocks"], ensure_ascii=False)) < 12_000


@pytest.mark.parametrize("filler", ["&", "好", "🙂", "<", "é"])
def test_texts_that_grow_by_escaping_or_in_bytes_still_fit(filler: str) -> None:
    body = body_of(filler * 300, summary=filler * 5000, advice=filler * 5000)
    assert len(json.dumps(body["blocks"], ensure_ascii=False)) < 12_000
    for _, text in texts(body):
        assert len(text.encode()) <= slack.PREVIEW_BYTES
        assert not text.rstrip("…").endswith(("&", "&a", "&am", "&amp", "&l", "&lt", "&g", "&gt"))


@pytest.mark.parametrize(
    ("status", "said", "verdict"),
    [
        (200, b"ok", Verdict.DELIVERED),
        (200, b"ok\n", Verdict.DELIVERED),
        (200, b"<html>log in to the guest network</html>", Verdict.RETRY),
        (200, b"", Verdict.RETRY),
        (400, b"invalid_payload", Verdict.PERMANENT),
        (403, b"action_prohibited", Verdict.PERMANENT),
        (404, b"channel_not_found", Verdict.PERMANENT),
        (410, b"channel_is_archived", Verdict.PERMANENT),
        (429, b"rate_limited", Verdict.RETRY),
        (500, b"rollup_error", Verdict.RETRY),
        (302, b"", Verdict.PERMANENT),
    ],
)
def test_slacks_answer_is_read_from_its_body_too(status: int, said: bytes, verdict: Verdict) -> None:
    answer = slack.judge(Reply(status=status, headers={}, body=said), NOW)
    assert answer.verdict is verdict
    assert f"HTTP {status}" in answer.words
    if status == 400:
        assert answer.words == "HTTP 400: invalid_payload"


def test_a_message_without_an_own_address_has_no_link_block() -> None:
    note = tell_one(id="m1", transition=a_transition(), run=RunInfo(id="r1"))
    body = json.loads(slack.build(CHANNEL, note, NOW).body)
    assert all(kind != "mrkdwn" for kind, _ in texts(body))
