"""Coming in as people do, in a real browser before the whole service, on both databases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from playwright.sync_api import expect

from rlvitals_monitor.settings import Settings
from tests.dashboard.barriers import grave_barriers
from tests.dashboard.house import House
from tests.dashboard.live_runs import CALM, tell
from tests.served import PATIENCE_S

pytestmark = pytest.mark.browser
PASSWORD = "four words make one"
_WATCH = """
window.refused = [];
document.addEventListener("securitypolicyviolation", (e) =>
  window.refused.push(`${e.effectiveDirective} ${e.blockedURI} ${e.sample}`));
"""


@pytest.fixture
def house(database_url: str, tmp_path: Path) -> Iterator[House]:
    with House(Settings(home=tmp_path / "home", database_url=database_url)) as house:
        tell(house, "r1", CALM, range(20), "shared run")
        tell(house, "r2", CALM, range(20), "another run")
        yield house


def test_a_person_is_invited_walks_the_pages_under_a_strict_policy_and_shares_one(
    house: House, chromium: Any
) -> None:
    invited = house.post("/users", {"name": "Änne <b>", "role": "operator"})
    page = chromium.new_context().new_page()
    page.add_init_script(_WATCH)
    page.set_default_timeout(PATIENCE_S * 1000)
    faults: list[str] = []
    page.on("console", lambda said: faults.append(said.text) if "Content Security Policy" in said.text else None)
    page.goto(house.url + invited["link"])
    expect(page.get_by_text("Änne <b>")).to_be_visible()
    assert grave_barriers(page) == []
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Once more").fill("something else")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("The two passwords differ")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Once more").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#page main").first).to_be_visible()
    for place in ("", "run/r1", "run/r1/texts", "compare?runs=r1,r2", "rules/edit"):
        page.goto(f"{house.url}/ui/{place}")
        expect(page.locator("#page main").first).to_be_visible()
        assert page.evaluate("window.refused") == [], place
    expect(page.locator(".live-sign")).not_to_contain_text("Connecting")
    assert faults == []
    assert page.goto(f"{house.url}/ui/logout").url.endswith("/ui/login")
    page.get_by_label("Name").fill("Änne <b>")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.locator("#page main").first).to_be_visible()
    _share(house, chromium)


def _share(house: House, chromium: Any) -> None:
    made = house.post("/runs/r1/shares", {"hours": 1.0, "view": "/texts?step=5"})
    page = chromium.new_context().new_page()
    page.goto(house.url + made["link"])
    assert urlsplit(page.url)[2:4] == ("/ui/run/r1/texts", "step=5")
    expect(page.locator("#page main").first).to_be_visible()
    expect(page.locator("#nav")).to_have_text(re.compile("A shared view of one run"))
    page.goto(f"{house.url}/ui/run/r2")
    assert page.url.endswith("/ui/run/r1/texts?step=5")
    owner = {"authorization": f"Bearer {house.app.state.local_token}"}
    httpx2.delete(f"{house.url}/api/v1/shares/{made['share']['id']}", headers=owner).raise_for_status()
    assert page.goto(f"{house.url}/ui/run/r1").url.endswith("/ui/login")
    over = page.goto(house.url + made["link"])
    assert over.status == 410
    expect(page.get_by_text("This shared link was taken back.")).to_be_visible()


def test_who_may_only_read_is_shown_no_deed_that_would_be_refused(house: House, chromium: Any) -> None:
    house.fire("r1")
    invited = house.post("/users", {"name": "Vera", "role": "viewer"})
    page = chromium.new_context().new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    page.goto(house.url + invited["link"])
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Once more").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#runs-list tr.run").first).to_be_visible()
    page.get_by_role("checkbox").first.check()
    bulk = page.get_by_role("region", name="Chosen runs")
    expect(bulk.get_by_role("link", name="Compare")).to_be_visible()
    assert bulk.locator("details").locator("visible=true").count() == 0
    page.goto(f"{house.url}/ui/run/r1")
    expect(page.locator("#run-alerts article, #run-alerts section").first).to_be_visible()
    expect(page.get_by_role("link", name="Compare", exact=True).last).to_be_visible()
    assert page.locator("#page .deed:not(.reader)").locator("visible=true").count() == 0
    assert page.locator("#page .deed:not(.reader)").count() > 0
    page.goto(f"{house.url}/ui/control/audit")
    page.get_by_role("button", name="Check the chain").click()
    expect(page.locator("#verdict")).to_contain_text("holds")
    page.goto(f"{house.url}/ui/settings/sessions")
    expect(page.get_by_text("End my other sessions")).to_be_visible()
