"""Passwords: what one must be, its Argon2id hash, and whether one is right."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

CHARS_MIN, CHARS_MAX = 12, 200
# The Password Storage Cheat Sheet of OWASP: m = 19 MiB, t = 2, p = 1.
_HASHER = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)


def password_fault(password: str, name: str) -> str:
    """Why this may not be the password of ``name``; empty when it may. Length is what counts; no odd rules."""
    if not CHARS_MIN <= len(password) <= CHARS_MAX:
        return f"expected {CHARS_MIN} to {CHARS_MAX} characters"
    if len(set(password)) < 4:
        return "expected more than three different characters"
    return "expected a password without the name in it" if name.casefold() in password.casefold() else ""


def hash_password(password: str) -> str:
    """The hash with its parameters and salt, as a text to keep."""
    return _HASHER.hash(_plain(password))


def is_right(hashed: str | None, password: str) -> bool:
    """False also without a hash, but after the same work: how long it takes does not say who exists."""
    try:
        return _HASHER.verify(hashed or _nobodys(), _plain(password)) and hashed is not None
    except (VerificationError, InvalidHashError):
        return False


def is_weaker(hashed: str) -> bool:
    """Whether it was made with parameters that are not today's."""
    return _HASHER.check_needs_rehash(hashed)


@lru_cache(maxsize=1)
def _nobodys() -> str:
    return _HASHER.hash("nobody has this password")


def _plain(password: str) -> bytes:
    """The same however the keyboard composes its characters."""
    return unicodedata.normalize("NFKC", password[: CHARS_MAX + 1]).encode("utf-8", "surrogatepass")
