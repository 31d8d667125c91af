"""The trend as a line of signs and as a picture: nothing strange is lost, and what is no number is told apart."""

from __future__ import annotations

import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from rlvitals_monitor.notify.picture import HEIGHT, WIDTH, draw
from rlvitals_monitor.notify.trend import ABOVE, BELOW, LEVELS, MISSING, NAN, Trend, Value, marks, sparkline

ANYTHING = st.one_of(st.none(), st.floats())


def trend(*values: Value, threshold: float | None = None, metric: str = "kl.k3") -> Trend:
    return Trend(metric=metric, steps=tuple(range(1, len(values) + 1)), values=values, threshold=threshold)


def test_a_rise_is_a_rise_of_signs() -> None:
    assert sparkline(trend(*map(float, range(8)))) == LEVELS


@pytest.mark.parametrize(
    ("value", "sign", "name"),
    [(math.nan, NAN, "NaN"), (math.inf, ABOVE, "+Inf"), (-math.inf, BELOW, "-Inf"), (None, MISSING, "missing")],
)
def test_each_kind_of_no_number_has_its_own_sign(value: Value, sign: str, name: str) -> None:
    shown = trend(1.0, value, 2.0)
    assert sparkline(shown)[1] == sign
    assert marks(shown) == [(sign, name)]


@pytest.mark.parametrize(("value", "sign"), [(math.nan, NAN), (math.inf, ABOVE), (-math.inf, BELOW)])
def test_one_strange_step_in_a_thousand_is_seen(value: float, sign: str) -> None:
    values = [1.0] * 1000
    values[501] = value
    assert sign in sparkline(trend(*values))


def test_one_spike_in_a_thousand_steps_is_seen() -> None:
    values = [1.0] * 1000
    values[501] = 9.0
    assert sparkline(trend(*values)).count(LEVELS[-1]) == 1


@given(st.lists(ANYTHING, max_size=200), st.integers(1, 40))
def test_any_values_make_a_line_within_its_width(values: list[Value], width: int) -> None:
    line = sparkline(trend(*values), width)
    assert len(line) == min(len(values), width)
    assert set(line) <= {*LEVELS, NAN, ABOVE, BELOW, MISSING}


EXTREMES = [
    [1.0],
    [None, None],
    [math.nan] * 3,
    [math.inf, -math.inf],
    [1.7e308, -1.7e308, 0.0],
    [5e-324, 0.0],
    [2.0] * 50,
    [float(i) for i in range(120)],
]


@pytest.mark.parametrize("values", EXTREMES)
@pytest.mark.parametrize("threshold", [None, 1.0, math.nan, math.inf, -1.7e308])
def test_whatever_the_values_are_there_is_a_picture_of_a_few_kilobytes(
    values: list[Value], threshold: float | None
) -> None:
    drawn = draw(trend(*values, threshold=threshold))
    with Image.open(io.BytesIO(drawn)) as image:
        assert (image.format, image.size) == ("PNG", (WIDTH, HEIGHT))
    assert len(drawn) < 20_000


def test_the_four_kinds_of_no_number_make_four_pictures_and_the_same_trend_the_same_bytes() -> None:
    drawn = [draw(trend(1.0, value, 2.0)) for value in (math.nan, math.inf, -math.inf, None, 1.5)]
    assert len(set(drawn)) == 5
    assert draw(trend(1.0, math.nan, 2.0)) == drawn[0]


def test_a_line_is_broken_where_a_value_is_missing() -> None:
    def blue(*values: Value) -> int:
        with Image.open(io.BytesIO(draw(trend(*values)))) as image:
            pixels = image.convert("RGB").get_flattened_data()
        return sum(1 for pixel in pixels if isinstance(pixel, tuple) and pixel[2] > 180 and pixel[0] < 60)

    assert blue(1.0, 2.0, None, 4.0, 5.0) < blue(1.0, 2.0, 3.0, 4.0, 5.0)


@pytest.mark.parametrize("metric", ["", "好" * 300, "\u202e\x1b[31m", "a\nb", "x" * 100_000])
def test_no_metrics_name_breaks_the_picture(metric: str) -> None:
    assert draw(trend(1.0, 2.0, metric=metric)).startswith(b"\x89PNG")


def test_a_trend_without_steps_is_no_picture() -> None:
    assert sparkline(trend()) == ""
    with pytest.raises(ValueError, match="without steps"):
        draw(trend())
