"""Slack's incoming webhook: a text for the phone's preview, and blocks.

Everything that is not ours stands in ``plain_text`` objects, which know no markup, and is escaped all the same;
the one link is ours. Slack takes 150 characters in a header, 3,000 in a section, 2,000 in a field, and was seen to
fail when all blocks together near 13,000 characters: our own limits keep a message far below that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from rlvitals_monitor.notify.channel import Channel
from rlvitals_monitor.notify.compose import compose
from rlvitals_monitor.notify.message import Link, Message, as_text
from rlvitals_monitor.notify.notification import Notification
from rlvitals_monitor.notify.parcel import Answer, Parcel, Reply, Verdict, judge_status, words
from rlvitals_monitor.notify.plain_text import clip
from rlvitals_monitor.notify.room import fitting

HEADER_CHARACTERS = 150
SECTION_CHARACTERS = 3000
FIELD_CHARACTERS = 2000
FIELDS = 10
PREVIEW_CHARACTERS = 3000
PREVIEW_BYTES = 6000
SECTION_BYTES = 4000
BLOCKS_CHARACTERS = 11000
LINKS_CHARACTERS = 2900

Block = Mapping[str, object]

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


def _blocks(message: Message) -> list[Block]:
    blocks: list[Block] = [{"type": "header", "text": _plain(message.title, HEADER_CHARACTERS)}]
    if message.summary:
        blocks.append({"type": "section", "text": _plain(message.summary, SECTION_CHARACTERS)})
    fields = [_plain(f"{label}\n{text}", FIELD_CHARACTERS) for label, text in message.facts[:FIELDS]]
    if fields:
        blocks.append({"type": "section", "fields": fields})
    links = _links(message.links)
    room = BLOCKS_CHARACTERS - sum(map(_size, [*blocks, *links]))
    sections: list[Block] = [
        {"type": "section", "text": _plain(f"{section.label}: {section.text}", SECTION_CHARACTERS)}
        for section in message.sections
    ]
    return [*blocks, *fitting(sections, room, _size), *links]


def _size(block: Block) -> int:
    return len(json.dumps(block, ensure_ascii=False))


def _plain(text: str, characters: int) -> Mapping[str, object]:
    return {"type": "plain_text", "text": escaped(text, characters, SECTION_BYTES), "emoji": False}


def _links(links: Sequence[Link]) -> list[Block]:
    """Ours, in one block: the only markup that there is."""
    told = [f"<{link.url}|{escaped(link.text, HEADER_CHARACTERS, SECTION_BYTES)}>" for link in links]
    shown = fitting(told, LINKS_CHARACTERS, lambda link: len(link) + 5)
    text = {"type": "mrkdwn", "text": "   ".join(shown), "verbatim": True}
    return [{"type": "section", "text": text}] if shown else []
