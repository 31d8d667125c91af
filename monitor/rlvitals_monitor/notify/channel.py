"""A channel: where messages go, which ones, and in which words. Its address is a secret."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import quote, urlsplit

from rlvitals.contract.alert import Severity
from rlvitals_monitor.matcher import Matcher
from rlvitals_monitor.notify.hours import QuietHours
from rlvitals_monitor.notify.language import Language

NAME = re.compile(r"[A-Za-z0-9._-]{1,48}")
TIMEOUT_S = 10.0
SLACK_GAP_S = 1.0
HIDDEN = "***"
SECRET_PREFIX = "whsec_"


class ChannelKind(str, Enum):
    WEBHOOK = "webhook"
    SLACK = "slack"
    DISCORD = "discord"
    FEISHU = "feishu"
    DINGTALK = "dingtalk"
    WECOM = "wecom"
    TELEGRAM = "telegram"
    TEAMS = "teams"
    EMAIL = "email"
    APPRISE = "apprise"


_SCHEMES: Mapping[ChannelKind, tuple[str, ...]] = {
    ChannelKind.EMAIL: ("smtps", "smtp"),
    ChannelKind.APPRISE: (),
}
_HTTP = ("https", "http")


class ChannelError(ValueError):
    """A channel cannot be used as it is written; the message never holds its address or secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalation:
    """The channel that hears of an alert which nobody acknowledged for so long; ``where`` it is written."""

    to: str
    after_s: float
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """Where messages go. ``gap_s`` is the least time between two of them; ``allow_private`` lets the address be
    in the local network or on this machine, and plain http. ``matchers`` must all hold of what is sent; in
    ``quiet`` hours messages wait. ``options`` are what only its kind knows.

    ``budget`` is the most messages in a minute, 0 for no limit. A run's first alert waits ``group_wait_s`` for
    others, its next message at least ``group_interval_s``, unless it is a stronger one. What still fires is told
    again each ``repeat_s``, 0 for never. ``samples`` and ``picture``: whether completions and trends are shown;
    ``template`` is the operator's own text (see `template.py`).
    """

    name: str
    kind: ChannelKind
    url: str = field(repr=False)
    secret: str = field(default="", repr=False)
    severity: Severity = Severity.WARNING
    send_resolved: bool = True
    allow_private: bool = False
    gap_s: float = 0.0
    timeout_s: float = TIMEOUT_S
    matchers: tuple[Matcher, ...] = ()
    quiet: QuietHours | None = None
    language: Language = Language.ENGLISH
    budget: int = 0
    group_wait_s: float = 0.0
    group_interval_s: float = 0.0
    repeat_s: float = 0.0
    escalation: Escalation | None = None
    samples: bool = True
    picture: bool = True
    template: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ChannelError(f"name: expected 1 to 48 of A-Z a-z 0-9 . _ -, got {self.name[:60]!r}")
        self._check_url()
        secret_key(self.secret)

    @property
    def host(self) -> str:
        """All of the address that may be shown: of an apprise address its scheme, for the rest may be a token."""
        if self.kind is ChannelKind.APPRISE:
            return self._scheme if "://" in self.url else ""
        try:
            return urlsplit(self.url).hostname or ""
        except ValueError:
            return ""

    def _check_url(self) -> None:
        schemes = _SCHEMES.get(self.kind, _HTTP)
        if not self.host or (schemes and self._scheme not in schemes):
            forms = " or ".join(f"{scheme}://host/…" for scheme in schemes if scheme != "http") or "scheme://…"
            raise ChannelError(f"url of {self.name}: expected {forms}")
        if self._scheme == "http" and schemes is _HTTP and not self.allow_private:
            raise ChannelError(f"url of {self.name}: expected https (http only with allow_private)")

    @property
    def _scheme(self) -> str:
        return self.url.partition("://")[0].lower()

    def redact(self, text: str) -> str:
        """``text`` without this channel's secrets, should a provider or an error repeat them, whole or in part."""
        path = urlsplit(self.url)
        tail = f"{path.path}?{path.query}" if path.query else path.path
        whole = (self.url, tail, path.path, path.query, self.secret)
        parts = (part for part in re.split(r"[/?&=:@,]+", self.url) if _may_be_secret(part, self.host))
        for secret in sorted({*whole, *parts}, key=len, reverse=True):
            if len(secret) > 3:
                text = text.replace(secret, HIDDEN).replace(quote(secret, safe=""), HIDDEN)
        return text


def _may_be_secret(part: str, host: str) -> bool:
    """A token within an address: long, or with a digit in it. Words of an API's path have neither."""
    return part not in host and (len(part) >= 20 or (len(part) >= 8 and any(c.isdigit() for c in part)))


def secret_key(secret: str) -> bytes:
    """The key behind ``whsec_<base64>``; any other secret is its own UTF-8 bytes. Raises `ChannelError`."""
    if not secret.startswith(SECRET_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret[len(SECRET_PREFIX) :], validate=True)
    except binascii.Error:
        raise ChannelError(f"secret: expected base64 after {SECRET_PREFIX}") from None


def dead_ends(channels: Iterable[Channel]) -> tuple[str, ...]:
    """Escalations that lead nowhere, in words: the channel works, but for them."""
    known = {channel.name: channel.escalation for channel in channels}
    return tuple(
        (f"{escalation.where}: " if escalation.where else "")
        + f"escalate of {name}: expected the name of another channel, got {escalation.to}"
        for name, escalation in known.items()
        if escalation is not None and (escalation.to not in known or escalation.to == name)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Channels:
    """All channels of a service, and its own address for the links in their messages.

    ``problems`` are the channels that could not be used as written, each as "file:line: expected …"; ``left_out``
    are their names, None where not even these can be told.
    """

    items: tuple[Channel, ...] = ()
    public_url: str = ""
    problems: tuple[str, ...] = ()
    left_out: frozenset[str] | None = frozenset()

    def __iter__(self) -> Iterator[Channel]:
        return iter(self.items)

    def get(self, name: str) -> Channel | None:
        return next((channel for channel in self.items if channel.name == name), None)
