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
    | {"wandb", "swanlab", "comet", "neptune", "hub", "hf"}
)
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


def without_secrets(text: str) -> str:
    """``text`` without passwords in addresses and without keys that are known by their form."""
    return _KEYS.sub(REMOVED, _PASSWORDS.sub(rf"\1{REMOVED}@", text))


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
        return without_secrets(value)[:CHARS_MAX]
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
