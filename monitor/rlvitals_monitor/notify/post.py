"""One POST to a provider, and what to make of it: no redirect, no proxy, no second look-up of the name."""

from __future__ import annotations

import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from importlib.metadata import version
from types import TracebackType
from typing import Any

import httpx2

from rlvitals_monitor.notify.address import AddressRefused, Resolve, allowed_addresses, resolve
from rlvitals_monitor.notify.channel import Channel
from rlvitals_monitor.notify.kind import Judge
from rlvitals_monitor.notify.notification import Notification
from rlvitals_monitor.notify.parcel import WORDS_LIMIT, Answer, Parcel, Reply, Verdict
from rlvitals_monitor.notify.registry import KINDS

REPLY_BYTES = 4096
PATIENCE = 3.0
"""Times the channel's time-out that one POST may take: a provider that drips its headers may not hold us."""
_OPENED = ("connection.connect_tcp.complete", "connection.start_tls.complete")
_DEFAULT_PORT = {"http": 80, "https": 443}


def build_client() -> httpx2.Client:
    """No kept connections: a pool by address could reuse one host's connection for another's name."""
    # It tells each request with its whole address, which is a secret.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    return httpx2.Client(
        verify=ssl.create_default_context() if _has_system_roots() else httpx2.create_ssl_context(),
        follow_redirects=False,
        trust_env=False,
        limits=httpx2.Limits(max_keepalive_connections=0),
        headers={"user-agent": f"rlvitals/{version('rlvitals')}", "content-type": "application/json"},
    )


def send(
    channel: Channel,
    notification: Notification,
    now: datetime,
    client: httpx2.Client,
    *,
    resolver: Resolve = resolve,
) -> Answer:
    """Tries once; where a provider refuses a message with its picture, once more without: it costs no alert.

    Never raises for what the network or the provider does; ``words`` hold no secret.
    """
    answer = _try(channel, notification, now, client, resolver)
    if answer.verdict is not Verdict.PERMANENT or not has_picture(channel, notification):
        return answer
    bare = replace(notification, extras=replace(notification.extras, draws=False))
    again = _try(channel, bare, now, client, resolver)
    return replace(again, words=f"{again.words} (with its picture: {answer.words})"[:WORDS_LIMIT])


def has_picture(channel: Channel, notification: Notification) -> bool:
    extras = notification.extras
    return KINDS[channel.kind].pictures and extras.draws and extras.trend is not None


def _try(
    channel: Channel, notification: Notification, now: datetime, client: httpx2.Client, resolver: Resolve
) -> Answer:
    kind = KINDS[channel.kind]
    try:
        if kind.send is not None:
            answer = kind.send(channel, notification, now, resolver)
        elif kind.build is not None and kind.judge is not None:
            answer = _judged(channel, kind.build(channel, notification, now), kind.judge, now, client, resolver)
        else:
            raise AssertionError(f"{channel.kind.value} can neither build nor send")
    except AddressRefused as error:
        return Answer(verdict=Verdict.PERMANENT, words=channel.redact(str(error)))
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError) as error:
        return Answer(verdict=Verdict.RETRY, words=channel.redact(network_words(error, channel)))
    return replace(answer, words=channel.redact(answer.words))


def _judged(
    channel: Channel, parcel: Parcel, judge: Judge, now: datetime, client: httpx2.Client, resolver: Resolve
) -> Answer:
    return judge(post(channel, parcel, client, resolver), now)


def post(channel: Channel, parcel: Parcel, client: httpx2.Client, resolver: Resolve) -> Reply:
    """To a judged address and no other. Raises `AddressRefused`, and what the network and httpx2 raise."""
    url = httpx2.URL(channel.url)
    if parcel.path:
        url = url.copy_with(path=parcel.path)
    if parcel.query:
        url = url.copy_merge_params(dict(parcel.query))
    port = url.port or _DEFAULT_PORT[url.scheme]
    host = url.raw_host.decode("ascii")
    addresses = allowed_addresses(host, port, allow_private=channel.allow_private, resolver=resolver)
    for last, address in _marked(addresses):
        try:
            return _post_to(url, host, address, channel.timeout_s, parcel, client)
        except httpx2.ConnectError:
            if last:
                raise
    raise AddressRefused(f"{host} has no address")


def _marked(addresses: list[str]) -> list[tuple[bool, str]]:
    return [(i == len(addresses) - 1, address) for i, address in enumerate(addresses)]


def _post_to(
    url: httpx2.URL, host: str, address: str, timeout_s: float, parcel: Parcel, client: httpx2.Client
) -> Reply:
    """To the address that was judged, in the name of the host: its certificate is checked against the name."""
    with (
        _Cut(timeout_s * PATIENCE) as cut,
        client.stream(
            "POST",
            url.copy_with(host=address),
            content=parcel.body,
            headers={**parcel.headers, "host": url.netloc.decode("ascii")},
            extensions={"sni_hostname": host, "trace": cut.note},
            timeout=timeout_s,
        ) as response,
    ):
        body = _read(response, time.monotonic() + timeout_s, time.monotonic)
        return Reply(status=response.status_code, headers=response.headers, body=body)


class _Cut:
    """Ends a connection when its time is up. What then fails is told as a time-out."""

    def __init__(self, after_s: float) -> None:
        self._timer = threading.Timer(after_s, self._cut)
        self._timer.daemon = True
        self._socket: socket.socket | None = None
        self._is_over = False

    def note(self, event: str, info: dict[str, Any]) -> None:
        """Called with each event of a request, as httpx's ``trace``."""
        if event in _OPENED:
            self._socket = info["return_value"].get_extra_info("socket")
            if self._is_over:
                self._cut()

    def __enter__(self) -> _Cut:
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        if self._is_over and isinstance(error, httpx2.HTTPError):
            raise httpx2.ReadTimeout("the answer came too slowly") from error

    def _cut(self) -> None:
        self._is_over = True
        known = self._socket
        if known is not None:
            with suppress(OSError):
                known.shutdown(socket.SHUT_RDWR)


def _read(response: httpx2.Response, deadline: float, clock: Callable[[], float]) -> bytes:
    """At most `REPLY_BYTES`, and not for ever: the status has come, the rest is only words.

    So a body that breaks off is no failure: where a kind needs its words, it misses them itself.
    """
    body = b""
    with suppress(httpx2.HTTPError):
        for chunk in response.iter_raw(REPLY_BYTES):
            body += chunk
            if len(body) >= REPLY_BYTES or clock() > deadline:
                break
    return body[:REPLY_BYTES]


def network_words(error: Exception, channel: Channel) -> str:
    """May hold the channel's address: `Channel.redact` them."""
    if isinstance(error, httpx2.TimeoutException):
        return f"no answer within {channel.timeout_s:g} s"
    return f"{type(error).__name__}: {error}"


def _has_system_roots() -> bool:
    paths = ssl.get_default_verify_paths()
    return paths.cafile is not None or paths.capath is not None
