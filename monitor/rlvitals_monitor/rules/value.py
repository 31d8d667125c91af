"""What an expression can come to: a number, a truth, or *unknown* with the reason why.

Three-valued logic after Kleene: ``False and unknown`` is false, ``True or unknown`` is true, everything else that
touches an unknown is unknown. NaN is a number until it is compared: no comparison with NaN is true or false.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias


class Unknown:
    """Not known at this step; ``reason`` is shown to people."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"Unknown({self.reason!r})"

    def __bool__(self) -> bool:
        raise TypeError("an unknown is neither true nor false")


Number: TypeAlias = "float | Unknown"
Verdict: TypeAlias = "bool | Unknown"
Value: TypeAlias = "float | bool | str | Unknown"


def kleene_not(a: Verdict) -> Verdict:
    return a if isinstance(a, Unknown) else not a


def kleene_all(parts: Iterable[Verdict]) -> Verdict:
    """False as soon as one is false, else the first unknown, else true."""
    unknown: Unknown | None = None
    for part in parts:
        if isinstance(part, Unknown):
            unknown = part if unknown is None else unknown
        elif not part:
            return False
    return True if unknown is None else unknown


def kleene_any(parts: Iterable[Verdict]) -> Verdict:
    """True as soon as one is true, else the first unknown, else false."""
    unknown: Unknown | None = None
    for part in parts:
        if isinstance(part, Unknown):
            unknown = part if unknown is None else unknown
        elif part:
            return True
    return False if unknown is None else unknown
