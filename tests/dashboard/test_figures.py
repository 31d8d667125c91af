from __future__ import annotations

import json
import math
from datetime import datetime, timezone
from typing import Any

import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plotly.utils import PlotlyJSONEncoder

from rlvitals.contract.alert import Alert, AlertState, Severity, Truth
from rlvitals.contract.codec import loads
from rlvitals.contract.command import CommandKind, CommandState
from rlvitals.contract.metrics import find
from rlvitals.contract.view import CommandView, RuleView, SeriesView
from rlvitals_dashboard import figures
from rlvitals_dashboard.figure_scale import Scale
from rlvitals_dashboard.figures import (
    ACTIONS,
    EXTENT,
    FIRING,
    HIGH,
    LOW,
    NANS,
    NEG_INFS,
    POS_INFS,
    SMOOTH,
    VALUE,
    Drawing,
    Span,
    scale_of,
)
from rlvitals_dashboard.smoothing import find_smoothing
from rlvitals_dashboard.theme import DARK, LIGHT

to_json: Any = PlotlyJSONEncoder().encode
"""As Dash sends it."""
NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)
SPAN = Span(first=0, last=99)


def series(values: dict[int, float], metric: str = "gradient.norm", **other: Any) -> SeriesView:
    kinds = {
        "nan": tuple(s for s, v in values.items() if math.isnan(v)),
        "pos_inf": tuple(s for s, v in values.items() if v == math.inf),
        "neg_inf": tuple(s for s, v in values.items() if v == -math.inf),
    }
    base: dict[str, Any] = {"run": "r", "attempt": "a", "metric": metric, "bucket": 1}
    return SeriesView(**base | kinds | {"step": tuple(values), "value": tuple(values.values())} | other)


def drawing(**other: Any) -> Drawing:
    options: dict[str, Any] = {"theme": LIGHT, "span": SPAN}
    return Drawing(**options | other)


def chart(view: SeriesView, **other: Any) -> figures.Figure:
    figure = figures.chart(view, find(view.metric), drawing(**other))
    go.Figure(figure)  # raises for a property that Plotly does not know
    return figure


def alert(**other: Any) -> Alert:
    base: dict[str, Any] = {
        "id": "a1",
        "run": "r",
        "attempt": "a",
        "rule": "rule",
        "severity": Severity.CRITICAL,
        "state": AlertState.FIRING,
        "since_step": 40,
        "since_time": NOW,
        "metric": "gradient.norm",
        "threshold": 5.0,
    }
    return Alert(**base | other)


def command(**other: Any) -> CommandView:
    base: dict[str, Any] = {
        "id": "c1",
        "run": "r",
        "kind": CommandKind.SET_KL_COEF,
        "state": CommandState.APPLIED,
        "created_at": NOW,
        "expires_at": NOW,
        "before": 0.8,
        "after": 0.2,
        "step": 50,
    }
    return CommandView(**base | other)


def test_each_kind_of_nonfinite_value_is_its_own_mark_in_its_own_row() -> None:
    figure = chart(series({0: 1.0, 1: math.nan, 2: math.inf, 3: -math.inf, 4: 2.0}))
    rugs = {figure["data"][i]["name"]: figure["data"][i] for i in (NANS, POS_INFS, NEG_INFS)}
    assert {name: rug["x"] for name, rug in rugs.items()} == {"NaN": [1], "+Inf": [2], "−Inf": [3]}
    assert len({rug["marker"]["symbol"] for rug in rugs.values()}) == 3
    assert len({rug["marker"]["color"] for rug in rugs.values()}) == 3
    assert figure["layout"]["yaxis2"]["categoryarray"] == ["−Inf", "NaN", "+Inf"]


def test_the_line_breaks_at_a_nonfinite_value_and_never_passes_through_zero() -> None:
    line = chart(series({0: 1.0, 1: math.nan, 2: math.inf, 3: 2.0}))["data"][VALUE]
    assert (line["x"], line["y"]) == ([0, 1, 2, 3], [1.0, None, None, 2.0])
    assert line["connectgaps"] is False


def test_a_missing_step_is_a_gap_and_no_point() -> None:
    steps = [0, 1, 2, 3, 10, 11]
    line = chart(series({s: float(s) for s in steps}))["data"][VALUE]
    assert line["x"] == [0, 1, 2, 3, 4, 10, 11]
    assert line["y"] == [0.0, 1.0, 2.0, 3.0, None, 10.0, 11.0]


def test_a_run_that_logs_each_tenth_step_has_no_gaps() -> None:
    line = chart(series(dict.fromkeys(range(0, 100, 10), 1.0)))["data"][VALUE]
    assert None not in line["y"]


def test_only_finite_numbers_reach_the_browser_as_coordinates() -> None:
    figure = chart(series({0: math.nan, 1: math.inf, 2: 1.7e308, 3: -1.7e308}))
    sent = loads(to_json(figure))
    for trace in sent["data"]:
        assert not any(x is None for x in trace["x"])
    for index in (NANS, POS_INFS, NEG_INFS):
        assert sent["data"][index]["y"] == [sent["data"][index]["name"]] * len(sent["data"][index]["x"])


def test_a_series_of_nothing_but_nan_shows_marks_and_no_line() -> None:
    figure = chart(series(dict.fromkeys(range(5), math.nan)))
    assert figure["data"][NANS]["x"] == [0, 1, 2, 3, 4]
    assert set(figure["data"][VALUE]["y"]) == {None}


def test_an_empty_series_is_an_empty_chart_over_the_same_steps() -> None:
    figure = chart(series({}))
    assert figure["data"][VALUE]["x"] == []
    assert figure["data"][EXTENT]["x"] == [0, 99]


def test_a_single_point_is_seen() -> None:
    assert "markers" in chart(series({7: 3.0}))["data"][VALUE]["mode"]


def test_many_points_are_a_line_only() -> None:
    assert chart(series({s: float(s) for s in range(300)}))["data"][VALUE]["mode"] == "lines"


def test_huge_spikes_go_to_a_logarithmic_axis_that_says_so() -> None:
    spiky = chart(series({s: 4e6 if s == 50 else 0.02 for s in range(100)}))
    calm = chart(series({s: 0.02 + s / 1000 for s in range(100)}))
    assert spiky["layout"]["yaxis"]["type"] == "log"
    assert "type" not in calm["layout"]["yaxis"]


def test_values_of_zero_or_below_keep_the_axis_linear() -> None:
    assert scale_of(series({s: 4e6 if s == 50 else 0.0 for s in range(100)}), drawing()).linear


def test_a_bucketed_series_shows_its_least_and_greatest_values() -> None:
    view = series({0: 1.0, 10: 2.0}, bucket=10, low=(0.5, None), high=(9.0, None))
    data = chart(view)["data"]
    assert (data[LOW]["y"], data[HIGH]["y"]) == ([0.5, None], [9.0, None])
    assert data[HIGH]["fill"] == "tonexty"


def test_a_raw_series_has_no_envelope() -> None:
    assert chart(series({0: 1.0}))["data"][LOW]["x"] == []


def test_a_firing_alert_is_a_band_to_the_last_step_with_its_threshold() -> None:
    figure = chart(series({0: 1.0}), alerts=[alert()])
    assert figure["data"][FIRING]["x"] == [40, 99]
    dotted = [s for s in figure["layout"]["shapes"] if s["xref"] == "paper"]
    assert [s["y0"] for s in dotted] == [5.0]


def test_a_resolved_alert_is_a_band_until_its_recovery() -> None:
    figure = chart(series({0: 1.0}), alerts=[alert(state=AlertState.RESOLVED, resolved_step=60)])
    assert figure["data"][FIRING]["x"] == []
    bands = [(s["x0"], s["x1"]) for s in figure["layout"]["shapes"] if s["type"] == "rect"]
    assert bands == [(40, 60)]


def test_alerts_of_other_metrics_leave_a_chart_alone() -> None:
    figure = chart(series({0: 1.0}), alerts=[alert(metric="kl.k3")])
    assert figure["layout"]["shapes"] == []


@pytest.mark.parametrize("threshold", [math.nan, math.inf, -math.inf, None])
def test_a_threshold_that_is_no_number_draws_no_line(threshold: float | None) -> None:
    figure = chart(series({0: 1.0}), alerts=[alert(threshold=threshold)])
    assert not [s for s in figure["layout"]["shapes"] if s["xref"] == "paper"]


def test_the_severities_differ_by_dash_and_not_by_colour_alone() -> None:
    dashes = set()
    for severity in Severity:
        shapes = chart(series({0: 1.0}), alerts=[alert(severity=severity)])["layout"]["shapes"]
        dashes.add(next(s["line"]["dash"] for s in shapes if s["xref"] == "x"))
    assert len(dashes) == 3


def test_an_applied_command_is_marked_on_every_chart_with_before_and_after() -> None:
    marks = chart(series({0: 1.0}), commands=[command()])["data"][ACTIONS]
    assert marks["x"] == [50]
    assert "0.8 → 0.2" in marks["text"][0]


def test_a_command_that_was_not_applied_is_no_mark() -> None:
    figure = chart(series({0: 1.0}), commands=[command(state=CommandState.PROPOSED, step=None)])
    assert figure["data"][ACTIONS]["x"] == []


def test_names_of_people_cannot_write_markup_into_a_chart() -> None:
    marks = chart(series({0: 1.0}), commands=[command(decided_by='<a href="javascript:x">eve</a>')])["data"][
        ACTIONS
    ]
    assert "<a" not in marks["text"][0]


def test_a_zoomed_chart_keeps_to_the_chosen_steps() -> None:
    axis = chart(series({0: 1.0}), span=Span(first=10, last=20, zoomed=True))["layout"]["xaxis"]
    assert axis["range"] == [10, 20]


def test_the_steps_of_a_chart_lie_where_those_of_its_neighbours_do_whatever_marks_it_has() -> None:
    well, ill = series({0: 1.0, 9: 2.0}), series({0: math.nan, 5: math.inf, 9: 1.0})
    axes = [chart(one, span=Span(first=0, last=9))["layout"]["xaxis"] for one in (well, ill)]
    assert [axis["autorangeoptions"] for axis in axes] == [{"clipmin": 0, "clipmax": 9}] * 2
    alone = chart(series({3: 1.0}), span=Span(first=3, last=3))["layout"]["xaxis"]
    assert alone["autorangeoptions"] == {}


def test_both_themes_draw_the_same_chart_in_other_colours() -> None:
    view = series({0: 1.0, 1: math.nan})
    light, dark = chart(view), chart(view, theme=DARK)
    assert light["data"][VALUE]["y"] == dark["data"][VALUE]["y"]
    assert light["data"][VALUE]["line"]["color"] != dark["data"][VALUE]["line"]["color"]


def test_an_extension_goes_to_the_traces_that_the_figure_has() -> None:
    data, indices = figures.extension(series({100: 1.0, 101: 2.0}), enveloped=True, firing=True, last_step=101)
    assert indices == [FIRING, LOW, HIGH, VALUE, EXTENT]
    assert data["x"][indices.index(VALUE)] == [100, 101]
    assert data["x"][indices.index(FIRING)] == [101]


def test_an_extension_without_points_still_moves_the_last_step() -> None:
    data, indices = figures.extension(series({}), enveloped=False, firing=False, last_step=101)
    assert (indices, data["x"]) == ([EXTENT], [[101]])


@given(
    st.dictionaries(st.integers(0, 10_000), st.floats(), max_size=40).map(lambda d: dict(sorted(d.items()))),
)
def test_any_series_draws_and_its_json_is_strict(values: dict[int, float]) -> None:
    figure = figures.chart(series(values), find("gradient.norm"), drawing())
    json.loads(to_json(figure), parse_constant=pytest.fail)
    drawn = sum(y is not None for y in figure["data"][VALUE]["y"])
    marked = sum(len(figure["data"][i]["x"]) for i in (NANS, POS_INFS, NEG_INFS))
    assert drawn + marked == len(values)


def test_values_at_the_end_of_the_doubles_leave_an_axis_whose_span_is_a_double() -> None:
    figure = chart(series({0: 1e308, 1: -1e308, 2: 5e-324, 3: 1.0}, metric="policy.loss"))
    drawn = figure["data"][VALUE]["y"]
    assert math.isfinite(2 * (max(drawn) - min(drawn)))
    assert drawn[2:] == [5e-324, 1.0]


@pytest.mark.parametrize("level", [1.0, -3.0, 1e-7])
def test_rounding_alone_is_drawn_as_a_level_and_not_as_a_course(level: float) -> None:
    axis = chart(series({0: level, 1: level * (1 + 2e-16), 2: level * (1 - 2e-16)}))["layout"]["yaxis"]
    low, high = axis["range"]
    assert low <= min(0.0, level)
    assert max(0.0, level) <= high
    assert high - low >= abs(level)


def test_a_small_course_keeps_its_own_axis() -> None:
    assert "range" not in chart(series({0: 1.0, 1: 1.000001, 2: math.nan}))["layout"]["yaxis"]
    assert "range" not in chart(series({0: 0.0, 1: 5e-324}))["layout"]["yaxis"]


def limit(**other: Any) -> RuleView:
    base: dict[str, Any] = {
        "rule": "gradient_spike",
        "severity": Severity.WARNING,
        "truth": Truth.INACTIVE,
        "dormant": False,
        "reason": "",
        "expr": "",
        "summary": "",
        "threshold": 7.0,
        "metric": "gradient.norm",
    }
    return RuleView(**base | other)


def limits(figure: figures.Figure) -> list[tuple[str, float]]:
    return [(s["name"], s["y0"]) for s in figure["layout"]["shapes"] if s.get("name", "").startswith("limit")]


def test_what_a_rule_holds_a_metric_against_is_a_line_also_while_it_is_quiet() -> None:
    figure = chart(series({0: 1.0, 1: 5.0}), rules=[limit(), limit(rule="other", metric="kl.k3")])
    assert limits(figure) == [("limit gradient_spike", 7.0)]


@pytest.mark.parametrize(
    ("points", "threshold", "drawn"),
    [
        ({0: 0.5, 1: 1.8}, 164.7, False),
        ({0: 0.5, 1: 1.8}, 4.3, True),
        ({0: 0.5, 1: 1.8}, -2.2, False),
        ({0: 0.05, 1: 0.33}, 0.9, False),
        ({0: 0.05, 1: 0.33}, 0.85, True),
        ({0: 0.0, 1: 0.0}, 0.05, True),
        ({0: 1.0, 1: math.nan, 2: math.inf}, 3.0, True),
        ({0: 1.0, 1: math.nan, 2: -math.inf}, 3.1, False),
        ({0: math.nan}, 7.0, True),
        ({}, 7.0, True),
        ({0: 1e-6, 1: 1e-3, 2: 1.0}, 1e5, True),
        ({0: 1e-6, 1: 1e-3, 2: 1.0}, 1e30, False),
        ({0: 1e300, 1: -1e300}, 1.7e308, True),
    ],
)
def test_a_limit_far_off_does_not_press_the_curve_flat(
    points: dict[int, float], threshold: float, drawn: bool
) -> None:
    assert bool(limits(chart(series(points), rules=[limit(threshold=threshold)]))) is drawn


def test_the_limit_of_what_fires_is_drawn_however_far_it_is() -> None:
    figure = chart(series({0: 0.01, 1: 0.02}), rules=[limit()], alerts=[alert(rule="gradient_spike")])
    assert limits(figure) == [("limit gradient_spike", 5.0)]


def test_a_rule_that_fires_has_one_line_and_not_two() -> None:
    figure = chart(
        series({0: 1.0}), rules=[limit(severity=Severity.CRITICAL)], alerts=[alert(rule="gradient_spike")]
    )
    assert limits(figure) == [("limit gradient_spike", 5.0)]


def test_a_rule_that_cannot_run_here_has_no_line() -> None:
    assert limits(chart(series({0: 1.0}), rules=[limit(dormant=True)])) == []


def test_the_threshold_of_a_difference_or_a_slope_is_no_line_whether_its_rule_fires_or_not() -> None:
    apart = limit(metric="", severity=Severity.CRITICAL)
    assert limits(chart(series({0: 1.0}), rules=[apart])) == []
    assert limits(chart(series({0: 1.0}), rules=[apart], alerts=[alert(rule="gradient_spike")])) == []


@pytest.mark.parametrize("threshold", [math.nan, math.inf, -math.inf, None])
def test_a_rules_threshold_that_is_no_number_draws_no_line(threshold: float | None) -> None:
    assert limits(chart(series({0: 1.0}), rules=[limit(threshold=threshold)])) == []


def test_a_logarithmic_axis_by_wish_survives_zeros_and_negatives_with_true_labels() -> None:
    view = series({0: -1000.0, 1: 0.0, 2: 1.0, 3: 1000.0, 4: math.nan})
    figure = chart(view, wish="log")
    places = figure["data"][VALUE]["y"]
    assert places[:4] == sorted(places[:4])
    assert (places[1], places[4]) == (0.0, None)
    axis = figure["layout"]["yaxis"]
    assert dict(zip(axis["ticktext"], axis["tickvals"], strict=True))["1,000"] == pytest.approx(places[3])


def test_a_threshold_stands_where_its_value_is_on_any_axis() -> None:
    view, rules = series({0: -10.0, 1: 7.0, 2: 70.0}), [limit()]
    bent = chart(view, rules=rules, wish="log")
    assert limits(bent)[0][1] == pytest.approx(bent["data"][VALUE]["y"][1])
    assert limits(chart(series({0: 1.0}), rules=[limit(threshold=0.0)], wish="log")) == []


def test_a_linear_axis_by_wish_stays_linear_under_a_spike() -> None:
    assert scale_of(series({s: 4e6 if s == 50 else 0.02 for s in range(100)}), drawing(wish="linear")).linear


@pytest.mark.parametrize("wish", ["", "log", "linear"])
@pytest.mark.parametrize("values", [{0: 1.0, 1: 9e9, 2: 2.0}, {0: -1.0, 1: 0.0}, {0: math.nan}, {}])
def test_a_scale_goes_to_the_browser_and_back_unchanged(wish: str, values: dict[int, float]) -> None:
    scale = scale_of(series(values), drawing(wish=wish))
    assert Scale.read(scale.code) == scale


def test_a_new_value_below_zero_has_no_place_on_a_plain_logarithmic_axis() -> None:
    scale = scale_of(series({0: 1.0, 1: 2.0}), drawing(wish="log"))
    assert scale.takes(3.0)
    assert scale.takes(math.nan)
    assert not scale.takes(0.0)


def test_smoothing_hides_neither_the_values_nor_their_range_and_breaks_at_nan() -> None:
    view = series({0: 1.0, 1: 5.0, 2: math.nan, 3: 1.0}, bucket=4, low=(0.0,) * 4, high=(9.0,) * 4)
    data = chart(view, smoothing=find_smoothing("ema-0.6"))["data"]
    assert data[VALUE]["y"] == [1.0, 5.0, None, 1.0]
    assert data[HIGH]["y"] == [9.0] * 4
    assert data[SMOOTH]["y"] == [1.0, pytest.approx(2.6), None, 1.0]
    assert data[NANS]["x"] == [2]


def test_without_smoothing_there_is_no_smooth_line() -> None:
    assert chart(series({0: 1.0}))["data"][SMOOTH]["x"] == []


def test_attempts_before_stand_behind_the_shown_one_with_their_marks() -> None:
    view = series({30: 1.0, 31: 2.0})
    earlier = [("attempt 1", {view.metric: series({0: 5.0, 40: math.nan})}), ("attempt 0", {})]
    figure = chart(view, earlier=earlier)
    behind = {trace["name"]: trace["x"] for trace in figure["data"][ACTIONS + 1 :]}
    assert behind == {"attempt 1": [0, 40], "NaN (attempt 1)": [40]}
    assert figure["data"][NANS]["x"] == []
    assert "NaN" in figure["layout"]["yaxis2"]["categoryarray"]
    assert [s["x0"] for s in figure["layout"]["shapes"] if s["line"].get("dash") == "longdash"] == [30]
