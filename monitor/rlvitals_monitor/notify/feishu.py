"""Feishu's and Lark's custom bot: a card, signed in its body where the bot has a secret.

All text stands in ``plain_text``, which knows no markup and no mention. Feishu takes 20 KB, 100 messages a minute
and 5 a second, and turns many away (11232) at the full and the half hour, when everybody's timers send.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import urlsplit

from rlvitals_monitor.notify.channel import Channel
from rlvitals_monitor.notify.coded import Codes, judge_code
from rlvitals_monitor.notify.compose import compose
from rlvitals_monitor.notify.markup import apart
from rlvitals_monitor.notify.message import Message, Tone
from rlvitals_monitor.notify.notification import Notification
from rlvitals_monitor.notify.parcel import Answer, Parcel, Reply
from rlvitals_monitor.notify.plain_text import clip
from rlvitals_monitor.notify.room import fitting

GAP_S = 0.6
TITLE_BYTES = 600
PART_BYTES = 3000
FIELD_BYTES = 600
FIELDS = 8
REST_S = 5.0
SPREAD_S = 25.0
ELEMENTS_BYTES = 18_000
LINKS_BYTES = 4000

Element = Mapping[str, object]

_COLOURS = {Tone.INFO: "blue", Tone.WARNING: "orange", Tone.CRITICAL: "red", Tone.RESOLVED: "green"}
_PATH = re.compile(r"/open-apis/bot/v2/hook/[\w-]+/?")
_PERMANENT = frozenset({9499, 10003, 11246, 19001, 19002, 19021, 19022, 19024})
_TOO_MANY = (11232, 11233, 99991400)


def check(channel: Channel) -> str:
    if _PATH.fullmatch(urlsplit(channel.url).path):
        return ""
    return "url: expected https://open.feishu.cn or https://open.larksuite.com, /open-apis/bot/v2/hook/<token>"


def build(channel: Channel, notification: Notification, now: datetime) -> Parcel:
    body: dict[str, object] = {"msg_type": "interactive", "card": _card(notification)}
    if channel.secret:
        timestamp_s = int(now.timestamp())
        body = {"timestamp": str(timestamp_s), "sign": sign(channel.secret, timestamp_s), **body}
    return Parcel(body=json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode())


def judge(reply: Reply, now: datetime) -> Answer:
    rests = dict.fromkeys(_TOO_MANY, rest_s(now))
    return judge_code(reply, now, Codes(keys=("code", "StatusCode"), permanent=_PERMANENT, rests=rests))


def sign(secret: str, timestamp_s: int) -> str:
    """Base64 of the HMAC-SHA256 of nothing, keyed by the time, a newline and the secret."""
    return base64.b64encode(hmac.new(f"{timestamp_s}\n{secret}".encode(), b"", hashlib.sha256).digest()).decode()


def rest_s(now: datetime) -> float:
    """How long to wait when too many send at once: spread by the odd part of the second, different for each."""
    return REST_S + SPREAD_S * now.microsecond / 1e6


def _card(notification: Notification) -> Mapping[str, object]:
    message = compose(notification)
    return {
        "config": {"wide_screen_mode": True},
        "header": {"title": _plain(message.title, TITLE_BYTES), "template": _COLOURS[message.tone]},
        "elements": _elements(message),
    }


def _elements(message: Message) -> list[Element]:
    elements: list[Element] = []
    if message.summary:
        elements.append({"tag": "div", "text": _plain(message.summary, PART_BYTES)})
    fields = [
        {"is_short": True, "text": _plain(f"{label}: {text}", FIELD_BYTES)}
        for label, text in message.facts[:FIELDS]
    ]
    if fields:
        elements.append({"tag": "div", "fields": fields})
    buttons = _buttons(message)
    room = ELEMENTS_BYTES - sum(map(_size, [*elements, *buttons]))
    sections: list[Element] = [
        {"tag": "div", "text": _plain(f"{section.label}: {section.text}", PART_BYTES)}
        for section in message.sections
    ]
    return [*elements, *fitting(sections, room, _size), *buttons]


def _buttons(message: Message) -> list[Element]:
    all_of_them: list[Element] = [
        {
            "tag": "button",
            "text": _plain(link.text, FIELD_BYTES),
            "url": link.url,
            "type": "default" if i else "primary",
        }
        for i, link in enumerate(message.links)
    ]
    shown = fitting(all_of_them, LINKS_BYTES, _size)
    return [{"tag": "action", "actions": shown}] if shown else []


def _size(element: Element) -> int:
    return len(json.dumps(element, ensure_ascii=False).encode()) + 1


def _plain(text: str, octets: int) -> Mapping[str, str]:
    return {"tag": "plain_text", "content": clip(apart(text), characters=octets, octets=octets)}
