"""A run's configuration as plain JSON values, without its secrets and within bounds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum

from rlvitals.guard import attempt

SECRET_WORDS = frozenset(
    {
        "secret",
        "secrets",
        "password",
        "passwords",
        "passwd",
        "passphrase",
        "pwd",
        "apikey",
        "credential",
        "credentials",
    }
    | {"authorization", "cookie", "cookies", "bearer", "dsn", "jwt", "webhook", "webhooks"}
)
KEY_OWNERS = frozenset(
    {"api", "access", "private", "auth", "signing", "encryption", "license", "account", "master"}
    | {"wandb", "swanlab", "comet", "neptune", "clearml", "hub", "hf", "huggingface", "ssh", "aws", "azure", "gcp"}
    | {"google", "openai", "anthropic", "gemini", "github", "gitlab", "slack", "serper", "storage", "subscription"}
    | {"secret", "s3", "minio", "redis"}
)
MAY_HOLD_KEY = frozenset({"use_wandb", "use_swanlab"})
"""Switches of trainers that take a key in the place of true."""
TOKEN_OWNERS = frozenset({"access", "api", "auth", "refresh", "session", "hub", "hf"})
TOKENIZER_WORDS = frozenset(
    {"pad", "eos", "bos", "unk", "sep", "cls", "mask", "stop", "special", "image", "video", "audio", "think"}
    | {"first", "last", "next", "per", "each", "end", "start", "new"}
)
REMOVED = "(removed)"
_PASSWORDS = re.compile(r"(\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s/:@]{0,200}:)[^\s/@]{1,500}@")
_KEYS = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|xox[abprs]-[\w-]{10,}|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[\w-]{30,}|rlv_[\w-]{30,})"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*"
)
"""Keys of model hubs, code hosts, clouds and chats, and our own tokens: each form begins with words of its own."""
_BEARERS = re.compile(r"\b(Bearer|Basic)\s{1,4}[A-Za-z0-9._~+/=-]{8,}")
_JWT = re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{4,}")
_HOOKS = re.compile(r"(https://hooks\.slack\.com/|https://[\w.-]{1,99}/api/webhooks/)\S+")
_SIGNATURES = re.compile(r"([?&](?:sig|signature|x-(?:amz|goog)-(?:signature|credential))=)[^&\s]+", re.IGNORECASE)
_USERS = re.compile(r"(\bhttps?://)[^\s/:@]{16,200}@")
_NAMED = re.compile(
    r"(?<![\w.-])(?P<name>-{0,2}[A-Za-z_][\w.-]{0,79})(?P<sign>['\"]?\s{0,2}[=:]\s{0,2}['\"]?|\s{1,2}(?=[^\s-]))"
)
_VALUE = re.compile(r"[^\s'\",;&)}\]]+")
"""``NAME=value``, ``--flag value`` and ``'name': 'value'`` in a text: a command, an address, a printed object."""
DEPTH_MAX, ITEMS_MAX, CHARS_MAX = 12, 1000, 2000
VALUES_MAX = 4000
"""Of a whole configuration: the service keeps no more."""
ALL_CHARS_MAX = 2**18
"""Of all its names and texts together: it goes along with every batch."""
TOO_MUCH, TOO_DEEP = "(too much)", "(too deep)"


def clean(config: object) -> dict[str, object]:
    """A mapping, dataclass or object with attributes as plain values; secrets become ``(removed)``."""
    plain = _Cleaner().plain(_as_mapping(config), 0)
    return plain if isinstance(plain, dict) else {}


def is_secret(name: str) -> bool:
    """Key names such as ``hub_token``, ``wandb_api_key``, ``password``; not ``pad_token`` or ``max_tokens``."""
    words = re.split(r"[^a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())
    before, last = words[-2] if len(words) > 1 else "", words[-1]
    if SECRET_WORDS.intersection(words):
        return True
    if last == "token":
        return before not in TOKENIZER_WORDS
    if last == "tokens":
        return before in TOKEN_OWNERS
    return last in ("key", "keys") and before in KEY_OWNERS


def without_secrets(text: str) -> str:
    """``text`` without passwords in addresses, values of secret names, and keys that are known by their form."""
    text = _KEYS.sub(REMOVED, _PASSWORDS.sub(rf"\1{REMOVED}@", text))
    text = _BEARERS.sub(rf"\1 {REMOVED}", _JWT.sub(REMOVED, text))
    text = _SIGNATURES.sub(rf"\1{REMOVED}", _HOOKS.sub(rf"\1{REMOVED}", text))
    return _without_named(_USERS.sub(rf"\1{REMOVED}@", text))


def _without_named(text: str) -> str:
    """Values of secret names; what stands behind another name may hold further names."""
    kept, done, at = [], 0, 0
    while found := _NAMED.search(text, at):
        at = found.end()
        name = found["name"]
        told = found["sign"].strip() or name.startswith("-")
        value = _VALUE.match(text, at) if told and is_secret(name.lstrip("-")) else None
        if value is not None and not REMOVED.startswith(value[0]):
            kept += [text[done:at], REMOVED]
            done = at = value.end()
    return "".join([*kept, text[done:]])


def _as_mapping(config: object) -> object:
    if config is None or isinstance(config, Mapping):
        return config or {}
    if is_dataclass(config) and not isinstance(config, type):
        return {f.name: getattr(config, f.name) for f in fields(config)}
    return vars(config) if hasattr(config, "__dict__") else {}


class _Cleaner:
    """One configuration's values, counted."""

    def __init__(self) -> None:
        self.left, self.chars_left = VALUES_MAX, ALL_CHARS_MAX

    def plain(self, value: object, depth: int) -> object:
        self.left -= 1
        if self.left < 0:
            return TOO_MUCH
        if isinstance(value, Enum):
            value = value.value
        if value is None or isinstance(value, (bool, int, datetime)):
            return value
        if isinstance(value, float):
            return float(value)
        if isinstance(value, (str, bytes)):
            return self._text(value)
        if isinstance(value, Mapping) or (is_dataclass(value) and not isinstance(value, type)):
            return self._mapping(_as_mapping(value), depth) if depth < DEPTH_MAX else TOO_DEEP
        if isinstance(value, (Sequence, Set)):
            return self._items(list(value)[:ITEMS_MAX], depth) if depth < DEPTH_MAX else TOO_DEEP
        return self._text(attempt(str, value) or f"({type(value).__name__})")

    def _mapping(self, mapping: object, depth: int) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in list(mapping.items())[:ITEMS_MAX] if isinstance(mapping, Mapping) else ():
            if self.left <= 0 or self.chars_left <= 0:
                found[TOO_MUCH] = True
                break
            name = without_secrets(str(key)[:CHARS_MAX])[:200]
            self.chars_left -= len(name)
            hidden = value and (is_secret(name) or _is_key_in_a_switch(name, value))
            found[name] = REMOVED if hidden else self.plain(value, depth + 1)
        return found

    def _items(self, items: list[object], depth: int) -> list[object]:
        """A command's words too: what follows a flag with a secret name is removed."""
        found: list[object] = []
        flag = False
        for item in items[: max(self.left, 0)]:
            found.append(REMOVED if flag and item else self.plain(item, depth + 1))
            flag = (
                isinstance(item, str) and item.startswith("-") and "=" not in item and is_secret(item.lstrip("-"))
            )
        return found

    def _text(self, value: str | bytes) -> str:
        """Cut before the search, so that a huge text costs little, and again after it."""
        if self.chars_left <= 0:
            return TOO_MUCH
        text = value[: 4 * CHARS_MAX]
        told = without_secrets(text if isinstance(text, str) else repr(text))[: min(CHARS_MAX, self.chars_left)]
        self.chars_left -= len(told)
        return told


def _is_key_in_a_switch(name: str, value: object) -> bool:
    return name in MAY_HOLD_KEY and isinstance(value, str) and len(value) > 16
