"""``rlvitals notify``: which channels there are, and a test message that repeats the provider's own words."""

from __future__ import annotations

import argparse
import logging
import sys
from datetime import datetime, timezone

from sqlalchemy.exc import SQLAlchemyError

from rlvitals_monitor.notify import channel_book
from rlvitals_monitor.notify.channel import Channels
from rlvitals_monitor.notify.channel_book import ChannelBook
from rlvitals_monitor.notify.dispatch import fire_test
from rlvitals_monitor.notify.settings import NotifySettings
from rlvitals_monitor.store.engine import Store


def notify(argv: list[str], own_url: str = "", store_url: str = "") -> int:
    """Channels that alerts go to: list them, or send a test message to one."""
    parser = argparse.ArgumentParser(prog="rlvitals notify", description=notify.__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("list")
    actions.add_parser("test").add_argument("channel")
    told = parser.parse_args(argv)
    logging.getLogger(channel_book.__name__).addHandler(logging.NullHandler())  # its problems are told below
    try:
        channels = _load(own_url, store_url, datetime.now(timezone.utc))
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for problem in channels.problems:
        sys.stderr.write(f"not in force as written: {problem}\n")
    return _test(channels, told.channel) if told.action == "test" else _list(channels)


def _load(own_url: str, store_url: str, now: datetime) -> Channels:
    """Of file and environment, and of the API where there is a store. Raises ValueError."""
    settings = NotifySettings()
    book = ChannelBook(settings.load(own_url), now, settings=settings, own_url=own_url)
    store = Store(store_url) if store_url else None
    if store is None or not store.is_there:  # no service has been started here
        return book.refresh(None, now)
    try:
        return book.refresh(store if store.is_current() else None, now)
    except SQLAlchemyError:
        sys.stderr.write("the database does not answer: channels that the Channels page made are not shown\n")
        return book.refresh(None, now, at_once=True)
    finally:
        store.close()


def _list(channels: Channels) -> int:
    for channel in channels:
        signed = "signed" if channel.secret else "unsigned"
        sys.stdout.write(
            f"{channel.name}  {channel.kind.value}  {channel.host}  {channel.severity.value}  {signed}\n"
        )
    if not channels.items:
        sys.stderr.write(
            "no channels: set RLVITALS_CHANNELS, RLVITALS_SLACK_WEBHOOK_URL or RLVITALS_WEBHOOK_URL, "
            "or add one on the Channels page of the service\n"
        )
    return 2 if channels.problems else 0


def _test(channels: Channels, name: str) -> int:
    channel = channels.get(name)
    if channel is None:
        known = ", ".join(c.name for c in channels) or "none"
        sys.stderr.write(f"there is no channel {name!r}; there are: {known}\n")
        return 2
    result = fire_test(channel, datetime.now(timezone.utc), channels.public_url)
    sys.stdout.write(f"{name}: {'delivered' if result.delivered else 'NOT delivered'}: {result.answer}\n")
    return 0 if result.delivered else 1
