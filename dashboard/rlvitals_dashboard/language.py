"""The visitor's language: English sentences are the keys of the Chinese catalogue (``chinese/*.yaml``).

    t("Runs")                                       one sentence
    t("{count} runs firing", count=1200)            with values; whole numbers get their thousands marked
    counted(n, "{count} rule", "{count} rules")     by number; the second form is the key of the catalogue
    phrase("Healthy")                               marks a constant that `t` says later: ``t(look.word)``
    woven("It ends {moment}.", moment=when(end))    a sentence around components, as children of one

What these are given is written in the source as a literal, so that a test can hold it against the catalogue.
What comes from a run or a person is a value and never a key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextvars import ContextVar
from enum import Enum
from functools import cache
from http.cookies import CookieError, SimpleCookie
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs

import yaml

from rlvitals.contract.language import COOKIE, preferred

_PARAMETER = "language"
_PLACE = re.compile(r"\{(\w+)\}")
_LONGEST_HEADER = 1000
"""Characters of a header that are read."""


class Language(str, Enum):
    """By the tag that the browser knows it by."""

    ENGLISH = "en"
    CHINESE = "zh-CN"


language: ContextVar[Language] = ContextVar("language", default=Language.ENGLISH)
"""Of the visitor whose request is being answered; the gate sets it."""


def t(english: str, /, **values: object) -> str:
    """The sentence in the visitor's language, with the values in their places."""
    sentence = sentences(language.get()).get(english, english)
    return sentence.format(**{name: _shown(value) for name, value in values.items()}) if values else sentence


def counted(count: int, one: str, many: str, /, **values: object) -> str:
    """``one`` or ``many`` with ``{count}`` in it; languages without a plural know ``many`` only."""
    english = one if count == 1 and language.get() is Language.ENGLISH else many
    return t(english, count=count, **values)


def phrase(english: str, /) -> str:
    """The same text: a word of the catalogue that is kept in a constant and said by `t` when a page is drawn."""
    return english


def woven(english: str, /, **components: Any) -> list[Any]:
    """The pieces of the sentence with components, or lists of them, in their places."""
    pieces: list[Any] = []
    for i, part in enumerate(_PLACE.split(t(english))):
        found = (part if part else None) if i % 2 == 0 else components.get(part)
        if isinstance(found, (list, tuple)):
            pieces.extend(found)
        elif found is not None:
            pieces.append(_shown(found))
    return pieces


def choose(cookies: str, accepted: str, query: str = "") -> Language:
    """That of the document that asks, else what the visitor chose, else what the browser asks for, else English.

    Args:
        cookies: the header ``Cookie``
        accepted: the header ``Accept-Language``
        query: of the address; the socket of a document says its language there, as `with_language` wrote it
    """
    asked = parse_qs(query[:_LONGEST_HEADER]).get(_PARAMETER, [""])[0]
    chosen = _known(asked) or _by_cookie(cookies[:_LONGEST_HEADER])
    return chosen or (Language.CHINESE if preferred(accepted, ("en", "zh")) == "zh" else Language.ENGLISH)


def with_language(address: str) -> str:
    """The address with the language of the visitor: tabs of one browser may speak different ones."""
    return f"{address}{'&' if '?' in address else '?'}{_PARAMETER}={language.get().value}"


@cache
def sentences(spoken: Language) -> Mapping[str, str]:
    """English → the sentence in that language."""
    if spoken is Language.ENGLISH:
        return {}
    known: dict[str, str] = {}
    for part in sorted((files(__package__) / "chinese").iterdir(), key=lambda part: part.name):
        if part.name.endswith(".yaml"):
            known |= yaml.safe_load(part.read_text(encoding="utf-8")) or {}
    return known


def _shown(value: object) -> object:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value


def _by_cookie(cookies: str) -> Language | None:
    try:
        morsel = SimpleCookie(cookies).get(COOKIE)
    except CookieError:
        return None
    return None if morsel is None else _known(morsel.value)


def _known(tag: str) -> Language | None:
    return next((known for known in Language if known.value == tag), None)
