"""A run's configuration as plain JSON values, without its secrets and within bounds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum

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
    | {"authorization", "cookie", "cookies", "bearer"}
)
KEY_OWNERS = frozenset(
    {"api", "access", "private", "auth", "signing", "encryption", "license", "account", "master"}
)
TOKEN_OWNERS = frozenset({"access", "api", "auth", "refresh", "session", "hub", "hf"})
TOKENIZER_WORDS = frozenset(
    {"pad", "eos", "bos", "unk", "sep", "cls", "mask", "stop", "special", "image", "video", "audio", "think"}
    | {"first", "last", "next", "per", "each", "end", "start", "new"}
)
REMOVED = "(removed)"
DEPTH_MAX, ITEMS_MAX, CHARS_MAX = 6, 1000, 2000


def clean(config: object) -> dict[str, object]:
    """A mapping, dataclass or object with attributes as plain values; secrets become ``(removed)``."""
    plain = _plain(_as_mapping(config), 0)
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


def _as_mapping(config: object) -> object:
    if config is None or isinstance(config, Mapping):
        return config or {}
    if is_dataclass(config) and not isinstance(config, type):
        return {f.name: getattr(config, f.name) for f in fields(config)}
    return vars(config) if hasattr(config, "__dict__") else {}


def _plain(value: object, depth: int) -> object:
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, (bool, int, datetime)):
        return value
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return value[:CHARS_MAX]
    if depth >= DEPTH_MAX:
        return str(value)[:CHARS_MAX]
    if isinstance(value, Mapping) or (is_dataclass(value) and not isinstance(value, type)):
        return _plain_mapping(_as_mapping(value), depth)
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(v, depth + 1) for v in list(value)[:ITEMS_MAX]]
    return str(value)[:CHARS_MAX]


def _plain_mapping(mapping: object, depth: int) -> dict[str, object]:
    found: dict[str, object] = {}
    if isinstance(mapping, Mapping):
        for key, value in list(mapping.items())[:ITEMS_MAX]:
            name = str(key)[:200]
            found[name] = REMOVED if is_secret(name) and value else _plain(value, depth + 1)
    return found
