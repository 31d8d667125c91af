"""A dead man's switch: while the service is well it pings an outside watcher, which tells people when it stops.

As Healthchecks and what speaks its protocol want it: a POST to the address while all is well, to the address with
``/fail`` behind it when something is not. Who is dead pings nothing, and that is the point.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from urllib.parse import urlsplit

import httpx2

from rlvitals.contract.health import HeartbeatView, PartHealth
from rlvitals_monitor.notify.address import AddressRefused, Resolve, resolve
from rlvitals_monitor.notify.channel import Channel, ChannelKind
from rlvitals_monitor.notify.channel_file import make_channel
from rlvitals_monitor.notify.parcel import Parcel, visible
from rlvitals_monitor.notify.post import build_client, network_words, post
from rlvitals_monitor.notify.settings import NotifySettings

FIRST_S = 5.0
"""Until the first ping: by then the worker has shown whether it works."""

log = logging.getLogger(__name__)

Examine = Callable[[datetime], Sequence[PartHealth]]
Told = Callable[[bool, bool], None]
"""Whether all was well, and whether the watcher took it."""


class Heartbeat:
    """A thread of its own: a watcher that hangs holds up nothing. ``examine`` says how the parts are."""

    def __init__(
        self,
        watcher: Channel,
        examine: Examine,
        *,
        every_s: float,
        told: Told = lambda well, delivered: None,
        clock: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
        resolver: Resolve = resolve,
    ) -> None:
        self._watcher, self._examine, self._every_s = watcher, examine, every_s
        self._told, self._clock, self._resolver = told, clock, resolver
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rlvitals-heartbeat", daemon=True)
        self._view = HeartbeatView(host=watcher.host, every_s=every_s)

    @property
    def view(self) -> HeartbeatView:
        return self._view

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float = 1.0) -> None:
        """Safe to call twice, or without a start. A ping in flight is left to itself."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def beat(self, client: httpx2.Client) -> bool:
        """Pings once; whether the watcher took it."""
        now = self._clock()
        parts = self._examine(now)
        well = all(part.well for part in parts)
        delivered, answer = self._send(_parcel(self._watcher, parts, well=well), client)
        if not delivered and self._view.answer != answer:
            log.warning("the heartbeat did not reach %s: %s", self._watcher.host, answer)
        self._view = HeartbeatView(
            host=self._watcher.host,
            every_s=self._every_s,
            sent_at=now,
            delivered_at=now if delivered else self._view.delivered_at,
            answer=answer,
        )
        self._told(well, delivered)
        return delivered

    def _run(self) -> None:
        with build_client() as client:
            wait_s = min(FIRST_S, self._every_s)
            while not self._stopping.wait(wait_s):
                self.beat(client)
                wait_s = self._every_s

    def _send(self, parcel: Parcel, client: httpx2.Client) -> tuple[bool, str]:
        try:
            reply = post(self._watcher, parcel, client, self._resolver)
        except AddressRefused as error:
            return False, self._watcher.redact(str(error))
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError) as error:
            return False, self._watcher.redact(network_words(error, self._watcher))
        words = f"HTTP {reply.status}: {visible(reply.body)}"
        return 200 <= reply.status < 300, self._watcher.redact(words)


def make_watcher(settings: NotifySettings) -> Channel | None:
    """Where the pings go; None where nowhere. Raises `ChannelError`."""
    url = settings.heartbeat_url.get_secret_value()
    if not url:
        return None
    return make_channel("heartbeat", ChannelKind.WEBHOOK, url, allow_private=settings.allow_private)


def _parcel(watcher: Channel, parts: Sequence[PartHealth], *, well: bool) -> Parcel:
    lines = [f"{part.name}: {'well' if part.well else part.words}" for part in parts]
    path = urlsplit(watcher.url).path.rstrip("/")
    return Parcel(
        body="\n".join(lines).encode(),
        headers={"content-type": "text/plain; charset=utf-8"},
        path="" if well else f"{path}/fail",
    )
