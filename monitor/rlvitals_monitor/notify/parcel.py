"""What a channel's kind makes of a notification, and what it reads from the provider's reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from enum import Enum

RETRY_AFTER_CAP_S = 3600.0
WORDS_LIMIT = 300
_TRY_AGAIN = frozenset({408, 425, 429})


class Verdict(str, Enum):
    DELIVERED = "delivered"
    RETRY = "retry"
    PERMANENT = "permanent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """One POST. ``headers`` and ``query`` (added to the address's own) hold signatures; ``body`` goes as it is.

    ``path`` stands in place of the address's own, where a provider takes what it is at another.
    """

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``words`` are the provider's own, made fit to be shown; ``rest_s`` is how long it asked us to wait."""

    verdict: Verdict
    words: str
    rest_s: float | None = None


def judge_status(reply: Reply, now: datetime) -> Answer:
    """By HTTP alone: 2xx took it, a redirect is never followed, other 4xx will not change their mind."""
    if 200 <= reply.status < 300:
        return Answer(verdict=Verdict.DELIVERED, words=words(reply))
    if 300 <= reply.status < 400:
        refused = f"HTTP {reply.status}: a redirect, which is never followed with a secret; give the final address"
        return Answer(verdict=Verdict.PERMANENT, words=refused)
    if reply.status in _TRY_AGAIN or reply.status >= 500:
        return Answer(verdict=Verdict.RETRY, words=words(reply), rest_s=retry_after_s(reply, now))
    return Answer(verdict=Verdict.PERMANENT, words=words(reply))


def words(reply: Reply) -> str:
    said = visible(reply.body)
    return f"HTTP {reply.status}: {said}" if said else f"HTTP {reply.status}"


def visible(body: bytes) -> str:
    """The start of a provider's words on one line, without what could move a terminal's cursor."""
    text = body.decode("utf-8", errors="replace")
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:WORDS_LIMIT]


def retry_after_s(reply: Reply, now: datetime) -> float | None:
    """Seconds or an HTTP date, at most `RETRY_AFTER_CAP_S`; None when absent or unreadable."""
    text = reply.headers.get("retry-after", "").strip()
    seconds = _seconds(text) if text else None
    if seconds is None and text:
        seconds = _until(text, now)
    return None if seconds is None else min(max(seconds, 0.0), RETRY_AFTER_CAP_S)


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if seconds == seconds else None


def _until(text: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return None if moment.tzinfo is None else (moment - now).total_seconds()
