"""Letters by script, what is foreign to a prompt, and drift from a run's first steps."""

from __future__ import annotations

import unicodedata
from functools import cache

import pytest

from rlvitals.probes.code_points import points_of
from rlvitals.probes.content import tally_content
from rlvitals.probes.finish.text import SCRIPTS
from rlvitals.probes.measured import Measured
from rlvitals.probes.scripts import ScriptBaseline, count_letters
from rlvitals.probes.tally import Tally
from tests.client.probes.written import byte_table, spelt


def letters(text: str) -> dict[str, int]:
    return {
        name: count for name, count in zip(SCRIPTS, count_letters(points_of(text)).tolist(), strict=True) if count
    }


def read(*texts: str, prompts: list[str] | None = None) -> Tally:
    return tally_content(byte_table(), *spelt(*texts), prompts=prompts)


def measured(*texts: str, prompts: list[str] | None = None) -> Measured:
    return read(*texts, prompts=prompts).measured()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Answer: 42, été ß Ǆ", {"latin": 11}),
        ("因此 答案", {"han": 4}),
        ("東京へ行くカー", {"han": 3, "kana": 4}),
        ("한국어", {"hangul": 3}),
        ("Привет, мир", {"cyrillic": 9}),
        ("Ελλάδα", {"greek": 6}),
        ("let α + β = π/2, ∑ 𝒫(𝕏), ℝ, µ", {"latin": 3}),
        ("الجواب", {"arabic": 6}),
        ("שלום", {"hebrew": 4}),
        ("नमस्ते", {"devanagari": 4}),
        ("ภาษา", {"thai": 4}),
        ("བོད ქართული አማርኛ", {"other": 13}),
        ("1234 +-*/ 😀 \u200d\n", {}),
        ("", {}),
    ],
)
def test_letters_are_counted_by_script(text: str, expected: dict[str, int]) -> None:
    assert letters(text) == expected


@cache
def every_letter() -> str:
    """All letters, without the mathematical alphabets."""
    return "".join(
        character
        for character in map(chr, range(0x110000))
        if unicodedata.category(character)[0] == "L" and "MATHEMATICAL" not in unicodedata.name(character, "")
    )


NAMES = {name: name.title() for name in SCRIPTS} | {"kana": "Hiragana}\\p{Script=Katakana"}


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name != "other"])
def test_the_blocks_hold_the_letters_of_the_script_and_no_others(name: str) -> None:
    regex = pytest.importorskip("regex", reason="SCRIPTS NOT COMPARED WITH UNICODE'S: regex is not installed")
    every = every_letter()
    theirs = regex.findall(f"[\\p{{Script={NAMES[name]}}}]", every)
    # two in a row, so that a Greek letter does not stand alone
    ours = letters("".join(c + c for c in theirs))
    assert ours.get(name, 0) > 0.95 * 2 * len(theirs), "".join(c for c in theirs if name not in letters(c + c))
    common = "".join(regex.findall("[\\p{Script=Common}]", every))
    assert sum(letters(common).values()) < 50


def test_shares_are_of_all_letters_together() -> None:
    values = measured("abc да", "是的").values
    assert values["text.script_latin_share"] == 3 / 7
    assert values["text.script_cyrillic_share"] == 2 / 7
    assert values["text.script_han_share"] == 2 / 7
    assert values["text.script_thai_share"] == 0


def test_foreign_are_letters_neither_latin_nor_of_a_tenth_of_the_prompt() -> None:
    found = measured(
        "да, yes, 是",  # 6 of the prompt's scripts, 1 foreign
        "ответ",  # all foreign: 1 Cyrillic letter in 11
        "ответ",  # a tenth: its own
        prompts=["Привет", "abcdefghijд", "abcdefghiд"],
    )
    assert found.values["text.foreign_script_share"] == 6 / 16
    worst = found.extremes["text.foreign_script_share"]
    assert (worst.value, worst.sample) == (5.0, 1)


def test_to_a_prompt_without_letters_all_but_latin_is_foreign() -> None:
    assert measured("a да", prompts=["2 + 2 ="]).values["text.foreign_script_share"] == 2 / 3


def test_without_prompts_foreign_letters_are_missing_with_the_reason() -> None:
    found = measured("abc")
    assert "prompts were not given" in found.missing["text.foreign_script_share"]
    assert found.values["text.script_latin_share"] == 1


def test_without_letters_the_shares_are_missing_with_the_reason_and_never_zero() -> None:
    for texts in (("123 😀",), ("",), ()):
        found = measured(*texts, prompts=["hi"] * len(texts))
        for name in ("text.script_latin_share", "text.foreign_script_share"):
            assert name not in found.values
            assert "no letter" in found.missing[name]


def test_drift_is_the_distance_from_the_first_steps_and_missing_until_they_are_over() -> None:
    first, later = read("a" * 400), read("a" * 300 + "д" * 100)
    baseline = ScriptBaseline(wanted=2)
    for _ in range(2):
        assert "first steps" in (first + baseline.tally()).measured().missing["text.script_drift"]
        baseline = baseline.after(first)
    assert baseline.after(later) == baseline
    assert (first + baseline.tally()).measured().values["text.script_drift"] == 0
    assert (later + baseline.tally()).measured().values["text.script_drift"] == 0.25


def test_drift_of_writers_together_is_that_of_all_their_letters() -> None:
    latin, cyrillic = read("a" * 300), read("д" * 300)
    ours, theirs = ScriptBaseline(wanted=1).after(latin), ScriptBaseline(wanted=1).after(cyrillic)
    both = latin + ours.tally() + latin + theirs.tally()
    assert both.measured().values["text.script_drift"] == 0.5


def test_drift_of_few_letters_is_missing() -> None:
    few = read("abc")
    found = (few + ScriptBaseline(wanted=1).after(few).tally()).measured()
    assert "fewer than 200 letters" in found.missing["text.script_drift"]


def test_a_step_whose_scripts_were_not_read_is_no_first_step() -> None:
    assert ScriptBaseline(wanted=1).after(Tally.zero()).steps == 0
