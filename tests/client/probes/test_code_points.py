"""Controls and invisible characters, healthy and not."""

from __future__ import annotations

import unicodedata

import pytest

from rlvitals.probes.code_points import CONTROLS, LAST, count_controls, odd_invisibles, points_of


def odd(text: str) -> list[int]:
    return [int(place) for place in odd_invisibles(points_of(text)).nonzero()[0]]


def test_controls_are_what_unicode_calls_so_beside_bidirectional_ones_and_the_byte_order_mark() -> None:
    ours = {point for first, last in CONTROLS for point in range(first, last + 1)}
    noncharacters = {*range(0xFDD0, 0xFDF0), *(p * 0x10000 + n for p in range(17) for n in (0xFFFE, 0xFFFF))}
    theirs = {point for point in range(LAST + 1) if unicodedata.category(chr(point)) in ("Cc", "Co")}
    named = {0xFEFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
    assert ours == theirs - {0x09, 0x0A, 0x0D} | noncharacters | named


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("a\tb\r\n", 0),
        ("a\x00b\x1b[0m\x7f", 3),
        ("\x85\x9f", 2),
        ("\ufeffa", 1),
        ("\u202eabc\u2066", 2),
        ("\ue000\U000f0000\ufdd0\U0001ffff", 4),
        ("\ufffd\u00a0\u200b", 0),
        ("", 0),
    ],
)
def test_controls_are_counted(text: str, count: int) -> None:
    assert count_controls(points_of(text)) == count


@pytest.mark.parametrize(
    "text",
    [
        "👨‍👩‍👧‍👦 family, 👍🏽 thumb, 🧑🏽‍🚀 astronaut, ❤️‍🔥 heart on fire, 🏳️‍🌈 flag, 🏴‍☠️ pirate",
        "1️⃣ #️⃣ *️⃣ ©️ ™️ ☎︎ ↔️ ‼️ ℹ️ ㊙️",
        "🏴󠁧󠁢󠁷󠁬󠁳󠁿 Wales",
        "می‌خواهم",  # Persian, zero-width non-joiner
        "क्‍ष and ക്‍",  # joiners in the scripts of India
        "ภาษา​ไทย, html​ไทย",  # zero-width space in Thai
        "葛󠄀城市",  # ideographic variation selector
        "שלום‏!",  # right-to-left mark
        "∩︀",  # a standard variation of a symbol
        "👩‍",  # cut by the length limit
        "1️",
        "",
        "plain",
    ],
)
def test_invisible_characters_of_emoji_and_writing_systems_are_healthy(text: str) -> None:
    assert odd(text) == []


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("wo\u200brd", [2]),
        ("a\u200db", [1]),
        ("a\u200c", [1]),
        ("x\ufe0f", [1]),
        ("\ufe0fx", [0]),
        ("12\ufe0f3", [2]),
        ("😀\ufe0f\ufe01\ufe02", [2, 3]),  # bytes smuggled behind an emoji
        ("😀\u200dabc", [1]),
        ("a\U000e0041\U000e0042", [1, 2]),
        ("left\u200fright", [4]),
        ("a\u2060b\u3164", [1, 3]),
        ("a\U000e0100", [1]),
    ],
)
def test_invisible_characters_elsewhere_are_odd(text: str, places: list[int]) -> None:
    assert odd(text) == places
