from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals_dashboard import words


def test_nan_both_infinities_and_missing_are_four_different_words() -> None:
    said = [words.number(v) for v in (math.nan, math.inf, -math.inf, None)]
    assert said == ["NaN", "+Inf", "−Inf", "missing"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (0.12345, "0.1235"),
        (-1.5, "−1.5"),
        (1e-6, "1e-6"),
        (2.5e-17, "2.5e-17"),
        (1234.0, "1,234"),
        (12_345.0, "12.35k"),
        (4.2e6, "4.2M"),
        (7e11, "700G"),
        (1.7e308, "1.7e308"),
    ],
)
def test_numbers_are_short_at_every_size(value: float, said: str) -> None:
    assert words.number(value) == said


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_finite_number_is_never_said_as_a_word_for_none(value: float) -> None:
    said = words.number(value)
    assert said not in (words.NAN, words.POS_INF, words.NEG_INF, words.MISSING)
    assert len(said) <= 10


def test_tags_and_entities_are_no_markup_for_plotly() -> None:
    assert words.markup('<b onload="x">&lt;') == '&lt;b onload="x"&gt;&amp;lt;'


def test_what_a_reader_would_not_see_gets_a_name() -> None:
    found = [p.name for p in words.pieces("a\u200bb\u202ec\x07d\ufffde\ue000f\ud800") if p.name]
    assert found == ["U+200B", "U+202E", "U+0007", "U+FFFD", "U+E000", "U+D800"]


@given(st.text(alphabet=st.characters()))
def test_pieces_lose_no_character(text: str) -> None:
    rebuilt = "".join(chr(int(p.name[2:], 16)) if p.name else p.shown for p in words.pieces(text))
    assert rebuilt == text


def test_ordinary_text_of_any_script_stays_one_piece() -> None:
    text = "Καλημέρα 你好 naïve\n\t🙂"
    assert [p.shown for p in words.pieces(text)] == [text]


def test_steps_name_the_latest_and_count_the_earlier_ones() -> None:
    assert words.steps((4,)) == "step 4"
    assert words.steps((1, 2, 3, 4, 5)) == "steps 3, 4, 5 and 2 earlier"


def test_gpu_hours_are_as_exact_as_people_ask_for_at_every_size() -> None:
    hours = (0.0, 0.004, 0.9688, 3.2, 47.26, 12_345.6, math.nan, math.inf)
    assert [words.gpu_hours(h) for h in hours] == ["0", "<0.01", "0.97", "3.2", "47.3", "12,346", "NaN", "+Inf"]
