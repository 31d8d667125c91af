"""The pages of rules in a real browser, before the whole service, on both databases."""

from __future__ import annotations

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
from tests.monitor.notify.conftest import provide
from tests.monitor.notify.provider import Provider

__all__ = ["provide"]

pytestmark = pytest.mark.browser
OpenPage = Callable[..., Any]
ONE_DATABASE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
EVIL = "<img src=x onerror=alert(1)> \u202egrpo"
CHANNELS = 'channels:\n  - {{name: team, kind: webhook, url: "{url}", allow_private: true}}\n'
MINE = """groups:
  - name: own
    rules:
      - alert: too_long
        expr: length.mean > 500
        labels: {severity: loud}
        annotations: {summary: "Long."}
"""


@pytest.fixture
def provider(provide: Callable[..., Provider]) -> Provider:
    return provide()


@pytest.fixture
def house(
    database_url: str, tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> Iterator[House]:
    """With one run that is well and one that went bad at step 40."""
    file = tmp_path / "channels.yaml"
    file.write_text(CHANNELS.format(url=provider.url))
    monkeypatch.setenv("RLVITALS_CHANNELS", str(file))
    with House(Settings(home=tmp_path / "home", database_url=database_url)) as house:
        tell(house, "well", CALM, range(50), "calm run")
        tell(house, "ill", CALM, range(40), EVIL)
        tell(house, "ill", ILL, range(40, 50), EVIL)
        yield house


@pytest.fixture
def walk(house: House, open_page: OpenPage) -> Callable[..., Any]:
    """Opens a path as somebody who has signed in."""
    return lambda path, **given: open_page(house.url, path, login=house.login, **given)


def test_what_holds_comes_first_and_leads_to_the_rule_on_each_run_which_stays_live(
    walk: Callable[..., Any], house: House
) -> None:
    page = walk("/ui/rules")
    expect(page.locator(".page-head")).to_contain_text("in force, looked at on 2 runs")
    first = page.locator("#rules-board .panel").first
    expect(first.locator("h2")).to_contain_text("Holding now")
    row = first.locator("tr", has=page.get_by_role("link", name="nonfinite", exact=True))
    expect(row).to_contain_text("Holds on 1 of 2")
    expect(row).to_contain_text("<img src=x onerror=alert(1)> [U+202E]grpo")
    page.get_by_role("link", name=re.compile(r"^Cannot run \d+")).click()
    page.wait_for_url(re.compile("state=dormant"))
    expect(page.locator("#rules-board .panel").first.locator("h2")).not_to_contain_text("Holding now")
    expect(page.locator("#rules-board")).to_contain_text("this run does not report critic.value_loss")
    page.get_by_role("link", name=re.compile(r"^Holds \d+")).click()
    page.wait_for_url(re.compile("state=holds"))
    row.get_by_role("link", name="nonfinite", exact=True).click()
    expect(page.locator("main h1")).to_have_text("nonfinite")
    lines = page.locator(".lines tbody tr")
    expect(lines.nth(0)).to_contain_text("Holds")
    expect(lines.nth(0)).to_contain_text("NaN")
    expect(lines.nth(1)).to_contain_text("Quiet")
    tell(house, "well", ILL, range(50, 60), "calm run")
    expect(lines.nth(1)).to_contain_text("Holds")


@ONE_DATABASE
def test_one_run_is_looked_at_by_its_address_and_a_wrong_one_is_said(walk: Callable[..., Any]) -> None:
    page = walk("/ui/rules?run=well&q=gradient")
    expect(page.locator(".page-head")).to_contain_text("looked at on 1 run")
    expect(page.locator("#rules-board tr", has_text="grad_spike").first).to_contain_text("Quiet")
    page.get_by_label("Run").fill("nobody")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("main")).to_contain_text("there is no run 'nobody'")


def test_a_text_is_told_its_faults_tried_on_past_runs_and_put_in_force(
    walk: Callable[..., Any], house: House
) -> None:
    page = walk("/ui/rules")
    page.get_by_role("link", name="Edit and try").click()
    page.locator("#draft").fill(MINE)
    expect(page.locator("#draft-faults")).to_contain_text("expected one of info, warning, critical, got 'loud'")
    page.get_by_role("button", name="Line 6").click()
    assert "loud" in page.evaluate("draft.value.slice(draft.selectionStart, draft.selectionEnd)")
    page.locator("#draft").fill(MINE.replace("loud", "warning"))
    expect(page.locator("#draft-faults")).to_contain_text("too_long/warning")

    page.goto(f"{house.url}/ui/rules/edit?runs=ill@40")
    page.get_by_role("button", name="+ calm run").click()
    expect(page.locator("#tried-since input")).to_have_count(2)
    page.locator("#draft").fill(MINE.replace("loud", "warning"))
    expect(page.locator("#tried-since input").first).to_have_value("40")
    page.get_by_role("button", name="Try it").click()
    row = page.locator("#tried tr", has_text="too_long").first
    expect(row).to_contain_text("quiet")
    expect(row).to_contain_text("step 40")
    expect(row).to_contain_text("New")
    expect(page.locator("#tried")).to_contain_text("1 of 1 bad run would have been named")
    expect(page).to_have_url(re.compile(re.escape("runs=ill@40,well")))

    page.locator("summary", has_text="Put it in force").click()
    page.get_by_label("Why").fill("answers cost")
    page.get_by_role("button", name="Yes, put it in force").click()
    expect(page.locator("#verdict")).to_contain_text("Version 1 is in force.")
    expect(page.locator(".versions")).to_contain_text("local")
    expect(page.locator(".versions")).to_contain_text("answers cost")
    assert "too_long" in {rule["rule"] for rule in house.get("/rules")}
    page.locator("#draft").fill("")
    page.get_by_role("button", name="Yes, put it in force").click()
    expect(page.locator("#verdict")).to_contain_text("Version 2 is in force.")
    page.get_by_role("link", name="Version 1").click()
    expect(page.locator("#draft")).to_have_value(re.compile("too_long"))


@ONE_DATABASE
def test_who_edited_what_somebody_else_changed_meanwhile_overwrites_nothing(
    walk: Callable[..., Any], house: House
) -> None:
    page = walk("/ui/rules/edit?rule=nonfinite&severity=critical")
    expect(page.locator("#draft")).to_have_value(re.compile("alert: nonfinite"))
    expect(page.locator("#draft-faults")).to_contain_text("It changes no rule.")
    house.put("/rules/edited", {"text": "off: [reward_stuck]", "base": 0})
    page.locator("summary", has_text="Put it in force").click()
    page.get_by_role("button", name="Yes, put it in force").click()
    expect(page.locator("#verdict")).to_contain_text("somebody put other rules in force meanwhile")


@ONE_DATABASE
def test_a_rule_is_test_fired_and_the_providers_words_are_shown(
    walk: Callable[..., Any], provider: Provider
) -> None:
    page = walk("/ui/rules/rule/nonfinite/critical", width=390)
    page.locator("summary", has_text="Test-fire").click()
    page.get_by_role("button", name="Yes, send the test").click()
    expect(page.locator("#verdict")).to_contain_text("1 channel would hear of it.")
    expect(page.locator("#verdict")).to_contain_text("team took the test")
    assert "This is a test of a rule: no run is in trouble." in str(provider.got[0].body)


@ONE_DATABASE
@pytest.mark.parametrize(("width", "scheme"), [(1440, "dark"), (390, "light")])
def test_the_pages_of_rules_are_within_reach_of_all_and_of_a_phone(
    walk: Callable[..., Any], house: House, width: int, scheme: str
) -> None:
    page = walk("/ui/", width=width, scheme=scheme)
    for path in ("rules", "rules/rule/nonfinite/critical", "rules/edit?runs=ill@40,well"):
        page.goto(f"{house.url}/ui/{path}")
        expect(page.locator("main h1")).to_be_visible()
        for asked in page.locator("details.asking > summary").all():
            asked.click()
        if "edit" in path:
            page.locator("#draft").fill(MINE)
            expect(page.locator("#draft-faults button")).to_be_visible()
            page.get_by_role("button", name="Try it").click()
            expect(page.locator("#tried .notice, #tried .panel").first).to_be_visible()
        told = grave_barriers(page)
        assert told == [], f"{path}: {told}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
