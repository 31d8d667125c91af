"""Discord's webhook: one embed. All that is not ours is escaped, and nobody can be mentioned whatever it says.

Discord takes 256 characters in a title, 4,096 in a description, 256 and 1,024 in a field's name and value, 25
fields, and 6,000 in all. Its rate limit is told by headers; ``retry_after`` is in seconds, but older versions of
its interface, which an address without a version still reaches, say milliseconds.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from datetime import datetime
from urllib.parse import urlsplit

from rlvitals_monitor.notify.channel import Channel
from rlvitals_monitor.notify.coded import read_object
from rlvitals_monitor.notify.compose import compose
from rlvitals_monitor.notify.form import Attachment, form
from rlvitals_monitor.notify.markup import apart, clip_units
from rlvitals_monitor.notify.message import Message, Tone
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
from rlvitals_monitor.notify.picture import draw
from rlvitals_monitor.notify.room import fitting, utf16

GAP_S = 2.0
TITLE_CHARACTERS = 256
PART_CHARACTERS = 900
DESCRIPTION_CHARACTERS = 2300
LINKS_CHARACTERS = 1200
NAME_CHARACTERS = 110
VALUE_CHARACTERS = 150
FIELDS = 8
NOTHING = "–"
PICTURE = "trend.png"

_COLOURS = {Tone.INFO: 0x2F81F7, Tone.WARNING: 0xD29922, Tone.CRITICAL: 0xDA3633, Tone.RESOLVED: 0x2DA44E}
_MARKUP = frozenset("\\*_~`|<>[]()#")
_PATH = re.compile(r"/api(/v\d+)?/webhooks/\d+/[\w-]+/?")


def check(channel: Channel) -> str:
    if not _PATH.fullmatch(urlsplit(channel.url).path):
        return "url: expected https://discord.com/api/webhooks/<id>/<token>"
    return "secret: expected none, the address is Discord's secret" if channel.secret else ""


def build(channel: Channel, notification: Notification, now: datetime) -> Parcel:
    """Asks Discord to answer only when the message is stored: without that it says 204 to what it drops."""
    message = compose(notification)
    embed = _embed(message)
    if message.trend is not None:
        embed["image"] = {"url": f"attachment://{PICTURE}"}
    body = {
        "content": f"RL Vitals: {escaped(message.state, NAME_CHARACTERS)}",
        "embeds": [embed],
        "allowed_mentions": {"parse": []},
    }
    data = json.dumps(body, ensure_ascii=False)
    if message.trend is None:
        return Parcel(body=data.encode(), query={"wait": "true"})
    picture = Attachment(name=PICTURE, kind="image/png", data=draw(message.trend))
    content = form({"payload_json": data}, {"files[0]": picture}, notification.id)
    return Parcel(body=content.body, headers={"content-type": content.kind}, query={"wait": "true"})


def judge(reply: Reply, now: datetime) -> Answer:
    answer = judge_status(reply, now)
    if answer.verdict is Verdict.DELIVERED:
        return _taken(reply)
    return replace(answer, rest_s=_rest_s(reply, now)) if reply.status == 429 else answer


def escaped(text: str, characters: int) -> str:
    return clip_units(apart(text), characters, lambda c: f"\\{c}" if c in _MARKUP else c)


def _embed(message: Message) -> dict[str, object]:
    return {
        "title": escaped(message.title, TITLE_CHARACTERS),
        "description": _description(message),
        "color": _COLOURS[message.tone],
        "fields": [
            {
                "name": escaped(label, NAME_CHARACTERS) or NOTHING,
                "value": escaped(text, VALUE_CHARACTERS) or NOTHING,
                "inline": True,
            }
            for label, text in message.facts[:FIELDS]
        ],
    }


def _description(message: Message) -> str:
    told = [message.summary, *(f"{section.label}: {section.text}" for section in message.beside_picture)]
    every = (escaped(part, PART_CHARACTERS) for part in told if part)
    parts = fitting(every, DESCRIPTION_CHARACTERS, lambda part: utf16(part) + 2)
    links = [f"[{escaped(link.text, NAME_CHARACTERS)}]({link.url})" for link in message.links]
    shown = fitting(links, LINKS_CHARACTERS, lambda link: utf16(link) + 3)
    return "\n\n".join([*parts, *([" · ".join(shown)] if shown else [])]) or NOTHING


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
