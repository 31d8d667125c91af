"""The settings in a real browser, before the whole service, on both databases: as an administrator would."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from rlvitals_monitor.settings import Settings
from tests.dashboard.house import House

pytestmark = pytest.mark.browser
EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture
def house(database_url: str, tmp_path: Path) -> Iterator[House]:
    with House(Settings(home=tmp_path / "home", database_url=database_url)) as house:
        house.plant("r1", name="tiny run")
        yield house


def test_a_secret_is_shown_though_the_table_with_its_token_comes_before_the_answer(
    house: House, open_page: Callable[..., Any]
) -> None:
    page = open_page(house.url, "/ui/settings/tokens", login=house.login)
    late: list[tuple[Any, Any]] = []

    def hold(route: Any) -> None:
        if '"deed.data"' in (route.request.post_data or ""):
            late.append((route, route.fetch()))
        else:
            route.continue_()

    page.route(re.compile("/_dash-update-component"), hold)
    press(page, "New token")
    page.get_by_label("Name").fill("cluster")
    page.get_by_role("button", name="A trainer that reports").click()
    expect(page.locator("tbody tr").filter(has_text="cluster")).to_be_visible()
    expect(page.locator("#verdict .secret")).to_have_count(0)
    [(route, answer)] = late
    route.fulfill(response=answer)
    expect(page.locator("#verdict .secret")).to_have_text(re.compile(r"^rlv_\S{30,}$"))


def test_a_deed_that_nobody_answers_is_not_under_way_for_ever(house: House, open_page: Callable[..., Any]) -> None:
    page = open_page(house.url, "/ui/settings/tokens", login=house.login)
    lost = re.compile("/_dash-update-component")
    page.route(
        lost, lambda route: route.abort() if "deed.data" in (route.request.post_data or "") else route.continue_()
    )
    press(page, "New token")
    page.get_by_label("Name").fill("cluster")
    page.get_by_role("button", name="A trainer that reports").click()
    expect(page.locator("#verdict .notice")).to_contain_text("The service did not answer.")
    expect(page.locator("#verdict-place")).not_to_have_class("at-work")
    page.unroute(lost)
    page.get_by_role("button", name="A trainer that reports").click()
    expect(page.locator("#verdict .secret")).to_have_text(re.compile(r"^rlv_\S{30,}$"))


def test_people_tokens_links_and_ages_of_data_are_looked_after(
    house: House, open_page: Callable[..., Any]
) -> None:
    page = open_page(house.url, "/ui/settings", login=house.login)
    expect(page.locator("main")).to_contain_text("PostgreSQL" if not house.store.is_sqlite else "SQLite")

    page.get_by_role("link", name="People", exact=True).click()
    press(page, "Invite somebody")
    page.get_by_label("Name").fill(EVIL)
    page.get_by_role("button", name="Viewer").click()
    link = page.locator("#verdict .secret")
    expect(link).to_contain_text(f"{house.url}/ui/")
    expect(page.locator("tbody tr")).to_contain_text("<img src=x onerror=alert(1)>")
    press(page, "Change role")
    page.locator("tbody").get_by_role("button", name="Operator").click()
    expect(page.locator("#verdict")).to_contain_text("From now on: Operator")
    assert [user["role"] for user in house.get("/users")] == ["operator"]

    page.get_by_role("link", name="API tokens", exact=True).click()
    press(page, "New token")
    page.get_by_label("Name").fill("cluster")
    page.get_by_label("Project").fill("math")
    page.get_by_role("button", name="A trainer that reports").click()
    expect(page.locator("#verdict .secret")).to_have_text(re.compile(r"^rlv_\S{30,}$"))
    row = page.locator("tbody tr").filter(has_text="cluster")
    expect(row).to_contain_text("ingest:math")
    row.locator("summary", has_text="Revoke").click()
    row.get_by_role("button", name="Yes, revoke it").click()
    expect(row).to_contain_text("Over")

    page.goto(f"{house.url}/ui/run/r1?from=3&to=9")
    press(page, "Share")
    page.get_by_role("button", name="Yes, make a link").click()
    shared = page.locator("#verdict .secret").inner_text()
    (share,) = house.get("/shares")
    assert share["view"] == "?from=3&to=9"
    guest = page.context.browser.new_page()
    guest.goto(shared)
    expect(guest.locator("h1")).to_have_text("tiny run")
    assert guest.url.endswith("/ui/run/r1?from=3&to=9")
    assert [
        guest.get_by_text(deed, exact=True).locator("visible=true").count() for deed in ("Share", "Compare")
    ] == [0, 0]
    guest.get_by_role("link", name="Incidents", exact=True).click()
    expect(guest.locator("h1")).to_contain_text("Incidents")
    guest.go_back()
    page.goto(f"{house.url}/ui/settings/shares")
    press(page, "Take back")
    page.get_by_role("button", name="Yes, take it back").click()
    expect(page.locator("tbody tr")).to_contain_text("Over")
    expect(guest.locator("#failure > .over, #failure > .refused").locator("visible=true")).to_have_count(1)
    guest.close()

    page.get_by_role("link", name="Retention", exact=True).click()
    press(page, "Choose how long")
    page.get_by_label("Completions").fill("30")
    page.get_by_role("button", name="Yes, keep it so").click()
    expect(page.locator("tbody tr").first).to_contain_text("30 days")
    assert house.get("/retention")[0]["texts_days"] == 30.0

    page.get_by_role("link", name="Sessions", exact=True).click()
    expect(page.locator("tbody tr").filter(has_text="this browser")).to_have_count(1)
    press(page, "End all sessions")
    page.get_by_role("button", name="Yes, sign everybody out").click()
    expect(page.locator("#verdict")).to_contain_text("ended")
    expect(page.locator("tbody tr")).to_have_count(1)


def press(page: Any, words: str) -> None:
    """What opens a question."""
    page.locator("#page summary", has_text=words).first.click()
