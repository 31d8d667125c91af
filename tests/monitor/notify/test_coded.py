"""Codes inside HTTP 200: what is a code, and what its absence means."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals_monitor.notify.coded import Codes, judge_code, read_code
from rlvitals_monitor.notify.parcel import Reply, Verdict
from tests.monitor.planted import NOW

CODES = Codes(keys=("errcode",), permanent=frozenset({40058}), rests={45009: 60.0})


def replied(body: bytes, status: int = 200, **headers: str) -> Reply:
    return Reply(status=status, headers=headers, body=body)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"errcode":0}', 0),
        (b'{"errcode":"310000"}', 310000),
        (b'{"errcode":-1}', -1),
        (b'{"errcode":true}', None),
        (b'{"errcode":false}', None),
        (b'{"errcode":null}', None),
        (b'{"errcode":0.0}', None),
        (b'{"errcode":NaN}', None),
        (b'{"errcode":Infinity}', None),
        (b'{"errcode":-Infinity}', None),
        (b"{}", None),
        (b"[0]", None),
        (b"", None),
        (b'{"errcode":0,"x":"cut at the bou', None),
        (b"\xff\xfe", None),
        (b"[" * 4096, None),
    ],
)
def test_only_a_whole_number_is_a_code(body: bytes, code: int | None) -> None:
    assert read_code(replied(body), ("errcode",)) == code


@given(body=st.binary(max_size=200), status=st.integers(100, 599))
def test_no_reply_raises_and_none_without_a_code_of_0_is_called_delivered(body: bytes, status: int) -> None:
    answer = judge_code(replied(body, status), NOW, CODES)
    assert answer.verdict is not Verdict.DELIVERED or read_code(replied(body), ("errcode",)) == 0


@pytest.mark.parametrize(
    ("status", "code", "verdict", "rest_s"),
    [
        (200, 0, Verdict.DELIVERED, None),
        (200, 40058, Verdict.PERMANENT, None),
        (400, 40058, Verdict.PERMANENT, None),
        (200, 45009, Verdict.RETRY, 60.0),
        (400, 45009, Verdict.RETRY, 60.0),
        (429, 45009, Verdict.RETRY, 60.0),
        (200, 123, Verdict.RETRY, None),
        (400, 123, Verdict.PERMANENT, None),
        (400, 0, Verdict.PERMANENT, None),
        (500, 40058, Verdict.RETRY, None),
        (302, 0, Verdict.PERMANENT, None),
    ],
)
def test_code_and_status_are_read_together(status: int, code: int, verdict: Verdict, rest_s: float | None) -> None:
    answer = judge_code(replied(json.dumps({"errcode": code, "errmsg": "why"}).encode(), status), NOW, CODES)
    assert (answer.verdict, answer.rest_s) == (verdict, rest_s)
    assert f"HTTP {status}" in answer.words


def test_retry_after_goes_before_what_is_usual_for_the_code() -> None:
    reply = Reply(status=429, headers={"retry-after": "9"}, body=b'{"errcode":45009}')
    assert judge_code(reply, NOW, CODES).rest_s == 9.0


def test_words_that_json_escapes_are_shown_in_their_own_script_and_without_signs_that_turn_text() -> None:
    body = json.dumps({"errcode": 40058, "errmsg": "机器人\u202e\ud83d 不存在"}).encode()
    words = judge_code(replied(body), NOW, CODES).words
    assert "机器人" in words
    assert "不存在" in words
    assert "\u202e" not in words
    words.encode()
