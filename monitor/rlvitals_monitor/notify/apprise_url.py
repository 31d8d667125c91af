"""Whatever else apprise can reach, by one of its URLs: an extra, ``pip install 'rlvitals[apprise]'``.

apprise resolves names and judges answers itself, without our bounds on addresses and time, and tells no
more than "sent" or "not sent" and what it logged. Its URLs come from the operator's own file only.
"""

from __future__ import annotations

import logging
import threading
from datetime import datetime
from importlib import import_module
from typing import Any

from rlvitals_monitor.notify.address import Resolve
from rlvitals_monitor.notify.channel import Channel
from rlvitals_monitor.notify.compose import compose
from rlvitals_monitor.notify.message import as_text
from rlvitals_monitor.notify.notification import Notification
from rlvitals_monitor.notify.parcel import Answer, Verdict, visible

GAP_S = 6.0
"""Above apprise's own pause between two messages, for which it would sleep."""
_LOG = threading.Lock()
"""apprise has one log for all: two channels at once would read each other's words."""
ABSENT = "url: expected apprise to be installed: pip install 'rlvitals[apprise]'"


def check(channel: Channel) -> str:
    """Without a look at the network: apprise either knows the URL or does not."""
    apprise = _library()
    if apprise is None:
        return ABSENT
    if apprise.Apprise.instantiate(channel.url, suppress_exceptions=True) is None:
        return f"url: expected one that apprise knows, got {channel.host}://…"
    return "secret: expected none, apprise takes it within the URL" if channel.secret else ""


def send(channel: Channel, notification: Notification, now: datetime, resolver: Resolve) -> Answer:
    apprise = _library()
    if apprise is None:
        return Answer(verdict=Verdict.PERMANENT, words=ABSENT)
    message = compose(notification)
    asset = apprise.AppriseAsset(async_mode=False, http_redirects=False)
    sender = apprise.Apprise(asset=asset)
    if not sender.add(channel.url):
        return Answer(verdict=Verdict.PERMANENT, words=f"apprise does not know this {channel.host}:// address")
    for plugin in sender:
        for wait in ("socket_connect_timeout", "socket_read_timeout"):
            if getattr(plugin, wait) == getattr(type(plugin), wait):  # else its URL says another
                setattr(plugin, wait, channel.timeout_s)
    with _LOG, apprise.LogCapture(level=logging.WARNING, fmt="%(message)s") as told:
        done = sender.notify(title=message.title, body=as_text(message), body_format=apprise.NotifyFormat.TEXT)
        said = visible(told.getvalue().encode())
    if done:
        return Answer(verdict=Verdict.DELIVERED, words="apprise: sent")
    return Answer(verdict=Verdict.RETRY, words=f"apprise: not sent: {said}" if said else "apprise: not sent")


def _library() -> Any:
    try:
        return import_module("apprise")
    except ImportError:
        return None
