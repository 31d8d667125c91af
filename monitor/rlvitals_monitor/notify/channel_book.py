"""The channels in force: file, environment and what the API wrote, read again as they change.

A channel that turns bad goes on as it last was, and so do all where the file cannot be read: an editor that saves
in two strokes shall not make an alert go unheard.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from datetime import datetime, timedelta

from rlvitals.contract.channelbook import ChannelBookView
from rlvitals_monitor.notify.channel import ChannelError, Channels, dead_ends
from rlvitals_monitor.notify.channel_body import BodyReader
from rlvitals_monitor.notify.secret_source import ENV_PREFIX, SecretSource
from rlvitals_monitor.notify.settings import NotifySettings
from rlvitals_monitor.store import channels as table
from rlvitals_monitor.store.engine import Store

LOOK_AFTER = timedelta(seconds=1)
PROBLEMS_MAX = 50

log = logging.getLogger(__name__)


class ChannelBook:
    """``channels`` are those in force; `refresh` looks at the file and the table. Any thread may call either.

    Raises `ChannelError` at its beginning, as `load_channels` does.
    """

    def __init__(
        self, fixed: Channels, now: datetime, *, settings: NotifySettings | None = None, own_url: str = ""
    ) -> None:
        self._settings, self._own_url = settings, own_url
        self._turn = threading.Lock()
        self._written, self._made = fixed, Channels()
        self._looked_at: datetime | None = None
        self._loaded_at, self._failed_at = now, now if fixed.problems else None
        self._channels = fixed

    @classmethod
    def of(cls, settings: NotifySettings, own_url: str, now: datetime) -> ChannelBook:
        """Those of file and environment; those of the table come with the first look. Problems are logged."""
        book = cls(settings.load(own_url), now, settings=settings, own_url=own_url)
        book._tell(())
        return book

    @property
    def channels(self) -> Channels:
        return self._channels

    @property
    def reader(self) -> BodyReader:
        """By what the API's channels are read."""
        settings = self._settings or NotifySettings()
        source = SecretSource(env_prefix=ENV_PREFIX, folder=settings.channel_secrets)
        return BodyReader(source=source, allow_private=settings.allow_private)

    @property
    def view(self) -> ChannelBookView:
        files = (self._settings.channels,) if self._settings is not None and self._settings.channels else ()
        return ChannelBookView(
            channels=len(self._channels.items),
            loaded_at=self._loaded_at,
            files=tuple(map(str, files)),
            problems=self._channels.problems[:PROBLEMS_MAX],
            failed_at=self._failed_at,
        )

    def is_made(self, name: str) -> bool:
        """Whether the API wrote it, and not the operator's file or environment."""
        return self._made.get(name) is not None

    def refresh(self, store: Store | None, now: datetime, *, at_once: bool = False) -> Channels:
        """The channels in force after a look, which is taken at most once a second or ``at_once``.

        Without a ``store`` they are those of file and environment.
        """
        with self._turn:
            if self._settings is None:
                return self._channels
            if not at_once and self._looked_at is not None and abs(now - self._looked_at) < LOOK_AFTER:
                return self._channels
            self._looked_at = now
            self._read(self._settings, store, now)
        return self._channels

    def _read(self, settings: NotifySettings, store: Store | None, now: datetime) -> None:
        written = _going_on(self._load(settings), self._written)
        names = frozenset(channel.name for channel in written)
        rows = _rows(store) if store is not None else ()
        made = _going_on(self.reader.read_all(rows, names), self._made)
        items = (*written.items, *made.items)
        problems = (*written.problems, *made.problems, *dead_ends(items))
        found = replace(written, items=items, problems=problems, left_out=frozenset())
        self._written, self._made = written, made
        if found == self._channels:
            return
        before, self._channels = self._channels.problems, found
        self._loaded_at = now
        self._failed_at = (self._failed_at or now) if problems else None
        self._tell(before)

    def _load(self, settings: NotifySettings) -> Channels:
        """Nothing but the problem where nothing can be loaded."""
        try:
            return settings.load(self._own_url)
        except ChannelError as error:
            return Channels(public_url=self._written.public_url, problems=(str(error),), left_out=None)

    def _tell(self, before: tuple[str, ...]) -> None:
        for problem in self._channels.problems:
            if problem not in before:
                log.error("a channel is not in force as it is written: %s", problem)


def _rows(store: Store) -> tuple[table.Written, ...]:
    with store.read() as conn:
        return table.read_all(conn)


def _going_on(new: Channels, before: Channels) -> Channels:
    """``new``, and of ``before`` those that are wrong in it."""
    names = {channel.name for channel in new}
    kept = [c for c in before if c.name not in names and (new.left_out is None or c.name in new.left_out)]
    return replace(new, items=(*new.items, *kept)) if kept else new
