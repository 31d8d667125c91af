"""What a message shows beside its changes, gathered from the store as it is sent."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from rlvitals_monitor.notify.channel import Channel
from rlvitals_monitor.notify.notification import Extras, Notification


def gather(conn: Connection, channel: Channel, told: Notification, public_url: str, now: datetime) -> Extras:
    """Trend, sample, diagnosis and links of the first item; empty for a digest.

    Writes: the links' digests. Call it in the transaction that claims the message.
    """
    return Extras()
