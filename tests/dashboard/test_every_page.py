"""Every page in a real browser, with hostile names on it: nobody is kept out, nothing leaves the machine, no
script stumbles, and a phone needs no sideways scrolling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from rlvitals.contract.report import StepReport, Text
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store.ingest import store_batch
from tests.dashboard.barriers import grave_barriers
from tests.dashboard.house import House, now_utc
from tests.dashboard.page_table import addresses, missing
from tests.dashboard.stage import CAST, Staged, furnish, perform
from tests.monitor.batches import batch

OpenPage = Callable[..., Any]
EVIL = "<img src=x onerror=alert(1)> \u202e@everyone {{7*7}}"
HOSTILE = replace(
    CAST[0],
    name=EVIL,
    project=EVIL[:60],
    framework="<b>trl</b>",
    model=EVIL,
    tags=("<script>alert(2)</script>", EVIL),
)
MANY = 10_000
LONG = 1_000_000


@pytest.fixture
def staged(sqlite_url: str, tmp_path: Path) -> Iterator[tuple[House, Staged]]:
    house = House(Settings(home=tmp_path / "home", database_url=sqlite_url))
    staged = perform(house.store, now_utc(), (replace(HOSTILE, steps=130), replace(CAST[1], steps=60)))
    with house:
        furnish(house, staged)
        yield house, staged


def test_each_page_has_a_line_in_the_table() -> None:
    assert missing(addresses("r1", "c1", "a/warning", "r2")) == set()


@pytest.mark.browser
def test_each_page_can_be_read_by_everybody_and_is_whole(
    staged: tuple[House, Staged], open_page: OpenPage
) -> None:
    house, there = staged
    page = open_page(house.url, "/ui/", login=house.login)
    stumbles: list[str] = []
    page.on("console", lambda said: stumbles.append(f"{page.url}: {said.text}") if said.type == "error" else None)
    found: dict[str, Any] = {}
    for place, path in addresses(there.run, there.command, there.rule, there.other).items():
        page.set_viewport_size({"width": 1440, "height": 900})
        page.goto(f"{house.url}{path}")
        expect(page.locator("main h1, main h2").first).to_be_visible()
        expect(page.locator("#live-word")).to_have_text("Live")
        faults = [*grave_barriers(page), *_scripts(page)]
        page.set_viewport_size({"width": 390, "height": 844})
        page.locator("#theme-toggle").click()
        faults += [*grave_barriers(page, only=("color-contrast", "target-size")), *_wide(page)]
        if faults:
            found[place] = faults
    assert found == {}
    assert stumbles == []


@pytest.mark.browser
def test_on_a_phone_every_page_is_two_presses_away(staged: tuple[House, Staged], open_page: OpenPage) -> None:
    house, _ = staged
    page = open_page(house.url, "/ui/rules", login=house.login, width=390)
    menu = page.get_by_role("button", name="Menu")
    expect(page.get_by_role("link", name="Settings")).to_be_hidden()
    expect(menu.locator("#menu-waiting")).to_have_text("1")
    menu.click()
    expect(menu).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Settings")).to_be_hidden()
    expect(menu).to_be_focused()
    menu.click()
    page.get_by_role("link", name="Settings").click()
    expect(page.locator("h1")).to_have_text("Settings")
    expect(menu).to_have_attribute("aria-expanded", "false")


@pytest.mark.browser
def test_ten_thousand_metrics_and_a_line_of_a_megabyte_leave_a_page_usable(
    staged: tuple[House, Staged], open_page: OpenPage
) -> None:
    house, there = staged
    values = {f"my.metric_{n:05}<b>": float(n) for n in range(MANY)}
    steps = [StepReport(seq=10_000 + n, step=200 + n, time_s=1.0, values=values) for n in range(1)]
    text = Text(seq=20_000, step=200, sample=0, prompt=EVIL, completion=EVIL + "x" * LONG, why="worst_length")
    with house.store.begin() as conn:
        told = batch(*steps, run=there.run, attempt="a1", writer="rank1", texts=(text,), info=_info(there.run))
        store_batch(conn, told, now_utc())
    page = open_page(house.url, f"/ui/run/{there.run}", login=house.login)
    expect(page.locator("h1")).to_contain_text("<img src=x onerror=alert(1)>")
    expect(page.locator("figure.chart .main-svg").first).to_be_visible()
    assert page.evaluate("document.getElementsByTagName('*').length") < 12_000
    assert _scripts(page) == []
    page.goto(f"{house.url}/ui/run/{there.run}/texts?step=200")
    expect(page.locator("main")).to_contain_text("more character")
    assert page.evaluate("document.getElementsByTagName('*').length") < 12_000
    assert _scripts(page) == []


def _info(run: str) -> Any:
    return batch(run=run).run


def _scripts(page: Any) -> list[str]:
    """What of the hostile names became markup."""
    count = page.locator("main img, main script, main iframe").count()
    return [f"{count} elements that nobody of us made"] if count else []


def _wide(page: Any) -> list[str]:
    width = page.evaluate("document.documentElement.scrollWidth")
    return [f"{width} px wide on a phone"] if width > 390 else []
