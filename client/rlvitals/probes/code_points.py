"""Characters that no reader sees or expects, told from their healthy uses by what stands beside them."""

from __future__ import annotations

import unicodedata
from functools import cache

import numpy as np
import numpy.typing as npt

from rlvitals.probes.arrays import Flags, Whole

Points = npt.NDArray[np.uint32]
Ranges = tuple[tuple[int, int], ...]

LAST = 0x10FFFF

CONTROLS: Ranges = (
    (0x00, 0x08),  # C0, without tab, line feed and carriage return
    (0x0B, 0x0C),
    (0x0E, 0x1F),
    (0x7F, 0x9F),  # delete and C1
    (0x202A, 0x202E),  # bidirectional embeddings and overrides
    (0x2066, 0x2069),  # bidirectional isolates
    (0xE000, 0xF8FF),  # private use
    (0xFDD0, 0xFDEF),  # noncharacters
    (0xFEFF, 0xFEFF),  # byte order mark
    (0xF0000, 0x10FFFF),  # private use, planes 15 and 16
    *((plane * 0x10000 + 0xFFFE, plane * 0x10000 + 0xFFFF) for plane in range(15)),
)
"""Never part of healthy prose, whatever stands beside them."""

SPACES: Ranges = ((0x200B, 0x200B),)
JOINERS: Ranges = ((0x200C, 0x200D),)
MARKS: Ranges = ((0x061C, 0x061C), (0x200E, 0x200F))
SELECTORS: Ranges = ((0x180B, 0x180D), (0x180F, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
TAGS: Ranges = ((0xE0000, 0xE007F),)
# grapheme joiner, Hangul fillers, Mongolian vowel separator, word joiner, invisible operators
OTHERS: Ranges = (
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x180E, 0x180E),
    (0x2060, 0x2065),
    (0x206A, 0x206F),
    (0x3164, 0x3164),
    (0xFFA0, 0xFFA0),
    (0xFFF9, 0xFFFB),
)

# Arabic and its neighbours, the scripts of India, Tibetan, Myanmar, Khmer, Mongolian, Arabic presentation forms
_JOINING: Ranges = (
    (0x0600, 0x08FF),
    (0x0900, 0x0DFF),
    (0x0F00, 0x109F),
    (0x1780, 0x18AF),
    (0xA840, 0xA8FF),
    (0xFB50, 0xFDCF),
    (0xFE70, 0xFEFC),
    (0x11000, 0x11FFF),
)
# Thai, Lao, Tibetan, Myanmar, Khmer: written without spaces
_UNSPACED: Ranges = ((0x0E00, 0x109F), (0x1780, 0x17FF), (0x1950, 0x1AAF), (0xA9E0, 0xA9FF), (0xAA60, 0xAADF))
_RIGHT_TO_LEFT: Ranges = (
    (0x0590, 0x08FF),
    (0xFB1D, 0xFDFF),
    (0xFE70, 0xFEFC),
    (0x10800, 0x10FFF),
    (0x1E800, 0x1EFFF),
)
_PICTURES: Ranges = (
    (0x00A9, 0x00A9),
    (0x00AE, 0x00AE),
    (0x203C, 0x203C),
    (0x2049, 0x2049),
    (0x2122, 0x2122),
    (0x2139, 0x2139),
    (0x2190, 0x21FF),
    (0x2300, 0x23FF),
    (0x24C2, 0x24C2),
    (0x25A0, 0x27BF),
    (0x2934, 0x2935),
    (0x2B00, 0x2BFF),
    (0x3030, 0x3030),
    (0x303D, 0x303D),
    (0x3297, 0x3297),
    (0x3299, 0x3299),
    (0x1F000, 0x1FAFF),
)
_KEYCAPS: Ranges = ((0x23, 0x23), (0x2A, 0x2A), (0x30, 0x39))
_KEYCAP, _BLACK_FLAG, _EMOJI_STYLE = 0x20E3, 0x1F3F4, 0xFE0F
_IDEOGRAPHS: Ranges = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x323AF))
_MONGOLIAN: Ranges = ((0x1800, 0x18AF),)
_IDEOGRAPHS_ONLY = 0xE0100
_SYMBOLS = frozenset({"Sm", "So", "Po", "Pd"})

_CONTROL, _INVISIBLE = 1, 2
_OUTSIDE = -1


def points_of(text: str) -> Points:
    """The characters of a text as numbers."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def count_controls(points: Points) -> int:
    """How many are controls (C0, C1, bidirectional embeddings), private use, noncharacters or byte order marks."""
    return int(np.count_nonzero(_kinds()[points] == _CONTROL))


def odd_invisibles(points: Points) -> Flags:
    """Which of a text's characters are zero-width where no writing system and no emoji puts them.

    Healthy are: a joiner between two emoji, or after a letter of a script that joins; a variation selector right
    behind a symbol, an emoji, a keycap's base or an ideograph; tags behind the black flag; a zero-width space
    beside a letter of a script that is written without spaces; direction marks in a text that holds a letter
    written from right to left.
    """
    kinds = _kinds()[points]
    odd: Flags = kinds == _INVISIBLE
    if not odd.any():
        return odd
    where = np.flatnonzero(odd)
    here = points[where].astype(np.int64)
    padded = np.pad(points.astype(np.int64), (2, 1), constant_values=_OUTSIDE)
    before2, before, after = (padded[where + shift] for shift in (0, 1, 3))
    healthy = among(JOINERS, here) & (_joins_emoji(before2, before, after) | among(_JOINING, before))
    healthy |= among(SELECTORS, here) & _takes_selector(here, before, after)
    healthy |= among(TAGS, here) & _in_flag(points)[where]
    healthy |= among(SPACES, here) & (among(_UNSPACED, before) | among(_UNSPACED, after))
    if among(MARKS, here).any():
        healthy |= among(MARKS, here) & bool(among(_RIGHT_TO_LEFT, points.astype(np.int64)).any())
    odd[where] = ~healthy
    return odd


def among(ranges: Ranges, points: Whole) -> Flags:
    """Which of ``points`` lie in one of the ranges, ends included."""
    edges = np.asarray(sorted(ranges), np.int64)
    place = np.searchsorted(edges[:, 0], points, side="right") - 1
    found: Flags = (place >= 0) & (points <= edges[place, 1])
    return found


def _joins_emoji(before2: Whole, before: Whole, after: Whole) -> Flags:
    picture = np.where(before == _EMOJI_STYLE, before2, before)
    # what follows the end was cut off
    joins: Flags = among(_PICTURES, picture) & (among(_PICTURES, after) | (after == _OUTSIDE))
    return joins


def _takes_selector(here: Whole, before: Whole, after: Whole) -> Flags:
    base = among(_IDEOGRAPHS, before) | among(_MONGOLIAN, before) | among(_PICTURES, before)
    base |= among(_KEYCAPS, before) & ((after == _KEYCAP) | (after == _OUTSIDE))
    base |= np.fromiter((_is_symbol(point) for point in before.tolist()), np.bool_, before.size)
    takes: Flags = base & (here < _IDEOGRAPHS_ONLY) | among(_IDEOGRAPHS, before)
    return takes


def _is_symbol(point: int) -> bool:
    return point > 0x7F and unicodedata.category(chr(point)) in _SYMBOLS


def _in_flag(points: Points) -> Flags:
    """Whether the last character that is no tag is the black flag, as in the flag of Wales."""
    tag = among(TAGS, points.astype(np.int64))
    base = np.maximum.accumulate(np.where(tag, 0, np.arange(points.size)))
    found: Flags = points[base] == _BLACK_FLAG
    return found


@cache
def _kinds() -> npt.NDArray[np.uint8]:
    kinds = np.zeros(LAST + 1, np.uint8)
    for kind, ranges in (
        (_INVISIBLE, (*SPACES, *JOINERS, *MARKS, *SELECTORS, *TAGS, *OTHERS)),
        (_CONTROL, CONTROLS),
    ):
        for first, last in ranges:
            kinds[first : last + 1] = kind
    return kinds
