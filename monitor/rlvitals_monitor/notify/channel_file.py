"""Channels are data: a YAML file of them, or one or two from the environment.

channels:
  - name: team
    kind: slack
    url: {env: TEAM_SLACK_URL}        # or {file: /run/secrets/slack}, or the address itself
    severity: warning                 # the least that is sent
    send_resolved: true
    match: [project=math-*, rule!=reward_flat]
    quiet: {from: "22:00", to: "07:00", zone: Europe/Berlin, critical: through}
    language: zh
    group_wait: 10s                   # and group_interval, repeat: see cadence.py
    budget: 20                        # the most messages in a minute
    escalate: {to: pager, after: 30m}
  - name: pager
    kind: webhook
    url: https://pager.example/hooks/rl
    secret: {env: PAGER_SECRET}       # whsec_… of Standard Webhooks, or any text

A channel that is wrong is left out and told in `Channels.problems`; the others work.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import time
from pathlib import Path
from zoneinfo import ZoneInfo

from rlvitals.contract.alert import Severity
from rlvitals_monitor.matcher import Matcher
from rlvitals_monitor.notify import cadence
from rlvitals_monitor.notify.channel import Channel, ChannelError, ChannelKind, Channels
from rlvitals_monitor.notify.hours import QuietHours
from rlvitals_monitor.notify.language import Language
from rlvitals_monitor.notify.registry import KINDS
from rlvitals_monitor.notify.secret_source import SecretSource
from rlvitals_monitor.notify.trial import template_fault
from rlvitals_monitor.rules.document import Item, RuleFileError, read_document

_KEYS = (
    *("name", "kind", "url", "secret", "severity", "send_resolved", "allow_private", "gap_s", "timeout_s"),
    *cadence.KEYS,
    *("match", "quiet", "language", "samples", "picture", "template"),
)
_HOSTS = {
    "hooks.slack.com": ChannelKind.SLACK,
    "discord.com": ChannelKind.DISCORD,
    "discordapp.com": ChannelKind.DISCORD,
    "open.feishu.cn": ChannelKind.FEISHU,
    "open.larksuite.com": ChannelKind.FEISHU,
    "oapi.dingtalk.com": ChannelKind.DINGTALK,
    "qyapi.weixin.qq.com": ChannelKind.WECOM,
    "api.telegram.org": ChannelKind.TELEGRAM,
}
"""Whose address it is where only one kind can be meant."""
TEMPLATE_OF = "template of "
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")


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

    Raises `ChannelError` for a file that cannot be read and for what the environment holds; what is wrong within
    the file is in ``problems``.
    """
    source = SecretSource(environ=os.environ if environ is None else environ)
    found = read_file(path, source, allow_private) if path else Channels()
    items = list(found.items)
    for kind, url, secret in (
        (ChannelKind.WEBHOOK, webhook_url, webhook_secret),
        (ChannelKind.SLACK, slack_webhook_url, ""),
    ):
        if url and any(channel.name == kind.value for channel in items):
            raise ChannelError(f"channel {kind.value}: expected one of this name, got 2")
        if url:
            items.append(make_channel(kind.value, kind, url, secret=secret, allow_private=allow_private))
    return Channels(items=tuple(items), public_url=public_url, problems=found.problems, left_out=found.left_out)


def make_channel(name: str, kind: ChannelKind, url: str, **given: object) -> Channel:
    """A channel that can work as far as one can tell without the provider. Raises `ChannelError`."""
    usual = {} if kind is ChannelKind.WEBHOOK else cadence.FOR_PEOPLE
    fields = {"gap_s": KINDS[kind].gap_s, **usual, **given}
    channel = Channel(name=name, kind=kind, url=url, **fields)  # type: ignore[arg-type]
    owner = _HOSTS.get(channel.host)
    if owner is not None and owner is not kind and kind is not ChannelKind.APPRISE:
        raise ChannelError(f"kind of {name}: expected {owner.value} for {channel.host}, got {kind.value}")
    wrong = KINDS[kind].check(channel)
    if wrong:
        raise ChannelError(f"{name}: {channel.redact(wrong)}")
    fault = template_fault(channel)
    if fault:
        raise ChannelError(f"{TEMPLATE_OF}{name}: {fault}")
    return channel


def read_file(path: Path, source: SecretSource, allow_private: bool) -> Channels:
    """Raises `ChannelError` for a file that cannot be read at all."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ChannelError(f"{path}: expected a readable YAML file of channels: {error}") from None
    items: dict[str, Channel] = {}
    problems: list[str] = []
    left_out: list[str] = []
    try:
        entries = read_document(text, str(path)).mapping(("channels",), ("channels",))["channels"].sequence()
    except RuleFileError as error:
        return Channels(problems=error.problems, left_out=None)
    for entry in entries:
        try:
            channel = read_channel(entry, source, allow_private)
            if channel.name in items:
                raise entry.fail(f"channel {channel.name}: expected one of this name, got another")
            items[channel.name] = channel
        except RuleFileError as error:
            problems += error.problems
            left_out.append(_name(entry))
    names = frozenset(left_out)
    return Channels(items=tuple(items.values()), problems=tuple(problems), left_out=None if "" in names else names)


def _name(item: Item) -> str:
    try:
        return dict(item.items())["name"].text()
    except (RuleFileError, KeyError):
        return ""


def read_channel(item: Item, source: SecretSource, allow_private: bool) -> Channel:
    """One channel as written. Raises `RuleFileError`."""
    kind = _kind(item)
    entries = item.mapping((*_KEYS, *KINDS[kind].options), ("name", "kind", "url"))
    given = {"allow_private": allow_private, **_texts(entries, source), **_plain(entries)}
    given |= cadence.read_cadence(entries)
    given["options"] = {name: _option(entries[name], source) for name in KINDS[kind].options if name in entries}
    try:
        return make_channel(entries["name"].text(), kind, source.read(entries["url"]), **given)
    except ChannelError as error:
        wrong = entries["template"] if str(error).startswith(TEMPLATE_OF) else item
        raise wrong.fail(str(error)) from None


def _texts(entries: Mapping[str, Item], source: SecretSource) -> dict[str, object]:
    given: dict[str, object] = {}
    if "secret" in entries:
        given["secret"] = source.read(entries["secret"])
    if "severity" in entries:
        given["severity"] = entries["severity"].choice(Severity, [s.value for s in Severity])
    if "language" in entries:
        given["language"] = entries["language"].choice(Language, [one.value for one in Language])
    if "match" in entries:
        given["matchers"] = tuple(_matcher(one) for one in entries["match"].sequence())
    if "template" in entries:
        given["template"] = entries["template"].lines()
    if "quiet" in entries:
        given["quiet"] = _quiet(entries["quiet"])
    return given


def _plain(entries: Mapping[str, Item]) -> dict[str, object]:
    given: dict[str, object] = {}
    for name in ("send_resolved", "allow_private", "samples", "picture"):
        if name in entries:
            given[name] = entries[name].choice(lambda word: word == "true", ["true", "false"])
    for name in ("gap_s", "timeout_s"):
        if name in entries:
            given[name] = float(entries[name].whole(0 if name == "gap_s" else 1, 600))
    return given


def _kind(item: Item) -> ChannelKind:
    """First of all, since it says which other keys there may be."""
    for name, entry in item.items():
        if name == "kind":
            return entry.choice(ChannelKind, [kind.value for kind in KINDS])
    raise item.fail("expected 'kind' to be present")


def _matcher(item: Item) -> Matcher:
    try:
        return Matcher.read(item.text())
    except ValueError as error:
        raise item.fail(str(error)) from None


def _quiet(item: Item) -> QuietHours:
    entries = item.mapping(("from", "to", "zone", "critical"), ("from", "to", "zone"))
    through = "critical" not in entries or entries["critical"].choice(str, ["through", "held"]) == "through"
    start, end = _time(entries["from"]), _time(entries["to"])
    if start == end:
        raise item.fail("expected from and to to differ")
    return QuietHours(start=start, end=end, zone=_zone(entries["zone"]), critical_breaks=through)


def _time(item: Item) -> time:
    found = _TIME.fullmatch(item.text())
    if found is None:
        raise item.fail(f"expected a time of day, such as 22:00, got {item.text()[:20]!r}")
    return time(int(found[1]), int(found[2]))


def _zone(item: Item) -> ZoneInfo:
    try:
        return ZoneInfo(item.text())
    except (ValueError, OSError, KeyError):
        raise item.fail(f"expected a time zone, such as Asia/Shanghai, got {item.text()[:60]!r}") from None


def _option(item: Item, source: SecretSource) -> str:
    """A text, a secret's place, or a list of texts, joined by commas."""
    try:
        return ",".join(one.text() for one in item.sequence())
    except RuleFileError:
        return source.read(item)
