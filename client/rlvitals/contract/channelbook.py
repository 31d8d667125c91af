"""Which channels are in force, and why others are not; and one of them as it was written by the API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelBookView:
    """``problems``: what is wrong with the channels as they are written now, each as "file:line: expected …".

    A channel that was good before goes on as it was until its new form is right; ``failed_at`` is when the first
    of the problems came.
    """

    channels: int
    loaded_at: datetime
    files: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    failed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelBody:
    """A channel that was made by the API, with its secrets as ``***``, or as where they come from."""

    name: str
    body: Mapping[str, object]
    changed_at: datetime
    changed_by: str
