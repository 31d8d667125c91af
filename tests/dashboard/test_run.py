"""What a run page decides without a browser: the view in its address, and what a beat has to send."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from typing import Any

import pytest
from dash import no_update

from rlvitals_dashboard.api import Api, Change, Visitor, visitor
from rlvitals_dashboard.live import LONGEST_TAIL, Pulse, fingerprint
from rlvitals_dashboard.panels import FOLDED
from rlvitals_dashboard.run_beat import beat_of, fresh_points
from rlvitals_dashboard.run_snapshot import PARTS, Snapshot
from rlvitals_dashboard.run_view import View
from tests.dashboard.fake import COOKIE, RUN, FakeService
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


def beat(fake: FakeService, pulse: Pulse, view: View = VIEW) -> tuple[Any, ...]:
    async def main() -> tuple[Any, ...]:
        visitor.set(Visitor(cookie=COOKIE, host="localhost"))
        async with Api.of_app(fake.app) as api:
            now = await Snapshot.take(api, view)
            fresh = await fresh_points(api, view, pulse, CHARTS)
            return beat_of(pulse, Change(version=9), now, view, fresh, CHARTS)

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
    names = (*PARTS, "extend", "values", "beat")
    return {n: v for n, v in zip(names, answer, strict=True) if v is not no_update}


def test_a_beat_without_news_changes_nothing_but_the_pulse() -> None:
    fake = lively()
    said = parts(beat(fake, shown(fake, 119)))
    assert set(said) == {"extend", "values", "beat"}
    assert said["extend"] == [no_update, no_update]
    assert said["beat"]["version"] == 9


def test_a_new_step_sends_its_points_only() -> None:
    fake = lively()
    pulse = shown(fake, 119)
    grow(fake, 120)
    fake.now_at(120)
    said = parts(beat(fake, pulse))
    assert set(said) == {"head", "extend", "values", "beat"}
    assert [data["x"] for data, _ in said["extend"]] == [[[120], [120]]] * 2
    assert said["beat"]["at"]["reward.mean"] == 120
    assert "redraw" not in said["beat"]


def test_a_late_value_of_an_older_step_is_still_sent() -> None:
    fake = lively()
    pulse = replace(shown(fake, 119), at={"reward.mean": 119, "policy.entropy": 117})
    said = parts(beat(fake, pulse))
    data, indices = said["extend"][1]
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
    assert said["extend"] == [no_update, no_update]
    assert "head" in said
