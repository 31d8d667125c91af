"""Secrets that are shown once: 256 random bits, of which a plain SHA-256 is stored, for nobody can guess them."""

from __future__ import annotations

import hashlib
import re
import secrets

SECRET = re.compile(r"[A-Za-z0-9_-]{43}")


def make_secret() -> str:
    return secrets.token_urlsafe(32)


def make_id() -> str:
    return secrets.token_hex(8)


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
