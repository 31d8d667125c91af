"""What an expression can come to: a number, a truth, or *unknown* with the reason why.

Three-valued logic after Kleene: ``False and unknown`` is false, ``True or unknown`` is true, everything else that
touches an unknown is unknown. NaN is a number until it is compared: no comparison with NaN is true or false.
"""

from __future__ import annotations

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
