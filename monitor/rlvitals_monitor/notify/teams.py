"""Microsoft Teams through a Workflows address: an Adaptive Card 1.4 of at most 28 KB.

Texts stand in text runs, which know no Markdown; without an entity nobody is mentioned, and there is none.
The link is a button. Power Automate says 202 once a card is queued; its flow may still fail, and only its run
history tells.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import parse_qs, urlsplit

from rlvitals_monitor.notify.channel import Channel
from rlvitals_monitor.notify.compose import compose
from rlvitals_monitor.notify.message import Message
from rlvitals_monitor.notify.notification import Notification
from rlvitals_monitor.notify.parcel import Answer, Parcel, Reply, Verdict, judge_status, words
from rlvitals_monitor.notify.room import fitting

GAP_S = 1.0
FACTS = 10
ACTIONS = 6
BODY_BYTES = 22_000
QUEUED = "queued; whether the flow then posted it is in its run history only"
_ENDED = (".webhook.office.com", "outlook.office.com")
_CARD = {
    "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
    "type": "AdaptiveCard",
    "version": "1.4",
}

Element = Mapping[str, object]


def check(channel: Channel) -> str:
    address = urlsplit(channel.url)
    if channel.host.endswith(_ENDED):
        return "url: expected the address of a Workflows flow; those of Office 365 connectors have ended"
    if "/workflows/" not in address.path or "/triggers/" not in address.path:
        return "url: expected https://…/workflows/<id>/triggers/manual/paths/invoke?…&sig=<signature>"
    if not parse_qs(address.query).get("sig"):
        return "url: expected the whole address, with its &sig=<signature>"
    return "secret: expected none, the signature in the address is the flow's secret" if channel.secret else ""


def build(channel: Channel, notification: Notification, now: datetime) -> Parcel:
    message = compose(notification)
    card: dict[str, object] = {**_CARD, "body": _body(message), "msteams": {"width": "Full"}}
    actions = [{"type": "Action.OpenUrl", "title": link.text, "url": link.url} for link in message.links[:ACTIONS]]
    if actions:
        card["actions"] = actions
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    body = {"type": "message", "attachments": [attachment]}
    return Parcel(body=json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode())


def judge(reply: Reply, now: datetime) -> Answer:
    """A refusal by Teams may come within HTTP 200, in words alone."""
    if 200 <= reply.status < 300 and b"returned HTTP error" in reply.body:
        return Answer(verdict=Verdict.RETRY, words=words(reply))
    if reply.status == 202:
        return Answer(verdict=Verdict.DELIVERED, words=f"{words(reply)} ({QUEUED})")
    return judge_status(reply, now)


def _body(message: Message) -> list[Element]:
    body = [_text([_run(message.title, weight="Bolder", size="Medium")])]
    if message.summary:
        body.append(_text([_run(message.summary)]))
    body += [
        _text([_run(f"{label}: ", weight="Bolder"), _run(text or "–")], spacing="Small")
        for label, text in message.facts[:FACTS]
    ]
    sections = [_text([_run(f"{s.label}: ", weight="Bolder"), _run(s.text)]) for s in message.sections]
    return [*body, *fitting(sections, BODY_BYTES - sum(map(_size, body)), _size)]


def _size(element: Element) -> int:
    return len(json.dumps(element, ensure_ascii=False).encode()) + 1


def _text(inlines: list[Element], spacing: str = "Default") -> Element:
    return {"type": "RichTextBlock", "inlines": inlines, "spacing": spacing}


def _run(text: str, weight: str = "Default", size: str = "Default") -> Element:
    return {"type": "TextRun", "text": text, "weight": weight, "size": size}
