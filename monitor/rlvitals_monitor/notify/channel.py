"""Channels are data: a YAML file of them, or one or two from the environment. Their addresses are secrets.

channels:
  - name: team
    kind: slack
    url: {env: TEAM_SLACK_URL}        # or {file: /run/secrets/slack}, or the address itself
    severity: warning                 # the least that is sent
    send_resolved: true
  - name: pager
    kind: webhook
    url: https://pager.example/hooks/rl
    secret: {env: PAGER_SECRET}       # whsec_… of Standard Webhooks, or any text
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from urllib.parse import urlsplit

from rlvitals.contract.alert import Severity
from rlvitals_monitor.rules.document import Item, RuleFileError, read_document

NAME = re.compile(r"[A-Za-z0-9._-]{1,48}")
TIMEOUT_S = 10.0
SLACK_GAP_S = 1.0
_KEYS = ("name", "kind", "url", "secret", "severity", "send_resolved", "allow_private", "gap_s", "timeout_s")
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


class ChannelError(ValueError):
    """A channel cannot be used as it is written; the message never holds its address or secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """Where messages go. ``gap_s`` is the least time between two of them; ``allow_private`` lets the address be
    in the local network or on this machine, and plain http. ``options`` are what only its kind knows."""

    name: str
    kind: ChannelKind
    url: str = field(repr=False)
    secret: str = field(default="", repr=False)
    severity: Severity = Severity.WARNING
    send_resolved: bool = True
    allow_private: bool = False
    gap_s: float = 0.0
    timeout_s: float = TIMEOUT_S
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ChannelError(f"name: expected 1 to 48 of A-Z a-z 0-9 . _ -, got {self.name[:60]!r}")
        if not self.host or urlsplit(self.url).scheme not in ("http", "https"):
            raise ChannelError(f"url of {self.name}: expected https://host/…")
        if urlsplit(self.url).scheme == "http" and not self.allow_private:
            raise ChannelError(f"url of {self.name}: expected https (http only with allow_private)")
        secret_key(self.secret)

    @property
    def host(self) -> str:
        """All of the address that may be shown."""
        try:
            return urlsplit(self.url).hostname or ""
        except ValueError:
            return ""

    def redact(self, text: str) -> str:
        """``text`` without this channel's secrets, should a provider or an error repeat them."""
        path = urlsplit(self.url)
        tail = f"{path.path}?{path.query}" if path.query else path.path
        for secret in (self.url, tail, path.path, path.query, self.secret):
            if len(secret) > 3:
                text = text.replace(secret, HIDDEN)
        return text


def secret_key(secret: str) -> bytes:
    """The key behind ``whsec_<base64>``; any other secret is its own UTF-8 bytes. Raises `ChannelError`."""
    if not secret.startswith(SECRET_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret[len(SECRET_PREFIX) :], validate=True)
    except binascii.Error:
        raise ChannelError(f"secret: expected base64 after {SECRET_PREFIX}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Channels:
    """All channels of a service, and its own address for the links in their messages."""

    items: tuple[Channel, ...] = ()
    public_url: str = ""

    def __iter__(self) -> Iterator[Channel]:
        return iter(self.items)

    def get(self, name: str) -> Channel | None:
        return next((channel for channel in self.items if channel.name == name), None)


def load_channels(
    path: Path | None = None,
    *,
    webhook_url: str = "",
    webhook_secret: str = "",
    slack_webhook_url: str = "",
    allow_private: bool = False,
    public_url: str = "",
    environ: Mapping[str, str] | None = None,
) -> Channels:
    """The file's channels, then ``webhook`` and ``slack`` of the environment.

    Raises `ChannelError` or, with file and line, `RuleFileError`.
    """
    values = os.environ if environ is None else environ
    items = list(_from_file(path, values, allow_private)) if path else []
    for kind, url, secret in (
        (ChannelKind.WEBHOOK, webhook_url, webhook_secret),
        (ChannelKind.SLACK, slack_webhook_url, ""),
    ):
        if url:
            items.append(_channel(kind.value, kind, url, secret=secret, allow_private=allow_private))
    names = [channel.name for channel in items]
    for name in names:
        if names.count(name) > 1:
            raise ChannelError(f"channel {name}: expected one of this name, got {names.count(name)}")
    return Channels(items=tuple(items), public_url=public_url)


def _channel(name: str, kind: ChannelKind, url: str, **given: object) -> Channel:
    gap_s = {"gap_s": SLACK_GAP_S} if kind is ChannelKind.SLACK else {}
    return Channel(name=name, kind=kind, url=url, **{**gap_s, **given})  # type: ignore[arg-type]


def _from_file(path: Path, environ: Mapping[str, str], allow_private: bool) -> Iterator[Channel]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ChannelError(f"{path}: expected a readable YAML file of channels: {error}") from None
    root = read_document(text, str(path)).mapping(("channels",), ("channels",))
    for item in root["channels"].sequence():
        yield _read(item, environ, allow_private)


def _read(item: Item, environ: Mapping[str, str], allow_private: bool) -> Channel:
    entries = item.mapping(_KEYS, ("name", "kind", "url"))
    kind = entries["kind"].choice(ChannelKind, [k.value for k in ChannelKind])
    given: dict[str, object] = {"allow_private": allow_private}
    if "secret" in entries:
        given["secret"] = _secret(entries["secret"], environ)
    if "severity" in entries:
        given["severity"] = entries["severity"].choice(Severity, [s.value for s in Severity])
    for name in ("send_resolved", "allow_private"):
        if name in entries:
            given[name] = entries[name].choice(lambda word: word == "true", ["true", "false"])
    for name in ("gap_s", "timeout_s"):
        if name in entries:
            given[name] = float(entries[name].whole(0 if name == "gap_s" else 1, 600))
    try:
        return _channel(entries["name"].text(), kind, _secret(entries["url"], environ), **given)
    except ChannelError as error:
        raise item.fail(str(error)) from None


def _secret(item: Item, environ: Mapping[str, str]) -> str:
    """The text itself, or what ``{env: NAME}`` or ``{file: PATH}`` holds."""
    try:
        entries = item.mapping(("env", "file"))
    except RuleFileError as error:
        if hasattr(item.node, "value") and isinstance(item.node.value, str):
            return item.text()
        raise error
    if len(entries) != 1:
        raise item.fail("expected one of env, file")
    return _from_env(entries["env"], environ) if "env" in entries else _from_path(entries["file"])


def _from_env(item: Item, environ: Mapping[str, str]) -> str:
    name = item.text()
    if not environ.get(name):
        raise item.fail(f"expected the environment variable {name} to be set")
    return environ[name].strip()


def _from_path(item: Item) -> str:
    try:
        return Path(item.text()).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise item.fail(f"expected a readable file: {error}") from None
