"""In which scripts a completion is written, from the names of its letters. Pure."""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import lru_cache

from rlvitals_dashboard.language import phrase

SCRIPTS = {
    "latin": phrase("Latin"),
    "han": phrase("Chinese"),
    "kana": phrase("Kana"),
    "hangul": phrase("Hangul"),
    "cyrillic": phrase("Cyrillic"),
    "greek": phrase("Greek"),
    "arabic": phrase("Arabic"),
    "hebrew": phrase("Hebrew"),
    "devanagari": phrase("Devanagari"),
    "thai": phrase("Thai"),
    "other": phrase("Other"),
}
_FIRST_WORDS = {
    "cjk": "han",
    "hiragana": "kana",
    "katakana": "kana",
    "katakana-hiragana": "kana",
    "ideographic": "han",
    "fullwidth": "latin",
    "feminine": "latin",
    "masculine": "latin",
}


def script_mix(text: str) -> list[tuple[str, float]]:
    """Shares of letters by the keys of `SCRIPTS`, the largest first; empty where there is no letter."""
    counts = Counter(script for script in map(_script, text) if script)
    total = counts.total()
    return [(script, count / total) for script, count in counts.most_common()]


@lru_cache(maxsize=65_536)
def _script(char: str) -> str:
    if not char.isalpha():
        return ""
    word = unicodedata.name(char, "other").split()[0].lower()
    known = _FIRST_WORDS.get(word, word)
    return known if known in SCRIPTS else "other"
