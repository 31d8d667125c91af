"""WeCom's group robot: Markdown of at most 4,096 bytes, of which Chinese takes three a character."""

from __future__ import annotations

import json
from datetime import datetime
from urllib.parse import parse_qs, urlsplit

from rlvitals_monitor.notify.channel import Channel
from rlvitals_monitor.notify.coded import Codes, judge_code
from rlvitals_monitor.notify.compose import compose
from rlvitals_monitor.notify.markup import as_markdown
from rlvitals_monitor.notify.notification import Notification
from rlvitals_monitor.notify.parcel import Answer, Parcel, Reply

GAP_S = 3.2
CONTENT_BYTES = 4096
TOO_FAST_S = 60.0

_CODES = Codes(
    keys=("errcode",),
    # No such robot, a body that it does not take, a robot that may not speak here.
    permanent=frozenset({40008, 40033, 40058, 44004, 45002, 45008, 48002, 93000, 93004, 93008}),
    rests={45009: TOO_FAST_S, 45033: TOO_FAST_S},
)


def check(channel: Channel) -> str:
    address = urlsplit(channel.url)
    if address.path.rstrip("/") != "/cgi-bin/webhook/send" or not parse_qs(address.query).get("key"):
        return "url: expected https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=<key>"
    return "secret: expected none, the key in the address is WeCom's secret" if channel.secret else ""


def build(channel: Channel, notification: Notification, now: datetime) -> Parcel:
    content = as_markdown(compose(notification), CONTENT_BYTES)
    body = {"msgtype": "markdown", "markdown": {"content": content}}
    return Parcel(body=json.dumps(body, ensure_ascii=False).encode())


def judge(reply: Reply, now: datetime) -> Answer:
    return judge_code(reply, now, _CODES)
