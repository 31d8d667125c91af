"""Providers that answer HTTP 200 and tell failure by a code in the body: what each code means is data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from rlvitals_monitor.notify.parcel import Answer, Reply, Verdict, judge_status, retry_after_s, words


@dataclass(frozen=True, slots=True, kw_only=True)
class Codes:
    """``keys`` hold the code, 0 for success; ``rests`` are seconds to wait after one that will pass.

    A code that is in neither list is tried again: a message is not lost to a code that nobody wrote down.
    """

    keys: Sequence[str]
    permanent: frozenset[int]
    rests: Mapping[int, float] = field(default_factory=dict)


def judge_code(reply: Reply, now: datetime, codes: Codes) -> Answer:
    """The body's code where it has one, else the HTTP status."""
    if 300 <= reply.status < 400 or reply.status >= 500:
        return judge_status(reply, now)
    code = read_code(reply, codes.keys)
    if code is None:
        return _uncoded(reply, now, codes.keys[0])
    if code == 0:
        return judge_status(reply, now)
    if code in codes.permanent:
        return Answer(verdict=Verdict.PERMANENT, words=read_words(reply))
    if code in codes.rests or 200 <= reply.status < 300:
        rest_s = retry_after_s(reply, now) or codes.rests.get(code)
        return Answer(verdict=Verdict.RETRY, words=read_words(reply), rest_s=rest_s)
    return judge_status(reply, now)


def read_code(reply: Reply, keys: Sequence[str]) -> int | None:
    """The first code that is not 0, or 0 if all that are there are; None where there is none."""
    body = read_object(reply)
    found = [code for code in (_whole(body.get(key)) for key in keys) if code is not None]
    return next((code for code in found if code), found[0] if found else None)


def read_object(reply: Reply) -> Mapping[str, object]:
    """The body's JSON object; empty where it is something else, or was cut at the bound of what is read."""
    try:
        body = json.loads(reply.body)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def read_words(reply: Reply) -> str:
    """The provider's own words, also where its JSON spells Chinese in escapes."""
    body = read_object(reply)
    if not body or b"\\u" not in reply.body:
        return words(reply)
    return words(replace(reply, body=json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")))


def _uncoded(reply: Reply, now: datetime, key: str) -> Answer:
    if 200 <= reply.status < 300:
        return Answer(verdict=Verdict.RETRY, words=f"{words(reply)} (expected JSON with {key})")
    return judge_status(reply, now)


def _whole(value: object) -> int | None:
    if isinstance(value, str) and value.lstrip("-").isdecimal():
        return int(value[:20])
    return value if isinstance(value, int) and not isinstance(value, bool) else None
