"""DingTalk's custom robot: Markdown, signed in the address where the robot has a secret, with nobody mentioned.

More than 20 messages in a minute and DingTalk takes none for ten. It takes 20,000 bytes; we stay far below.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import datetime
from urllib.parse import parse_qs, urlsplit

from rlvitals_monitor.notify.channel import Channel
from rlvitals_monitor.notify.coded import Codes, judge_code
from rlvitals_monitor.notify.compose import compose
from rlvitals_monitor.notify.markup import as_markdown, inert
from rlvitals_monitor.notify.notification import Notification
from rlvitals_monitor.notify.parcel import Answer, Parcel, Reply
from rlvitals_monitor.notify.plain_text import clip

GAP_S = 3.2
TEXT_BYTES = 8000
TITLE_BYTES = 300
BLOCKED_S = 600.0
SECRET_PREFIX = "SEC"

_CODES = Codes(
    keys=("errcode",),
    # No such robot, switched off, group gone, unsigned, a word or an address that is not on its list, a bad body.
    permanent=frozenset(
        {40035, 43004, 300001, 300005, 310000, 400013, 400101, 400102, 400105, 400106, 430101, 430102, 430104}
    ),
    rests={130101: BLOCKED_S, 410100: BLOCKED_S, 90030: 3600.0},
)


def check(channel: Channel) -> str:
    address = urlsplit(channel.url)
    if address.path.rstrip("/") != "/robot/send" or not parse_qs(address.query).get("access_token"):
        return "url: expected https://oapi.dingtalk.com/robot/send?access_token=<token>"
    if channel.secret and not channel.secret.startswith(SECRET_PREFIX):
        return f"secret: expected the robot's signing secret, which starts with {SECRET_PREFIX}"
    return ""


def build(channel: Channel, notification: Notification, now: datetime) -> Parcel:
    """The signature is of this attempt's time, for DingTalk takes one for an hour only."""
    message = compose(notification)
    markdown = {
        "title": clip(inert(message.title), characters=TITLE_BYTES, octets=TITLE_BYTES),
        "text": as_markdown(message, TEXT_BYTES),
    }
    nobody = {"atMobiles": [], "atUserIds": [], "isAtAll": False}
    body = {"msgtype": "markdown", "markdown": markdown, "at": nobody}
    return Parcel(body=json.dumps(body, ensure_ascii=False).encode(), query=_signed(channel.secret, now))


def judge(reply: Reply, now: datetime) -> Answer:
    return judge_code(reply, now, _CODES)


def sign(secret: str, timestamp_ms: int) -> str:
    """Base64 of the HMAC-SHA256 of time, newline and secret, keyed by the secret; not yet URL-encoded."""
    signed = f"{timestamp_ms}\n{secret}".encode()
    return base64.b64encode(hmac.new(secret.encode(), signed, hashlib.sha256).digest()).decode()


def _signed(secret: str, now: datetime) -> dict[str, str]:
    if not secret:
        return {}
    timestamp_ms = int(now.timestamp() * 1000)
    return {"timestamp": str(timestamp_ms), "sign": sign(secret, timestamp_ms)}
