"""The dashboard in Chinese, in a real browser, before the whole service, on both databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from rlvitals_monitor.settings import Settings
from tests.dashboard.house import House

pytestmark = pytest.mark.browser
OpenPage = Callable[..., Any]
EVIL = "<img src=x onerror=alert(1)> a run that is called like many words"
PLACES = (
    "",
    "incidents",
    "control",
    "control/policies",
    "control/audit",
    "channels",
    "rules",
    "settings",
    "run/r1",
)
LEFT = r"""() => {
    const ours = "code, pre, q, time, textarea, option, svg, .name, .detail, .js-plotly-plot, h1, .here, mark";
    const english = /[A-Za-z]{2,}[ ,.;:]+[A-Za-z]{2,}[ ,.;:]+[A-Za-z]{2,}/;
    const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
    const found = [];
    while (texts.nextNode()) {
        const text = texts.currentNode;
        if (!text.parentElement.closest(ours) && english.test(text.data)) found.push(text.data.trim());
    }
    return found;
}"""
"""Texts of the page with three English words in a row, apart from names, code and what people wrote."""
TOLD = (
    "many words",
    "The KL pull is stronger",
    "Lower the KL coefficient.",
    "JSON lines",
    " or ",
    "slack, discord",
    "set kl coef",
)
"""What stays as it is: the run's own name, a rule of the test's own, formats, names of metrics."""


@pytest.fixture
def house(database_url: str, tmp_path: Path) -> Iterator[House]:
    with House(Settings(home=tmp_path / "home", database_url=database_url)) as house:
        house.plant("r1", name=EVIL)
        house.propose(house.fire("r1"))
        yield house


def test_the_language_is_chosen_and_kept_and_every_page_speaks_it_while_it_lives(
    house: House, open_page: OpenPage
) -> None:
    page = open_page(house.url, "/ui/rules/edit", login=house.login)
    page.locator("#draft").fill("groups: [mine]")
    page.locator("summary", has_text="Put it in force").click()
    page.locator("#draft-why").fill("to see it again")
    page.get_by_label("Language and colours").click()
    page.get_by_role("button", name="Colour-blind safe").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light-safe")
    page.get_by_role("button", name="中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(page.locator("main h1")).to_have_text("编辑规则")
    expect(page.locator("#draft")).to_have_value("groups: [mine]")
    expect(page.locator("#draft-why")).to_have_value("to see it again")
    for place in PLACES:
        page.goto(f"{house.url}/ui/{place}")
        expect(page.locator("main h1, main h2").first).to_be_visible()
        assert [text for text in page.evaluate(LEFT) if not any(word in text for word in TOLD)] == [], place
    assert EVIL in page.locator("main h1").inner_text()
    house.fire("r1", "a9", rule="nonfinite")
    house.app.state.live.publish("r1")
    expect(page.locator("main")).to_contain_text("2 条触发中")
    expect(page.locator("html")).to_have_attribute("data-theme", "light-safe")
    page.get_by_label("语言与配色").click()
    page.get_by_role("button", name="English").click()
    expect(page.locator("html")).to_have_attribute("lang", "en")
    expect(page.locator("main")).to_contain_text("2 firing")
