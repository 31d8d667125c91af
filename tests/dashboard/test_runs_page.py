"""The page of all runs in a real browser, before the whole service, on both databases."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from rlvitals_monitor.settings import Settings
from tests.dashboard.barriers import grave_barriers
from tests.dashboard.house import House
from tests.dashboard.live_runs import CALM, ILL, tell

pytestmark = pytest.mark.browser
EVIL = "<img src=x onerror=alert(1)> \u202egrpo"


@pytest.fixture
def house(database_url: str, tmp_path: Path) -> Iterator[House]:
    """With two runs that are well, and one that went bad and has a hostile name."""
    with House(Settings(home=tmp_path / "home", database_url=database_url)) as house:
        tell(house, "well", {**CALM, "kl.coef": math.nan}, range(50), "calm run")
        tell(house, "other", {**CALM, "kl.coef": math.inf}, range(50), "other run")
        tell(house, "ill", CALM, range(40), EVIL)
        tell(house, "ill", ILL, range(40, 50), EVIL)
        yield house


def test_a_person_finds_sorts_groups_and_handles_runs_and_the_address_holds_it_all(
    house: House, open_page: Callable[..., Any]
) -> None:
    page = open_page(house.url, "/ui/", login=house.login)
    stumbles: list[str] = []
    page.on("console", lambda said: stumbles.append(said.text) if said.type == "error" else None)
    rows = page.locator(".runs-table tr.run")
    well, ill = page.locator("[data-run=well]"), page.locator("[data-run=ill]")
    expect(rows.first).to_contain_text("<img src=x onerror=alert(1)> [U+202E]grpo")
    expect(rows.first).to_contain_text("Unhealthy")
    expect(well.locator(".of-kl_coef")).to_contain_text("NaN")
    expect(page.locator("[data-run=other] .of-kl_coef")).to_contain_text("+Inf")
    expect(ill.locator(".of-kl_coef")).to_contain_text("missing")
    expect(ill.locator(".of-gpu_hours")).to_contain_text("missing")
    assert grave_barriers(page) == []

    page.evaluate("document.querySelector('[data-run=other]').stayed = true")
    tell(house, "well", CALM, range(50, 60), "calm run")
    expect(well.locator(".of-step")).to_contain_text("59")
    assert page.evaluate("document.querySelector('[data-run=other]').stayed")

    page.get_by_label("Search").fill("RUN")
    expect(rows).to_have_count(2)
    page.wait_for_url(re.compile(r"\?q=RUN$"))
    page.get_by_role("button", name="Run", exact=True).click()
    expect(rows.first).to_contain_text("calm run")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(rows.first).to_contain_text("other run")
    page.get_by_label("Group").select_option("project")
    page.reload()
    expect(rows.first).to_contain_text("other run")
    page.get_by_role("button", name="math-grpo").click()
    expect(rows).to_have_count(0)
    page.wait_for_url(re.compile("fold=math-grpo"))
    page.get_by_role("button", name="math-grpo").click()

    well.get_by_role("checkbox").check()
    bulk = page.get_by_role("region", name="Chosen runs")
    expect(bulk).to_contain_text("1 run chosen")
    bulk.get_by_text("Labels", exact=True).click()
    bulk.get_by_label("Add").fill("night, <b>")
    bulk.get_by_role("button", name="Labels: 1 run").click()
    expect(page.locator("#verdict")).to_contain_text("1 run changed.")
    expect(well).to_contain_text("<b>")
    page.get_by_role("button", name="Clear", exact=True).click()
    expect(rows).to_have_count(3)
    ill.get_by_role("checkbox").check()
    bulk.get_by_text("Archive", exact=True).click()
    expect(bulk).to_contain_text("Nothing of them is removed.")
    bulk.get_by_role("button", name="Archive: 2 runs").click()
    expect(rows).to_have_count(1)
    expect(page.locator("#runs-summary")).to_contain_text("2 archived")
    assert grave_barriers(page) == []
    page.goto(f"{house.url}/ui/?archived=only&light=red,blue&sort=half")
    expect(rows).to_have_count(1)
    ill.get_by_role("link").click()
    page.wait_for_url(re.compile("/ui/run/ill"))
    expect(page.locator("figure.chart .main-svg").first).to_be_visible()
    assert stumbles == []
