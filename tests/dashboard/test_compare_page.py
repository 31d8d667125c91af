"""Runs side by side in a real browser, before the whole service, on both databases."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from rlvitals.contract import codec
from rlvitals.contract.report import ReportBatch, RunInfo, StepReport
from rlvitals.contract.wire import to_wire
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store.tables import attempts, evaluations
from tests.dashboard.barriers import grave_barriers
from tests.dashboard.house import House, now_utc

pytestmark = pytest.mark.browser
OpenPage = Callable[..., Any]
EVIL = "<img src=x onerror=alert(1)> \u202e@everyone"


def report(
    house: House, run: str, values: Callable[[int], Mapping[str, float]], steps: range, **info: Any
) -> None:
    began = now_utc().timestamp() - 600
    told = tuple(StepReport(seq=s + 1, step=s, time_s=began + s, values=values(s)) for s in steps)
    about = RunInfo(id=run, **{"project": "math", **info})
    house.post("/reports", codec.encode(to_wire(ReportBatch(run=about, attempt="a1", writer="main", steps=told))))


def course(seed: int, shift: float = 0.0, since: int = 10**9) -> Callable[[int], Mapping[str, float]]:
    def at(step: int) -> Mapping[str, float]:
        noise = random.Random(1000 * seed + step).gauss(0, 0.02)
        reward = 0.2 + step / 400 + noise + (shift if step >= since else 0.0)
        entropy = math.nan if seed == 2 and step == 90 else 1.5 - step / 300 + noise
        return {"reward.mean": reward, "policy.entropy": entropy, "progress.tokens": 512.0 * (step + 1)}

    return at


@pytest.fixture
def house(database_url: str, tmp_path: Path) -> Iterator[House]:
    """Two runs, of which the second loses its reward at step 60, and three healthy ones before them."""
    with House(Settings(home=tmp_path / "home", database_url=database_url)) as house:
        for n in range(3):
            report(house, f"well-{n}", course(10 + n), range(120))
        with house.store.begin() as conn:
            for number in conn.scalars(attempts.select().with_only_columns(attempts.c.number)).all():
                conn.execute(evaluations.insert().values(attempt=number, step=119, memory={}))
        report(house, "base", course(1), range(120), name="baseline", config={"lr": 1e-6, "kl": {"coef": 0.1}})
        config = {"lr": 1e-6, "kl": {"coef": 0.4}, "note": EVIL}
        report(house, "test", course(2, -0.3, 60), range(120), name=EVIL, config=config)
        yield house


@pytest.fixture
def walk(house: House, open_page: OpenPage) -> Callable[..., Any]:
    return lambda path, **given: open_page(house.url, path, login=house.login, **given)


def charts(page: Any, count: int) -> Any:
    drawn = page.locator(".comparison figure.chart")
    expect(drawn).to_have_count(count)
    expect(drawn.first.locator(".main-svg").first).to_be_visible()
    return drawn


def traces(page: Any, metric: str) -> dict[str, list[Any]]:
    """name → x of one chart, as the browser has it."""
    return dict(
        page.evaluate(
            """(metric) => {
                const names = [...document.querySelectorAll('.comparison .name')];
                const card = names.find((n) => n.textContent === metric).closest('figure');
                const plot = card.querySelector('.js-plotly-plot');
                return Object.fromEntries(plot.data.map((t) => [t.name, [...t.x]]));
            }""",
            metric,
        )
    )


def test_two_runs_are_put_side_by_side_from_one_of_them(walk: Callable[..., Any]) -> None:
    page = walk("/ui/run/base")
    page.get_by_role("navigation", name="This run").get_by_role("link", name="Compare").click()
    expect(page.locator("main")).to_contain_text("Add a second run")
    page.get_by_label("Add a run").fill("test")
    page.locator("form", has=page.get_by_label("Add a run")).get_by_role("button", name="Add").click()
    table = page.locator(".partings")
    expect(table).to_contain_text(re.compile(r"B diverges first at step (5|6)\d in reward\.mean"))
    expect(table.locator("tbody tr").first).to_contain_text("reward.mean")
    expect(table.locator("tbody tr").first).to_contain_text("first unequal at step 0")
    expect(table.locator("tbody tr").nth(1)).to_contain_text("NaN where the first run has a number")
    charts(page, 2)
    expect(page.locator(".band-words")).to_contain_text("Healthy band of 3 runs")
    assert len(traces(page, "reward.mean")["healthy middle"]) > 30
    assert traces(page, "policy.entropy")["B NaN"] == [90]
    settings = page.locator(".panel", has=page.get_by_role("heading", name="Settings"))
    expect(settings).to_contain_text("2 differ of 3")
    expect(settings.locator("tbody tr").first).to_contain_text("kl.coef")
    expect(settings).to_contain_text("<img src=x onerror=alert(1)> [U+202E]@everyone")
    page.get_by_role("link", name="Show all 3").click()
    expect(settings.locator("tbody tr")).to_have_count(3)


def test_the_address_holds_the_whole_view(walk: Callable[..., Any]) -> None:
    page = walk("/ui/compare?runs=base,test")
    charts(page, 2)
    page.get_by_role("link", name="Tokens").click()
    expect(page.locator(".axis-words")).to_contain_text("The axis counts tokens by the trainer's count.")
    expect(page.locator(".partings")).to_contain_text("tokens (its step")
    page.get_by_role("link", name="Leave out policy.entropy").click()
    charts(page, 1)
    page.get_by_role("link", name="Leave it out").click()
    expect(page.locator(".band-words")).to_contain_text("No healthy band")
    page.get_by_role("link", name="Make it the baseline").click()
    expect(page.locator(".partings")).to_contain_text("B diverges first at")
    page.wait_for_url(re.compile(r"runs=test,base&by=tokens&metrics=reward\.mean&healthy=none"))
    page.reload()
    charts(page, 1)
    assert max(traces(page, "reward.mean")["A"]) == 512 * 120
    page.go_back()
    charts(page, 1)


def test_a_zoom_of_one_chart_is_one_of_all_and_stands_in_the_address(walk: Callable[..., Any]) -> None:
    page = walk("/ui/compare?runs=base,test")
    chart = charts(page, 2).first
    box = chart.locator(".nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 40, steps=5)
    page.mouse.up()
    back = page.get_by_role("button", name="Back to the whole runs")
    expect(back).to_be_visible()
    asked = page.evaluate("Object.fromEntries(new URLSearchParams(location.search))")
    assert 40 < float(asked["from"]) < float(asked["to"]) < 100
    assert min(traces(page, "policy.entropy")["A"]) >= float(asked["from"])
    page.reload()
    expect(back).to_be_visible()
    back.click()
    expect(back).to_have_count(0)
    assert page.evaluate("location.search") == "?runs=base,test"


def test_a_run_that_goes_on_moves_its_curve_and_one_that_is_gone_says_so(
    walk: Callable[..., Any], house: House
) -> None:
    page = walk("/ui/compare?runs=base,gone,test&metrics=reward.mean,absent")
    expect(page.locator(".compared li").nth(1)).to_contain_text("is not there")
    charts(page, 2)
    report(house, "base", course(1), range(120, 140), name="baseline")
    expect(page.locator(".compared li").first).to_contain_text("step 139")
    page.wait_for_function(
        "() => document.querySelector('.comparison .js-plotly-plot').data.some((t) => t.x.at(-1) === 139)"
    )
    expect(page.locator(".comparison figure").nth(1)).to_contain_text("missing: no value here")
    page.get_by_role("link", name="Remove gone").click()
    expect(page.locator(".compared li")).to_have_count(2)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("width", "scheme"), [(1440, "dark"), (390, "light")])
def test_the_page_is_within_reach_of_all_and_of_a_phone(walk: Callable[..., Any], width: int, scheme: str) -> None:
    page = walk("/ui/compare", width=width, scheme=scheme)
    for query in ("", "?runs=base", "?runs=base,test,well-0&settings=all", "?runs=gone&from=x&to=1&by=moon"):
        page.goto(page.url.partition("?")[0] + query)
        expect(page.locator("main h1")).to_be_visible()
        if "base" in query:
            charts(page, 2)
        told = grave_barriers(page)
        assert told == [], f"{query}: {told}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, query
