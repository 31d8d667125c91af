"""Channels by the API: made, changed and taken away, each in the caller's transaction, each in the audit."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from rlvitals.contract.channelbook import ChannelBody
from rlvitals_monitor.errors import BadRequest, Conflict, NotFound
from rlvitals_monitor.notify.channel import Channel, ChannelError
from rlvitals_monitor.notify.channel_body import Body, BodyReader, carry_over, hide, leads_away
from rlvitals_monitor.store import channels as table
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.channels import Written

CHANNELS_MAX = 64
"""Each has a thread."""
DELETED = "the channel was deleted"


def read(conn: Connection, name: str) -> ChannelBody:
    """As it may be shown; raises `NotFound`."""
    return _shown(_find(conn, name))


def create(
    conn: Connection,
    reader: BodyReader,
    name: str,
    body: Body,
    operators: frozenset[str],
    *,
    who: str,
    now: datetime,
) -> ChannelBody:
    """``operators`` are the names that file and environment give. Raises `BadRequest` and `Conflict`."""
    given = carry_over(body, {})
    channel = _read(reader, name, given)
    if name in operators:
        raise Conflict(f"channel {name} is the operator's, of file or environment")
    if table.count(conn) >= CHANNELS_MAX:
        raise Conflict(f"there are {CHANNELS_MAX} channels already")
    if not table.create(conn, name, given, who, now):
        raise Conflict(f"there is a channel {name} already")
    _audit(conn, "channel created", channel, who, now)
    return read(conn, name)


def change(conn: Connection, reader: BodyReader, name: str, body: Body, *, who: str, now: datetime) -> ChannelBody:
    """Raises `NotFound` and `BadRequest`."""
    before = _find(conn, name)
    given = carry_over(body, before.body)
    channel = _read(reader, name, given)
    try:
        led = leads_away(channel, reader.read(name, before.body), body)
    except ChannelError:  # what it was cannot be read any more, so nobody can tell where it led
        led = bool(channel.secret) and "secret" not in body
    if led:
        raise BadRequest(
            "secret: expected to be given anew, since the channel leads to another place", field="secret"
        )
    table.change(conn, name, given, who, now)
    _audit(conn, "channel changed", channel, who, now)
    return read(conn, name)


def remove(conn: Connection, name: str, *, who: str, now: datetime) -> None:
    """What waits for it is dropped and stays to be seen. Raises `NotFound`."""
    if not table.remove(conn, _find(conn, name).name):
        raise NotFound(f"there is no channel {name[:48]!r} that the API made")
    dropped = table.drop_waiting(conn, name, DELETED)
    detail = f"{name}, {dropped} waiting dropped"
    append_audit(conn, at=now, run="", command="", who=who, what="channel deleted", detail=detail)


def _find(conn: Connection, name: str) -> Written:
    found = table.find(conn, name)
    if found is None:
        raise NotFound(f"there is no channel {name[:48]!r} that the API made")
    return found


def _read(reader: BodyReader, name: str, body: Body) -> Channel:
    try:
        return reader.read(name, body)
    except ChannelError as error:
        raise BadRequest(str(error)) from None


def _audit(conn: Connection, what: str, channel: Channel, who: str, now: datetime) -> None:
    detail = f"{channel.name}: {channel.kind.value} to {channel.host}, from {channel.severity.value}"
    append_audit(conn, at=now, run="", command="", who=who, what=what, detail=detail)


def _shown(written: Written) -> ChannelBody:
    return ChannelBody(
        name=written.name,
        body=hide(written.body),
        changed_at=written.changed_at,
        changed_by=written.changed_by,
    )
