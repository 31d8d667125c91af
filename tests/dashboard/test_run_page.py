"""A run's page as a person uses it, before the real service: keys, cursor, scales, search, attempts, files."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from rlvitals.contract.report import Histogram, ReportBatch, RunInfo, StepReport, Text
from rlvitals_monitor.collector import collect
from rlvitals_monitor.document import Document
from rlvitals_monitor.settings import Settings
from tests.dashboard.barriers import grave_barriers
from tests.dashboard.house import House, now_utc
from tests.dashboard.live_runs import OWNER, judge

pytestmark = pytest.mark.browser
RUN = "r:1"
HOSTILE = "own/<img src=x onerror=alert(1)>\u202e\"'"
PLOT = """(metric) => [...document.querySelectorAll('figure.chart')].find(
    (f) => f.querySelector('.name').textContent === metric)?.querySelector('.js-plotly-plot')"""


def tell(house: House, steps: range, attempt: str = "a1", **changes: float) -> None:
    now = now_utc()
    rows, shown = [], []
    for at in steps:
        own = {HOSTILE: 1.0, "own.swing": (-1.0) ** at * 10.0 ** (at % 6), "own.void": 0.0}
        values = {"reward.mean": at / 10, "kl.k3": 0.1, "gradient.norm": 1.0, **own, **changes}
        rows.append(StepReport(seq=10 * at + 1, step=at, time_s=now.timestamp() - steps.stop + at, values=values))
        counts = (at % 5, 3, 1)
        edges = (0.0, 64.0, 128.0, 256.0)
        shown.append(Histogram(seq=10 * at + 2, step=at, metric="length.mean", edges=edges, counts=counts))
    words = Text(
        seq=10 * steps.start + 3,
        step=steps.start,
        sample=0,
        completion="<script>alert(2)</script>",
        why="reservoir",
    )
    info = RunInfo(id=RUN, project="p", name="<b>run</b>", framework="trl", config={"length_cap": 200})
    batch = ReportBatch(
        run=info, attempt=attempt, writer="w", steps=tuple(rows), histograms=tuple(shown), texts=(words,)
    )
    collect(house.store, Document(batch=batch), OWNER, now)
    judge(house)
    house.app.state.live.publish(RUN)


def drawn(page: Any, metric: str, trace: str) -> Any:
    return page.evaluate(
        f"([metric, trace]) => {{ const gd = ({PLOT})(metric);"
        " return gd && gd.data ? gd.data.find((t) => t.name === trace) : null; }",
        [metric, trace],
    )


def card(page: Any, metric: str) -> Any:
    return page.locator("figure.chart").filter(
        has=page.locator(".name", has_text=re.compile(f"^{re.escape(metric)}$"))
    )


def test_an_alert_that_fires_while_the_charts_are_drawn_is_shown(
    database_url: str, tmp_path: Path, open_page: Callable[..., Any]
) -> None:
    """The charts come after the rest of the page, and know of what is not in it yet."""
    with House(Settings(home=tmp_path / "home", database_url=database_url)) as house:
        tell(house, range(30))
        page = open_page(house.url, "/ui/", login=house.login)
        fired: list[str] = []

        def fire_first(route: Any) -> None:
            if not fired and "families.children" in (route.request.post_data or ""):
                fired.append(house.fire(RUN, "a1", rule="nonfinite").alert.id)
                house.app.state.live.publish(RUN)
            route.continue_()

        page.route(re.compile("/_dash-update-component"), fire_first)
        page.goto(f"{house.url}/ui/run/r%3A1")
        expect(page.locator("#run-alerts")).to_contain_text("The KL pull is stronger than the policy pull.")
        assert fired == ["a1"]


def test_a_person_walks_through_a_run(
    database_url: str, tmp_path: Path, open_page: Callable[..., Any], chromium: Any
) -> None:
    with House(Settings(home=tmp_path / "home", database_url=database_url)) as house:
        tell(house, range(30), "a0")
        tell(house, range(20, 60), **{"gradient.norm": math.nan})
        page = open_page(house.url, "/ui/run/r%3A1", login=house.login)
        reward = card(page, "reward.mean")
        expect(reward.locator(".main-svg").first).to_be_visible()
        _what_is_wrong(page)
        _attempts(page)
        _the_step(page, reward)
        _scales(page)
        _search(page)
        _hold_and_follow(house, page)
        _a_picture(page)
        expect(page.locator("figure.heat .main-svg").first).to_be_visible()
        page.get_by_role("link", name="Texts", exact=True).click()
        expect(page.locator("figure.heat")).to_have_count(0)
        page.go_back()
        expect(page.locator("figure.heat .main-svg").first).to_be_visible()
        _one_axis(page)
        assert grave_barriers(page) == []


def _what_is_wrong(page: Any) -> None:
    health = page.locator("section.health")
    expect(health).to_contain_text("What to do")
    health.get_by_role("button", name="I look after it").click()
    expect(health).not_to_contain_text("nobody yet")
    expect(card(page, "gradient.norm").locator(".kind.nan")).to_contain_text("NaN × 40")


def _one_axis(page: Any) -> None:
    """The steps of every chart lie alike, also of one with marks of what is no number."""
    shown = [
        page.evaluate(f"(metric) => ({PLOT})(metric)._fullLayout.xaxis.range", metric)
        for metric in ("reward.mean", "gradient.norm")
    ]
    assert shown[0] == shown[1]


def _attempts(page: Any) -> None:
    assert drawn(page, "reward.mean", "attempt 1")["x"] == list(range(30))
    assert drawn(page, "reward.mean", "value")["x"] == list(range(20, 60))


def _the_step(page: Any, reward: Any) -> None:
    """By keys, by the scrubber and by the pointer; every chart says its value there."""
    page.locator("h1").click()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#scrub output")).to_have_text("Step 58")
    expect(reward.locator(".at")).to_have_text("5.8")
    expect(card(page, "gradient.norm").locator(".at")).to_have_text("NaN")
    page.locator("#scrub input").fill("20")
    expect(reward.locator(".at")).to_have_text("2")
    expect(page.locator("#step-texts")).to_contain_text("<script>alert(2)</script>")
    expect(page).to_have_url(re.compile("step=20"))
    assert page.locator(".cursor.chosen:not([hidden])").count() >= 4
    box = reward.locator(".nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(card(page, "kl.k3").locator(".cursor.hovered")).to_be_visible()
    page.mouse.move(2, 300)
    page.locator("h1").click()
    page.keyboard.press("f")
    expect(page.locator("#scrub output")).to_have_text("Newest step")
    expect(page.locator("#step-texts")).to_be_empty()


def _scales(page: Any) -> None:
    page.locator(".choice.scale summary").click()
    page.get_by_role("button", name="log", exact=True).click()
    expect(card(page, "own.swing").locator(".scale")).to_have_text("log scale")
    ticks = card(page, "own.swing").locator(".ytick text").all_text_contents()
    assert "0" in ticks
    assert any(tick.startswith("−") for tick in ticks)
    page.keyboard.press("g")
    expect(page).not_to_have_url(re.compile("scale="))
    page.keyboard.press("s")
    expect(page).to_have_url(re.compile("smooth=ema-0.6"))
    page.wait_for_function(f"() => ({PLOT})('reward.mean')?.data?.find((t) => t.name === 'smooth').x.length > 0")
    assert len(drawn(page, "reward.mean", "value")["x"]) == 40
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()


def _search(page: Any) -> None:
    page.locator("h1").click()
    page.keyboard.press("/")
    page.keyboard.type("IMG")
    expect(page.locator("figure.chart:not(.heat)")).to_have_count(1)
    expect(page.locator("figure.chart .name").first).to_contain_text("own/<img src=x onerror=alert(1)>")
    page.locator("#find").fill("no such thing")
    expect(page.locator("#families")).to_contain_text("No metric of this run has such a name.")
    page.locator("#find").fill("")
    expect(card(page, "reward.mean").locator(".main-svg").first).to_be_visible()


def _hold_and_follow(house: House, page: Any) -> None:
    page.locator("h1").click()
    page.keyboard.press(" ")
    expect(page.locator("main.held")).to_have_count(1)
    tell(house, range(60, 62))
    expect(page.locator(".fact .big")).to_have_text("61")
    assert drawn(page, "reward.mean", "value")["x"][-1] == 59
    page.keyboard.press("f")
    page.wait_for_function(f"() => ({PLOT})('reward.mean')?.data?.find((t) => t.name === 'value').x.at(-1) === 61")


def _a_picture(page: Any) -> None:
    save = card(page, "kl.k3").locator("details.save")
    save.locator("summary").click()
    expect(save.get_by_role("link", name="CSV")).to_have_attribute(
        "href", "/api/v1/runs/r%3A1/export?format=csv&metric=kl.k3"
    )
    with page.expect_download() as waiting:
        save.get_by_role("button", name="PNG").click()
    assert Path(waiting.value.path()).read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
