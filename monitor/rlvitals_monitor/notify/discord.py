"""Discord's webhook: one embed. All that is not ours is escaped, and nobody can be mentioned whatever it says.

Discord takes 256 characters in a title, 4,096 in a description, 256 and 1,024 in a field's name and value, 25
fields, and 6,000 in all. Its rate limit is told by headers; ``retry_after`` is in seconds, but older versions of
its interface, which an address without a version still reaches, say milliseconds.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from urllib.parse import urlsplit

from rlvitals.contract.alert import AlertState, Severity, Transition
from rlvitals_monitor.notify.channel import Channel
from rlvitals_monitor.notify.coded import read_object
from rlvitals_monitor.notify.markup import apart, clip_units
from rlvitals_monitor.notify.message import Message, compose
from rlvitals_monitor.notify.notification import Notification
from rlvitals_monitor.notify.parcel import (
    RETRY_AFTER_CAP_S,
    Answer,
    Parcel,
    Reply,
    Verdict,
    judge_status,
    retry_after_s,
    words,
)

GAP_S = 2.0
TITLE_CHARACTERS = 256
PART_CHARACTERS = 1200
NAME_CHARACTERS = 130
VALUE_CHARACTERS = 170
FIELDS = 8
NOTHING = "–"

_COLOURS = {Severity.INFO: 0x2F81F7, Severity.WARNING: 0xD29922, Severity.CRITICAL: 0xDA3633}
_RESOLVED = 0x2DA44E
_MARKUP = frozenset("\\*_~`|<>[]()#")
_PATH = re.compile(r"/api(/v\d+)?/webhooks/\d+/[\w-]+/?")


def check(channel: Channel) -> str:
    if not _PATH.fullmatch(urlsplit(channel.url).path):
        return "url: expected https://discord.com/api/webhooks/<id>/<token>"
    return "secret: expected none, the address is Discord's secret" if channel.secret else ""


def build(channel: Channel, notification: Notification, now: datetime) -> Parcel:
    """Asks Discord to answer only when the message is stored: without that it says 204 to what it drops."""
    message, transition = compose(notification), notification.lead.transition
    body = {
        "content": f"RL Vitals: {_state(transition)}",
        "embeds": [_embed(message, transition)],
        "allowed_mentions": {"parse": []},
    }
    return Parcel(body=json.dumps(body, ensure_ascii=False).encode(), query={"wait": "true"})


def judge(reply: Reply, now: datetime) -> Answer:
    answer = judge_status(reply, now)
    if answer.verdict is Verdict.DELIVERED:
        return _taken(reply)
    return replace(answer, rest_s=_rest_s(reply, now)) if reply.status == 429 else answer


def escaped(text: str, characters: int) -> str:
    return clip_units(apart(text), characters, lambda c: f"\\{c}" if c in _MARKUP else c)


def _embed(message: Message, transition: Transition) -> Mapping[str, object]:
    advice = f"{message.advice_label}: {message.advice}" if message.advice else ""
    parts = [escaped(part, PART_CHARACTERS) for part in (message.summary, advice) if part]
    if message.link:
        parts.append(f"[{message.link_text}]({message.link})")
    return {
        "title": escaped(message.title, TITLE_CHARACTERS),
        "description": "\n\n".join(parts),
        "color": _RESOLVED if transition.after is AlertState.RESOLVED else _COLOURS[transition.alert.severity],
        "fields": [
            {
                "name": escaped(label, NAME_CHARACTERS) or NOTHING,
                "value": escaped(text, VALUE_CHARACTERS) or NOTHING,
                "inline": True,
            }
            for label, text in message.facts[:FIELDS]
        ],
    }


def _state(transition: Transition) -> str:
    firing = transition.after is AlertState.FIRING
    return str((transition.alert.severity if firing else transition.after).value).upper()


def _taken(reply: Reply) -> Answer:
    """The stored message, or nothing; and when that was the last one for now, how long to wait."""
    if reply.status == 200 and not reply.body.lstrip().startswith(b"{"):
        return Answer(verdict=Verdict.RETRY, words=f"{words(reply)} (expected the stored message)")
    used_up = reply.headers.get("x-ratelimit-remaining", "").strip() == "0"
    rest_s = _seconds(reply.headers.get("x-ratelimit-reset-after")) if used_up else None
    return Answer(verdict=Verdict.DELIVERED, words=f"HTTP {reply.status}", rest_s=rest_s)


def _rest_s(reply: Reply, now: datetime) -> float | None:
    header = _seconds(reply.headers.get("x-ratelimit-reset-after"))
    if header is None:
        header = retry_after_s(reply, now)
    told = _seconds(read_object(reply).get("retry_after"))
    if header is None or told is None:
        return told if header is None else header
    # A thousandfold of what the header says is milliseconds.
    return header if told > 100.0 * max(header, 0.1) else max(told, header)


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        return None
    return None if math.isnan(seconds) else min(max(seconds, 0.0), RETRY_AFTER_CAP_S)
