"""Text from outside, made fit for a text column on both databases."""

from __future__ import annotations


def storable(text: str, limit: int) -> str:
    """At most ``limit`` characters; NUL (which PostgreSQL refuses) and lone surrogates become U+FFFD."""
    clean = "".join("\ufffd" if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in text[:limit])
    return clean if len(text) <= limit else clean[: limit - 1] + "…"
