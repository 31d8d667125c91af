from __future__ import annotations

import json
import math
from typing import Any

import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.contract.view import HistogramView
from rlvitals_dashboard.figures import Figure, Span
from rlvitals_dashboard.heat_figure import MOST_ROWS, Cap, heat_figure, place_of, row_edges
from rlvitals_dashboard.run_heat import HEATS, cap_of
from rlvitals_dashboard.theme import LIGHT


def histogram(step: int, edges: tuple[float, ...], counts: tuple[int, ...]) -> HistogramView:
    return HistogramView(metric="length.mean", step=step, edges=edges, counts=counts)


def heat(*found: HistogramView, **other: Any) -> Figure:
    figure = heat_figure(found, theme=LIGHT, span=Span(first=0, last=9), **other)
    go.Figure(figure)  # raises for a property that Plotly does not know
    return figure


def test_each_column_is_the_share_of_its_own_step() -> None:
    z = heat(histogram(0, (0.0, 1.0, 2.0), (1, 3)), histogram(1, (1.0, 2.0, 4.0), (2, 2)))["data"][0]["z"]
    assert z == [[0.25, 0.0], [0.75, 0.5], [0.0, 0.5]]


def test_a_step_without_a_histogram_is_a_gap_and_no_column_of_zeros() -> None:
    found = [histogram(step, (0.0, 1.0), (1,)) for step in (0, 1, 2, 10, 11)]
    drawn = heat(*found)["data"][0]
    assert drawn["x"] == [0, 1, 2, 3, 9, 10, 11]
    assert drawn["z"] == [[1.0, 1.0, 1.0, None, None, 1.0, 1.0]]


def test_the_cap_is_drawn_where_it_lies_among_the_rows() -> None:
    figure = heat(histogram(0, (0.0, 100.0, 200.0), (1, 1)), cap=Cap(at=150.0, name="cap"))
    (line,) = figure["layout"]["shapes"]
    assert (line["y0"], line["label"]["text"]) == (1.5, "cap 150")


def test_ticks_say_true_values_of_any_sign_and_size() -> None:
    edges = (-math.inf, -1.0, -0.001, 0.001, 1.0, math.inf)
    axis = heat(histogram(0, edges, (1, 1, 1, 1, 1)))["layout"]["yaxis"]
    assert axis["ticktext"] == ["−Inf", "−1", "−0.001", "0.001", "1", "+Inf"]


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (-5.0, 0.0),
        (0.0, 0.0),
        (0.5, 0.5),
        (1.0, 1.0),
        (7.0, 1.0),
        (math.inf, 1.0),
        (-math.inf, 0.0),
        (math.nan, None),
    ],
)
def test_a_value_has_a_place_among_the_rows_or_none(value: float, place: float | None) -> None:
    assert place_of(value, (0.0, 1.0, math.inf)) == place


def test_without_histograms_the_map_is_empty() -> None:
    assert heat()["data"][0]["z"] == []
    assert place_of(1.0, ()) is None


edges_of = st.lists(st.floats(allow_nan=False), min_size=2, max_size=80, unique=True).map(sorted)


@given(st.lists(edges_of, min_size=1, max_size=4))
def test_no_share_is_lost_however_the_bins_differ(told: list[list[float]]) -> None:
    found = [histogram(step, tuple(edges), tuple(range(1, len(edges)))) for step, edges in enumerate(told)]
    figure = heat_figure(found, theme=LIGHT, span=Span(first=0, last=9))
    assert len(row_edges(found)) <= MOST_ROWS + 2
    for column in zip(*figure["data"][0]["z"], strict=True):
        assert sum(column) == pytest.approx(1.0)
    json.dumps(figure["data"][0]["z"], allow_nan=False)


@pytest.mark.parametrize(
    ("told", "cap"), [(160, 160.0), (1.5, 1.5), (0, None), (True, None), ("160", None), (None, None)]
)
def test_the_cap_is_what_the_trainer_told(told: Any, cap: float | None) -> None:
    found = cap_of(HEATS[0], {"length_cap": told})
    assert (found.at if found else None) == cap
    assert cap_of(HEATS[1], {"length_cap": told}) is None


@pytest.mark.parametrize("size", [0.0009766, 0.03716, 0.009291, 1e-300, 4096.0, 12_345.0, 0.5, 1 / 3])
def test_the_words_of_an_axis_are_as_short_as_its_margin_is_narrow(size: float) -> None:
    axis = heat(histogram(0, (-size, 0.0, size), (1, 1)))["layout"]["yaxis"]
    assert max(len(words) for words in axis["ticktext"]) <= 7
    told = [float(words.replace("−", "-").replace("k", "e3").replace(",", "")) for words in axis["ticktext"]]
    assert told == pytest.approx([-size, 0.0, size], rel=0.06)
