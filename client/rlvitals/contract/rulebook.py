"""Which rules are in force, and why the newest files are not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleBookView:
    """``problems``: what is wrong with the files as they are now, each as "file:line: expected …".

    While there are any, the ``rules`` of ``loaded_at`` go on judging; ``failed_at`` is when the files went bad.
    """

    rules: int
    loaded_at: datetime
    files: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    failed_at: datetime | None = None
