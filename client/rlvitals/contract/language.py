"""Which of the languages that we know a browser asks for. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

COOKIE = "rlvitals_language"
"""Of a browser: the language that its user chose on the dashboard, ``en`` or ``zh-CN``."""
_LONGEST = 1000
"""Characters of the header that are read."""


def preferred(accepted: str, known: Sequence[str]) -> str:
    """Of ``known``, by their first subtag as ``en`` and ``zh``, the one that is asked for most; else the first.

    Args:
        accepted: the header ``Accept-Language`` (RFC 9110, 12.5.4)
    """
    for tag, weight in sorted(_tags(accepted[:_LONGEST]), key=lambda pair: -pair[1]):
        if weight > 0 and tag.partition("-")[0] in known:
            return tag.partition("-")[0]
    return known[0]


def _tags(accepted: str) -> Iterator[tuple[str, float]]:
    for part in accepted.split(","):
        tag, _, weight = part.strip().lower().partition(";q=")
        try:
            yield tag, float(weight or 1)
        except ValueError:
            continue
