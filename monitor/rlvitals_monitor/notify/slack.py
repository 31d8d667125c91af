"""Slack's incoming webhook: a text for the phone's preview, and blocks.

Everything that is not ours stands in ``plain_text`` objects, which know no markup, and is escaped all the same;
the one link is ours. Slack takes 150 characters in a header, 3,000 in a section, 2,000 in a field, and was seen to
fail when all blocks together near 13,000 characters: our own limits keep a message far below that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

from rlvitals_monitor.notify.channel import Channel
from rlvitals_monitor.notify.message import Message, as_text, clip, compose
from rlvitals_monitor.notify.notification import Notification
from rlvitals_monitor.notify.parcel import Answer, Parcel, Reply, Verdict, judge_status, words

HEADER_CHARACTERS = 150
SECTION_CHARACTERS = 3000
FIELD_CHARACTERS = 2000
FIELDS = 10
PREVIEW_CHARACTERS = 3000
PREVIEW_BYTES = 6000
SECTION_BYTES = 4000

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def build(channel: Channel, notification: Notification, now: datetime) -> Parcel:
    message = compose(notification)
    body = {
        "text": escaped(as_text(message), PREVIEW_CHARACTERS, PREVIEW_BYTES),
        "blocks": _blocks(message),
        "parse": "none",
        "link_names": False,
        "unfurl_links": False,
        "unfurl_media": False,
    }
    return Parcel(body=json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode())


def judge(reply: Reply, now: datetime) -> Answer:
    """The plain body "ok" is success; a 4xx is for good and carries a word (``no_service``, …)."""
    if 200 <= reply.status < 300 and reply.body.strip() != b"ok":
        return Answer(verdict=Verdict.RETRY, words=f"{words(reply)} (expected the body: ok)")
    return judge_status(reply, now)


def escaped(text: str, characters: int, octets: int) -> str:
    """Slack's three escapes, within both limits after escaping."""
    return clip(text, characters=characters, octets=octets, escape=lambda c: _ESCAPES.get(c, c))


def _blocks(message: Message) -> list[Mapping[str, object]]:
    fields = [_plain(f"{label}\n{text}", FIELD_CHARACTERS) for label, text in message.facts[:FIELDS]]
    blocks: list[Mapping[str, object]] = [
        {"type": "header", "text": _plain(message.title, HEADER_CHARACTERS)},
    ]
    if message.summary:
        blocks.append({"type": "section", "text": _plain(message.summary, SECTION_CHARACTERS)})
    blocks.append({"type": "section", "fields": fields})
    if message.advice:
        blocks.append(
            {"type": "section", "text": _plain(f"{message.advice_label}: {message.advice}", SECTION_CHARACTERS)}
        )
    if message.link:
        blocks.append({"type": "section", "text": _link(message.link, message.link_text)})
    return blocks


def _plain(text: str, characters: int) -> Mapping[str, object]:
    return {"type": "plain_text", "text": escaped(text, characters, SECTION_BYTES), "emoji": False}


def _link(address: str, text: str) -> Mapping[str, object]:
    return {"type": "mrkdwn", "text": f"<{address}|{text}>", "verbatim": True}
