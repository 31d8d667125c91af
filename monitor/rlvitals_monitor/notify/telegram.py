"""Telegram's bot: HTML whose every foreign word stands escaped in ``code``, where Telegram finds no mention,
command, hashtag or address by itself. It takes 4,096 characters after its tags are read, counted here in UTF-16.
"""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from rlvitals_monitor.notify.channel import Channel
from rlvitals_monitor.notify.coded import read_object
from rlvitals_monitor.notify.compose import compose
from rlvitals_monitor.notify.form import Attachment, form
from rlvitals_monitor.notify.markup import clip_units
from rlvitals_monitor.notify.message import Message
from rlvitals_monitor.notify.notification import Notification
from rlvitals_monitor.notify.parcel import (
    RETRY_AFTER_CAP_S,
    Answer,
    Parcel,
    Reply,
    Verdict,
    judge_status,
    words,
)
from rlvitals_monitor.notify.picture import draw
from rlvitals_monitor.notify.room import fitting, utf16

GAP_S = 3.2
"""20 a minute, the bound of a group; a private chat takes one a second."""
LINE_CHARACTERS = 160
LINKS = 8

_TAGS = len("<code></code>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Bounds in UTF-16: of all, of one part; ``lines`` of facts."""

    whole: int
    part: int
    lines: int


TEXT = Size(whole=4000, part=620, lines=8)
CAPTION = Size(whole=1000, part=260, lines=4)

_PATH = re.compile(r"/bot\d+:[\w-]+/sendMessage")
_CHAT = re.compile(r"-?\d{1,20}|@\w{4,64}", re.ASCII)
_STORED = re.compile(rb'"message_id":\s*(\d{1,19})')


def check(channel: Channel) -> str:
    if not _PATH.fullmatch(urlsplit(channel.url).path):
        return "url: expected https://api.telegram.org/bot<token>/sendMessage"
    if not _CHAT.fullmatch(channel.options.get("chat_id", "")):
        return "chat_id: expected the chat's number, such as -1001234567890, or @channel"
    if not channel.options.get("message_thread_id", "0").isdecimal():
        return "message_thread_id: expected the topic's number"
    return "secret: expected none, the token in the address is the bot's secret" if channel.secret else ""


def build(channel: Channel, notification: Notification, now: datetime) -> Parcel:
    """A photo with a caption where there is a trend; a caption takes a quarter of a message's text."""
    message = compose(notification)
    told = {"chat_id": channel.options.get("chat_id", ""), "parse_mode": "HTML"}
    if "message_thread_id" in channel.options:
        told["message_thread_id"] = channel.options["message_thread_id"]
    if message.trend is not None:
        photo = Attachment(name="trend.png", kind="image/png", data=draw(message.trend))
        content = form({**told, "caption": _text(message, CAPTION)}, {"photo": photo}, notification.id)
        path = f"{urlsplit(channel.url).path.rpartition('/')[0]}/sendPhoto"
        return Parcel(body=content.body, headers={"content-type": content.kind}, path=path)
    body: dict[str, object] = {**told, "text": _text(message, TEXT), "link_preview_options": {"is_disabled": True}}
    if "message_thread_id" in told:
        body["message_thread_id"] = int(told["message_thread_id"])
    return Parcel(body=json.dumps(body, ensure_ascii=False).encode())


def judge(reply: Reply, now: datetime) -> Answer:
    """A stored message may be longer than what is read of a reply: its status and first words are enough."""
    body = read_object(reply)
    if 200 <= reply.status < 300:
        return _taken(reply, body.get("ok"))
    answer = judge_status(reply, now)
    parameters = body.get("parameters")
    told = parameters if isinstance(parameters, dict) else {}
    rest_s, moved = told.get("retry_after"), told.get("migrate_to_chat_id")
    if moved is not None:
        return Answer(verdict=answer.verdict, words=f"{answer.words} (give the new chat_id: {moved})"[:400])
    if answer.verdict is Verdict.RETRY and isinstance(rest_s, int) and rest_s > 0:
        return Answer(verdict=Verdict.RETRY, words=answer.words, rest_s=float(min(rest_s, RETRY_AFTER_CAP_S)))
    return answer


def _taken(reply: Reply, ok: object) -> Answer:
    if ok is not True and not (ok is None and reply.body.startswith(b'{"ok":true')):
        return Answer(verdict=Verdict.RETRY, words=f"{words(reply)} (expected ok: true)")
    stored = _STORED.search(reply.body)
    number = f": message {stored.group(1).decode()}" if stored else ""
    return Answer(verdict=Verdict.DELIVERED, words=f"HTTP {reply.status}{number}")


def _text(message: Message, size: Size) -> str:
    """Links first take their room, then the parts in their order, as many as fit."""
    links = [f'<a href="{html.escape(link.url)}">{html.escape(link.text)}</a>' for link in message.links[:LINKS]]
    facts = [_code(f"{label}: {text}", LINE_CHARACTERS) for label, text in message.facts[: size.lines]]
    summary = [_code(message.summary, size.part)] if message.summary else []
    told = [_code(message.title, LINE_CHARACTERS), *summary, *(["\n".join(facts)] if facts else [])]
    told += [_code(f"{section.label}: {section.text}", size.part) for section in message.beside_picture]
    room = size.whole - sum(utf16(link.text) + 3 for link in message.links[:LINKS])
    parts = fitting(told, room, lambda part: utf16(html.unescape(part)) - _TAGS + 2)
    return "\n\n".join([*parts, *([" | ".join(links)] if links else [])])


def _code(text: str, units: int) -> str:
    """Clipped before it is escaped, since Telegram counts what is shown."""
    return f"<code>{html.escape(clip_units(text, units))}</code>"
