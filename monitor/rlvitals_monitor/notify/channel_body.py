"""A channel as the API takes it: the keys of a channel file, but bound closer, since it comes over the network.

Its secrets come from where the operator laid them out for that, it reaches the local network only where the
operator allows it to all channels, and apprise, which resolves names by itself, is the file's alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rlvitals_monitor.notify.channel import HIDDEN, NAME, Channel, ChannelError, ChannelKind, Channels
from rlvitals_monitor.notify.channel_file import read_channel
from rlvitals_monitor.notify.secret_source import SecretSource
from rlvitals_monitor.rules.document import RuleFileError, read_document
from rlvitals_monitor.store.channels import Written

Body = Mapping[str, Any]
SECRETS = ("url", "secret")
CHARACTERS_MAX = 20_000
RESERVED = frozenset({"status"})
"""What the API's own paths are called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyReader:
    """``allow_private`` is the operator's word for all channels."""

    source: SecretSource
    allow_private: bool = False

    def read(self, name: str, body: Body) -> Channel:
        """The channel. Raises `ChannelError`, which never holds a secret."""
        if not NAME.fullmatch(name) or name in RESERVED:
            raise ChannelError(f"name: expected 1 to 48 of A-Z a-z 0-9 . _ -, and not status, got {name[:60]!r}")
        text = json.dumps({"name": name, **_given(body)}, ensure_ascii=False)
        if len(text) > CHARACTERS_MAX:
            raise ChannelError(f"channel {name}: expected at most {CHARACTERS_MAX} characters, got {len(text)}")
        label = f"channel {name}"
        try:
            channel = read_channel(read_document(text, label), self.source, self.allow_private)
        except RuleFileError as error:
            raise ChannelError(str(error).replace(f"{label}:1: ", f"{label}: ")) from None
        if channel.escalation is not None:
            channel = replace(channel, escalation=replace(channel.escalation, where=label))
        if channel.kind is ChannelKind.APPRISE:
            raise ChannelError(f"{label}: kind: expected one that is not apprise, which only the file may name")
        if channel.allow_private and not self.allow_private:
            raise ChannelError(f"{label}: allow_private: expected RLVITALS_ALLOW_PRIVATE of the operator first")
        return channel

    def read_all(self, kept: Iterable[Written], taken: frozenset[str]) -> Channels:
        """Those that are right, in their order. ``taken`` are names that the file gives."""
        items: list[Channel] = []
        problems: dict[str, str] = {}
        for one in kept:
            try:
                if one.name in taken:
                    raise ChannelError(f"channel {one.name}: expected another name, the file has one of this name")
                items.append(self.read(one.name, one.body))
            except ChannelError as error:
                problems[one.name] = str(error)
        return Channels(
            items=tuple(items), problems=tuple(problems.values()), left_out=frozenset(problems.keys() - taken)
        )


def hide(body: Body) -> dict[str, Any]:
    """As it may be shown: a secret's place as it is, a secret itself as ``***``."""
    return {key: HIDDEN if key in SECRETS and isinstance(value, str) else value for key, value in body.items()}


def carry_over(body: Body, before: Body) -> dict[str, Any]:
    """With the secrets of ``before`` where the new body leaves them out or repeats what was shown of them."""
    kept = {key: before[key] for key in SECRETS if key in before and body.get(key, HIDDEN) == HIDDEN}
    return {**_given(body), **kept}


def leads_away(after: Channel, before: Channel, body: Body) -> bool:
    """Whether a secret that was carried over would go to somebody else than it was given for."""
    carried = bool(before.secret) and body.get("secret", HIDDEN) == HIDDEN
    return carried and (after.kind, after.host) != (before.kind, before.host)


def _given(body: Body) -> dict[str, Any]:
    return {key: value for key, value in body.items() if value is not None and key != "name"}
