"""The built-in rules' own words in Chinese: summaries, advice, diagnoses, reasons. Pure; others pass unchanged.

A summary has its numbers in it when it comes here, so it is known by the template that it was made from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files

import yaml

from rlvitals_monitor.notify.language import Language

RuleWords = Callable[[str], str]
_PLACE = re.compile(r"\{(\w+)\}")
_LONGEST = 2000
"""No sentence of the catalogue is as long: a longer one is not ours, and is not compared."""


def rule_words_of(language: Language) -> RuleWords:
    return translate if language is Language.CHINESE else _as_it_is


def translate(text: str) -> str:
    """The Chinese of a built-in sentence, filled in as the English one was; any other text as it is."""
    sentence = " ".join(text[:_LONGEST].split())
    known = _known()
    if sentence in known:
        return known[sentence]
    for pattern, chinese in _filled():
        found = pattern.fullmatch(sentence)
        if found is not None:
            return _put(chinese, {name: _value(name, part) for name, part in found.groupdict().items()})
    return text


def _value(name: str, part: str) -> str:
    """Any of several metrics may be meant."""
    return _known().get(part, part.replace(" or ", " 或 ") if name in ("metric", "metrics") else part)


@cache
def sentences() -> Mapping[str, str]:
    """English → Chinese, with the placeholders of the catalogue in both."""
    return _read("chinese.yaml")


@cache
def reasons() -> Mapping[str, str]:
    """Why a light is as it is, and why a rule cannot tell; as `sentences`."""
    return _read("chinese_reasons.yaml")


@cache
def numbers() -> Mapping[str, str]:
    """Why a rule's number is what it is; as `sentences`."""
    return _read("chinese_numbers.yaml")


@cache
def _known() -> Mapping[str, str]:
    return {**numbers(), **reasons(), **sentences()}


def _read(name: str) -> Mapping[str, str]:
    text = (files("rlvitals_monitor.rules") / name).read_text(encoding="utf-8")
    return {" ".join(entry["en"].split()): entry["zh"] for entry in yaml.safe_load(text)}


@cache
def _filled() -> tuple[tuple[re.Pattern[str], str], ...]:
    with_places = [(english, chinese) for english, chinese in _known().items() if _PLACE.search(english)]
    # The longest first: what is said in more words is meant more closely.
    with_places.sort(key=lambda pair: -len(pair[0]))
    return tuple((re.compile(_pattern(english)), chinese) for english, chinese in with_places)


def _put(sentence: str, given: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda place: given.get(place[1], place[0]), sentence)


def _pattern(english: str) -> str:
    parts = _PLACE.split(english)
    seen: set[str] = set()
    pattern = ""
    for i, part in enumerate(parts):
        if i % 2 == 0:
            pattern += re.escape(part)
        else:
            pattern += f"(?P={part})" if part in seen else f"(?P<{part}>.{{1,200}}?)"
            seen.add(part)
    return pattern


def _as_it_is(text: str) -> str:
    return text
