"""Whether enough people have approved: who is one and the same, and whose voice counts. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from rlvitals.contract.view import Voice


def is_enough(wanted: int, heard: Sequence[Voice]) -> bool:
    """One voice of anybody where one is wanted; else as many different named people."""
    return bool(heard) if wanted <= 1 else len(persons(heard)) >= wanted


def persons(heard: Iterable[Voice]) -> tuple[str, ...]:
    """The different named people, in the order in which they spoke."""
    found: dict[str, str] = {}
    for voice in heard:
        if voice.named:
            found.setdefault(_identity(voice.who), voice.who)
    return tuple(found.values())


def has_spoken(who: str, heard: Iterable[Voice]) -> bool:
    return _identity(who) in {_identity(voice.who) for voice in heard}


def _identity(who: str) -> str:
    """A name in another case, width or spacing is no other person, with signs that nobody sees neither.

    Nor is another token of the same one: what follows a slash says which (ada/laptop).
    """
    name = "".join(c for c in unicodedata.normalize("NFKC", who) if unicodedata.category(c) != "Cf")
    person = name.partition("/")[0]
    return " ".join((person if person.strip() else name).casefold().split())
