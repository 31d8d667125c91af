"""The page that puts runs side by side, piece by piece, without a browser."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

import rlvitals_dashboard
from rlvitals.contract.comparison import (
    Axis,
    ComparedCurve,
    ComparedMetric,
    HealthyBand,
    Likeness,
    Parting,
    SettingsView,
    SettingView,
)
from rlvitals.contract.view import MetricView
from rlvitals_dashboard.comparison_figure import COLOURS, DASHES, LETTERS, compared_figure, is_log, place_words
from rlvitals_dashboard.comparison_panel import LIKENESSES
from rlvitals_dashboard.comparison_settings import settings_panel
from rlvitals_dashboard.comparison_view import RUNS_MAX, View, address, choose_metrics
from rlvitals_dashboard.theme import DARK, LIGHT, Theme
from tests.dashboard.test_theme import AA_GRAPHICS, contrast

EVIL = "<img src=x onerror=alert(1)> \u202e@everyone"


def curve(key: str = "a", **given: Any) -> ComparedCurve:
    fields: dict[str, Any] = {"at": (0.0, 1.0, 2.0), "step": (0, 1, 2), "value": (1.0, 2.0, 3.0)}
    return ComparedCurve(**{"key": key, **fields, **given})


def traces(metric: ComparedMetric, axis: Axis = Axis.STEP) -> dict[str, dict[str, Any]]:
    letters = LETTERS[: len(metric.curves)]
    return {trace["name"]: trace for trace in compared_figure(metric, letters, axis, LIGHT)["data"]}


def shown(component: Any) -> str:
    return json.dumps(component.to_plotly_json(), default=lambda part: part.to_plotly_json(), ensure_ascii=False)


def test_an_address_gives_back_the_view_that_it_was_made_of() -> None:
    query = {"runs": "a,b@t1", "by": "time", "metrics": "kl.k3", "from": "1.5", "to": "9", "healthy": "none"}
    view = View.read(query)
    assert view.asked() == query
    assert address("/ui/", view, by=Axis.STEP) == "/ui/compare?runs=a,b%40t1&metrics=kl.k3&healthy=none"
    assert View.read({"runs": "a", "add": "b", "metrics": "x", "and": "y"}).asked() == {
        "runs": "a,b",
        "metrics": "x,y",
    }


@pytest.mark.parametrize(
    "query",
    [
        {"by": "moon", "from": "x", "to": "1"},
        {"from": "nan", "to": "inf"},
        {"from": "5", "to": "5"},
        {"from": "1"},
        {"runs": " , ,", "settings": "some"},
    ],
)
def test_half_an_address_is_read_for_what_it_can_mean(query: dict[str, str]) -> None:
    assert View.read(query) == View()


def test_no_more_runs_are_shown_than_can_be_told_apart() -> None:
    assert len(View.read({"runs": ",".join(map(str, range(40)))}).runs) == RUNS_MAX == len(LETTERS) == len(DASHES)


def test_what_all_runs_have_is_looked_at_first() -> None:
    def have(*names: str) -> list[MetricView]:
        return [MetricView(metric=name, points=3) for name in names]

    known = [
        have("policy.entropy", "reward.mean", "gradient.norm"),
        have("policy.entropy", "gradient.norm", "own.x"),
    ]
    assert choose_metrics(View(), known) == ("policy.entropy", "gradient.norm", "reward.mean")
    assert choose_metrics(View(), [have("own.x")]) == ("own.x",)
    assert choose_metrics(View(metrics=("z",)), known) == ("z",)
    assert choose_metrics(View(), [[MetricView(metric="reward.mean", points=0)]]) == ()


def test_nan_both_infinities_and_missing_are_four_different_things_in_a_chart() -> None:
    values = (1.0, math.nan, math.inf, -math.inf, 2.0)
    at = (0.0, 1.0, 2.0, 3.0, 5.0)
    odd = curve(at=at, step=(0, 1, 2, 3, 5), value=values, nan=(1.0,), pos_inf=(2.0,), neg_inf=(3.0,))
    drawn = traces(ComparedMetric(metric="m", curves=(odd,)))
    assert drawn["A"]["y"] == [1.0, None, None, None, 2.0]
    assert (drawn["A NaN"]["x"], drawn["A +Inf"]["x"], drawn["A −Inf"]["x"]) == ([1.0], [2.0], [3.0])
    assert 4.0 not in drawn["A"]["x"]
    json.dumps(drawn, allow_nan=False)


def test_a_bucket_keeps_its_extremes_and_time_is_drawn_in_hours() -> None:
    wide = curve(bucket=64, at=(0.0, 3600.0, 7200.0), low=(0.0, None, 1.0), high=(9.0, None, 3.0))
    drawn = traces(ComparedMetric(metric="m", curves=(wide,)), Axis.TIME)
    assert drawn["A greatest"]["y"] == [9.0, None, 3.0]
    assert drawn["A"]["x"] == [0.0, 1.0, 2.0]


def test_the_band_and_the_place_of_parting_are_drawn() -> None:
    band = HealthyBand(at=(0.0, 1.0), low=(0.1, 0.2), middle=(0.5, 0.6), high=(1.0, 1.1), runs=3)
    apart = Parting(key="b", likeness=Likeness.APART, reason="", at=1.0, step=1, reference_step=1)
    metric = ComparedMetric(metric="m", curves=(curve("a"), curve("b")), partings=(apart,), band=band)
    figure = compared_figure(metric, "AB", Axis.STEP, LIGHT)
    assert [t["name"] for t in figure["data"][:3]] == ["healthy least", "healthy greatest", "healthy middle"]
    (line,) = figure["layout"]["shapes"]
    assert (line["x0"], line["label"]["text"]) == (1.0, "B diverges")


def test_a_scale_is_logarithmic_only_where_nothing_is_lost_by_it() -> None:
    wide = curve(value=(1e-6, 1.0, 1e6))
    assert is_log(compared_figure(ComparedMetric(metric="m", curves=(wide,)), "A", Axis.STEP, LIGHT))
    for lost in (0.0, -1.0):
        other = curve("b", value=(lost, 1.0, 1e6))
        metric = ComparedMetric(metric="m", curves=(wide, other))
        assert not is_log(compared_figure(metric, "AB", Axis.STEP, LIGHT))


def test_a_place_is_said_in_the_words_of_its_axis() -> None:
    said = [place_words(Axis.STEP, 1234.0), place_words(Axis.TOKENS, 5e6), place_words(Axis.TIME, 5400.0)]
    assert said == ["step 1,234", "5,000,000 tokens", "1 h 30 min"]


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_the_colours_of_runs_are_seen_and_the_style_sheet_has_the_same(theme: Theme) -> None:
    sheet = (Path(rlvitals_dashboard.__file__).parent / "assets" / "compare.css").read_text()
    (line,) = re.findall(rf'\[data-theme\^="{theme.base}"\] {{(.*?)}}', sheet)
    assert tuple(re.findall(r"#[0-9a-f]{6}", line)) == COLOURS[theme.base]
    for colour in COLOURS[theme.base]:
        assert contrast(colour, theme.surface) >= AA_GRAPHICS + 1.5  # the letters are text


def test_settings_that_are_not_set_not_told_and_no_number_are_told_apart() -> None:
    rows = (
        SettingView(name=EVIL, values={"a": None, "b": math.nan}, alike=False),
        SettingView(name="x", values={"a": EVIL}, alike=False),
        SettingView(name="same", values={"a": 1, "b": 1}, alike=True),
    )
    found = SettingsView(runs={"a": "", "b": ""}, settings=rows, different=2)
    text = shown(settings_panel(found, View(runs=("a", "b")), {"a": "A", "b": "B"}, lambda **_: "#"))
    for words in ("not set", "not told", "NaN", "2 differ of 3", "[U+202E]", "Show all 3"):
        assert words in text
    assert "\u202e" not in text
    assert "same" not in text
    told = shown(settings_panel(found, View(settings="all"), {"a": "A", "b": "B"}, lambda **_: "#"))
    assert "same" in told


def test_every_likeness_has_a_word_and_none_is_an_alarm() -> None:
    assert set(LIKENESSES) == set(Likeness)
    assert all(look.tone != "critical" for look in LIKENESSES.values())
