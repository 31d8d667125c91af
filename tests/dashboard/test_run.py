"""What a run page decides without a browser: the view in its address, and what a beat has to send."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from typing import Any

import pytest
from dash import no_update

from rlvitals.contract.codec import loads
from rlvitals.contract.view import AttemptView
from rlvitals_dashboard.api import Api, Change, Visitor, visitor
from rlvitals_dashboard.figures import SMOOTH, VALUE
from rlvitals_dashboard.live import LONGEST_TAIL, Pulse, fingerprint
from rlvitals_dashboard.panels import FOLDED
from rlvitals_dashboard.run_beat import beat_of, fresh_points
from rlvitals_dashboard.run_snapshot import MANY_METRICS, PARTS, Snapshot
from rlvitals_dashboard.run_view import Glance, View
from tests.dashboard.fake import COOKIE, RUN, START, FakeService
from tests.dashboard.synthetic import grow, lively

VIEW = View(run=RUN)
CHARTS = ["reward.mean", "policy.entropy"]


@pytest.mark.parametrize(
    ("told", "range_"),
    [
        ({"from": "3", "to": "9"}, (3, 9)),
        ({"from": 3.0, "to": 9.7}, (3, 9)),
        ({"from": "3"}, (None, None)),
        ({"from": "x", "to": "9"}, (None, None)),
        ({"from": "nan", "to": "inf"}, (None, None)),
        ({"from": True, "to": 9}, (None, None)),
        ({}, (None, None)),
    ],
)
def test_only_two_whole_numbers_are_a_range(told: dict[str, Any], range_: tuple[int | None, int | None]) -> None:
    view = View.read(told)
    assert (view.first, view.last) == range_


def test_what_is_folded_comes_from_the_address_and_has_a_default() -> None:
    assert View.read({}).closed == FOLDED
    assert View.read({"closed": ""}).closed == frozenset()
    assert View.read({"closed": "kl,text"}).closed == {"kl", "text"}


def test_a_view_goes_to_the_browser_and_back_unchanged() -> None:
    view = View(run="r", attempt="a", first=1, last=2, more=frozenset({"kl"}), closed=frozenset())
    assert View.read(view.data()) == view


def test_a_pulse_goes_to_the_browser_and_back_unchanged() -> None:
    pulse = Pulse(version=7, last_step=3, at={"kl.k3": 3}, enveloped=("kl.k3",), prints={"head": 1})
    assert Pulse.read(pulse.data(beat=123)) == pulse


@pytest.mark.parametrize("data", [None, {}, [], "x", 3])
def test_what_is_no_pulse_is_none(data: object) -> None:
    assert Pulse.read(data) is None


def test_a_fingerprint_tells_nan_from_infinity_and_from_none() -> None:
    assert len({fingerprint(v) for v in (math.nan, math.inf, -math.inf, None, 0.0)}) == 5


def beat(fake: FakeService, pulse: Pulse, view: View = VIEW, glance: Glance | None = None) -> tuple[Any, ...]:
    async def main() -> tuple[Any, ...]:
        visitor.set(Visitor(cookie=COOKIE, host="localhost"))
        async with Api.of_app(fake.app) as api:
            now, change = await Snapshot.take(api, view), Change(version=9)
            fresh = await fresh_points(api, view, pulse, change, CHARTS, glance)
            return beat_of(pulse, change, now, view, fresh, CHARTS, glance)

    return asyncio.run(main())


def shown(fake: FakeService, last: int) -> Pulse:
    """The pulse of a page that has drawn everything up to ``last``."""
    taken = asyncio.run(_snapshot(fake))
    return Pulse(version=8, drawn=last, at=dict.fromkeys(CHARTS, last), prints=taken.prints(VIEW))


async def _snapshot(fake: FakeService) -> Snapshot:
    visitor.set(Visitor(cookie=COOKIE, host="localhost"))
    async with Api.of_app(fake.app) as api:
        return await Snapshot.take(api, VIEW)


def parts(answer: tuple[Any, ...]) -> dict[str, Any]:
    names = (*PARTS, "prints", "extend", "values", "beat")
    return {n: v for n, v in zip(names, answer, strict=True) if v is not no_update}


def test_a_beat_without_news_changes_nothing_but_the_pulse() -> None:
    fake = lively()
    said = parts(beat(fake, shown(fake, 119)))
    assert set(said) == {"prints", "values", "beat"}
    assert said["beat"]["version"] == 9


def test_a_new_step_sends_its_points_only() -> None:
    fake = lively()
    pulse = shown(fake, 119)
    grow(fake, 120)
    fake.now_at(120)
    said = parts(beat(fake, pulse))
    assert set(said) == {"head", "prints", "extend", "values", "beat"}
    assert set(loads(said["prints"])) == set(PARTS)
    assert loads(said["prints"])["head"] != pulse.prints["head"]
    assert [data["x"] for data, _ in said["extend"].values()] == [[[120], [120]]] * 2
    assert said["beat"]["at"]["reward.mean"] == 120
    assert "redraw" not in said["beat"]


def test_a_late_value_of_an_older_step_is_still_sent() -> None:
    fake = lively()
    pulse = replace(shown(fake, 119), at={"reward.mean": 119, "policy.entropy": 117})
    said = parts(beat(fake, pulse))
    data, indices = said["extend"]["policy.entropy"]
    assert [118, 119] in data["x"]
    assert len(indices) == 2


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_new_value_that_is_not_finite_asks_for_a_new_drawing(value: float) -> None:
    fake = lively()
    pulse = shown(fake, 119)
    grow(fake, 120)
    fake.put("reward.mean", {120: value})
    assert parts(beat(fake, pulse))["beat"]["redraw"] is True


def test_a_new_metric_asks_for_a_new_drawing() -> None:
    fake = lively()
    pulse = shown(fake, 119)
    fake.put("ratio.max", {119: 1.2})
    assert parts(beat(fake, pulse))["beat"]["redraw"] is True


def test_an_alert_that_resolves_redraws_its_band_and_its_card() -> None:
    from rlvitals.contract.alert import AlertState

    fake = lively()
    pulse = shown(fake, 119)
    fake.alerts["al-2"] = replace(fake.alerts["al-2"], state=AlertState.RESOLVED, resolved_step=119)
    said = parts(beat(fake, pulse))
    assert said["beat"]["redraw"] is True
    assert "alerts" in said


def test_a_long_tail_is_drawn_anew_from_the_servers_buckets() -> None:
    fake = lively()
    pulse = shown(fake, 119)
    for step in range(120, 122 + LONGEST_TAIL):
        grow(fake, step)
    fake.now_at(121 + LONGEST_TAIL)
    assert parts(beat(fake, pulse))["beat"]["redraw"] is True


def test_a_zoomed_page_keeps_its_charts_and_its_alerts_live() -> None:
    fake = lively()
    pulse = replace(shown(fake, 119), zoomed=True)
    grow(fake, 120)
    fake.put("reward.mean", {120: math.nan})
    fake.now_at(120)
    said = parts(beat(fake, pulse))
    assert "redraw" not in said["beat"]
    assert "extend" not in said
    assert "head" in said


def test_charts_that_a_person_holds_stand_still_while_alerts_stay_live() -> None:
    fake = lively()
    pulse = shown(fake, 119)
    grow(fake, 120)
    fake.put("reward.mean", {120: math.nan})
    fake.now_at(120)
    said = parts(beat(fake, pulse, glance=Glance(paused=True)))
    assert "redraw" not in said["beat"]
    assert "extend" not in said
    assert said["beat"]["at"]["reward.mean"] == 119
    assert "head" in said


def test_a_value_without_a_place_on_a_logarithmic_axis_asks_for_a_new_drawing() -> None:
    fake = lively()
    pulse = replace(shown(fake, 119), scales={"reward.mean": 0.0})
    grow(fake, 120)
    fake.put("reward.mean", {120: 0.5})
    fake.now_at(120)
    assert "redraw" not in parts(beat(fake, pulse))["beat"]
    fake.put("reward.mean", {120: -0.5})
    assert parts(beat(fake, pulse))["beat"]["redraw"] is True


def test_new_points_go_to_their_places_on_an_axis_around_zero() -> None:
    fake = lively()
    pulse = replace(shown(fake, 119), scales={"reward.mean": 0.1})
    grow(fake, 120)
    fake.put("reward.mean", {120: -0.9})
    fake.now_at(120)
    data, indices = parts(beat(fake, pulse))["extend"]["reward.mean"]
    assert data["y"][indices.index(VALUE)] == [pytest.approx(-1.0)]


def test_a_smooth_line_goes_on_where_it_was() -> None:
    fake, view = lively(), replace(VIEW, smooth="ema-0.6")
    pulse = replace(
        shown(fake, 119), smooth={"reward.mean": (1.0,)}, prints=asyncio.run(_snapshot(fake)).prints(view)
    )
    grow(fake, 120)
    fake.put("reward.mean", {120: 0.0})
    fake.now_at(120)
    said = parts(beat(fake, pulse, view))
    data, indices = said["extend"]["reward.mean"]
    assert data["y"][indices.index(SMOOTH)] == [pytest.approx(0.6)]
    assert said["beat"]["smooth"]["reward.mean"] == (pytest.approx(0.6),)


@pytest.mark.parametrize(
    ("told", "glance"),
    [
        ({"step": "7", "paused": "1"}, Glance(step=7, paused=True)),
        ({"step": "x", "paused": "yes"}, Glance()),
        ({"step": "nan"}, Glance()),
        ({"step": "1e300"}, Glance()),
        (None, Glance()),
    ],
)
def test_a_glance_is_read_from_an_address_that_may_be_half_written(told: Any, glance: Glance) -> None:
    assert Glance.read(told) == glance
    assert Glance.read(glance.data()) == glance


@pytest.mark.parametrize("told", [{"scale": "bent", "smooth": "ema-7"}, {"scale": 3, "smooth": ["a"]}, {}])
def test_a_scale_or_a_smoothing_that_is_not_there_is_left_out(told: dict[str, Any]) -> None:
    view = View.read(told)
    assert (view.scale, view.smooth) == ("", "")


def test_attempts_before_the_newest_are_drawn_behind_it_and_none_behind_a_chosen_one() -> None:
    fake = lively()
    attempts = [AttemptView(id=f"a{n}", ordinal=n, started_at=START, first_step=n, last_step=n) for n in range(6)]
    fake.runs[RUN] = replace(fake.runs[RUN], attempts=tuple(attempts))
    now = asyncio.run(_snapshot(fake))
    assert [a.id for a in now.earlier(VIEW)] == ["a4", "a3", "a2"]
    assert now.earlier(replace(VIEW, attempt="a5")) == []


@pytest.mark.parametrize(("metrics", "listed"), [(10, 2), (2 * MANY_METRICS, 1)])
def test_a_long_list_of_metrics_is_not_asked_for_in_each_beat(
    metrics: int, listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake, asked = FakeService(), list[bool]()
    for number in range(metrics):
        fake.put(f"own.{number:04}", {1: math.nan if number % 2 else math.inf})
    overview = Api.overview

    async def counted(api: Api, run: str, attempt: str = "", *, metrics: bool = True) -> Any:
        asked.append(metrics)
        return await overview(api, run, attempt, metrics=metrics)

    monkeypatch.setattr(Api, "overview", counted)

    async def main() -> tuple[Snapshot, Snapshot]:
        visitor.set(Visitor(cookie=COOKIE, host="localhost"))
        async with Api.of_app(fake.app) as api:
            return await Snapshot.take(api, VIEW), await Snapshot.take(api, VIEW)

    one, other = asyncio.run(main())
    assert sum(asked) == listed
    assert one.prints(VIEW)["charts"] == other.prints(VIEW)["charts"]
    assert [m.metric for m in one.drawn(VIEW)] == [m.metric for m in other.drawn(VIEW)] != []
