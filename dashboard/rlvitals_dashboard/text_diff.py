"""What changed between two completions of one prompt, word by word. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

WORDS_MAX = 1_500
_WORDS = re.compile(r"\s+|[0-9]+|[^\W\d_]+|.", re.DOTALL)
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """``kind`` is ``same``, ``gone`` (only in the older) or ``new`` (only in the newer)."""

    kind: str
    text: str


def compare(older: str, newer: str) -> list[Change]:
    """Of the first `WORDS_MAX` words of each."""
    before, after = _words(older), _words(newer)
    found: list[Change] = []
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            found.append(Change(kind="same", text="".join(before[a:b])))
            continue
        if b > a:
            found.append(Change(kind="gone", text="".join(before[a:b])))
        if d > c:
            found.append(Change(kind="new", text="".join(after[c:d])))
    return found


def is_cut(*texts: str) -> bool:
    return any(len(_words(text)) == WORDS_MAX for text in texts)


def _words(text: str) -> list[str]:
    """Scripts without spaces go letter by letter."""
    found: list[str] = []
    for match in _WORDS.finditer(text[: WORDS_MAX * 8]):
        word = match.group()
        found += list(word) if _UNSPACED.match(word) else [word]
        if len(found) >= WORDS_MAX:
            break
    return found[:WORDS_MAX]
