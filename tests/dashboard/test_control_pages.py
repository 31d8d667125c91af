"""The pages of control and channels in a real browser, before the whole service, on both databases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from rlvitals.contract.command import CommandKind
from rlvitals_monitor.settings import Settings
from tests.dashboard.barriers import grave_barriers
from tests.dashboard.house import House
from tests.end_to_end.server import wait_until
from tests.monitor.control.live import CALM, PULLED, LiveRun
from tests.monitor.notify.conftest import provide
from tests.monitor.notify.provider import Provider, Said

__all__ = ["provide"]

pytestmark = pytest.mark.browser
OpenPage = Callable[..., Any]
Opened = Callable[..., Provider]
EVIL = "<img src=x onerror=alert(1)> \u202e@everyone"
CHANNELS = """channels:
  - {{name: team, kind: webhook, url: "{url}", allow_private: true}}
  - {{name: shut, kind: slack, url: "{url}", allow_private: true}}
"""


@pytest.fixture
def provider(provide: Opened) -> Provider:
    return provide()


@pytest.fixture
def house(
    database_url: str, tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> Iterator[House]:
    """With a run r1 whose rule proposes to lower the KL coefficient, and a channel that leads to the provider."""
    file = tmp_path / "channels.yaml"
    file.write_text(CHANNELS.format(url=provider.url))
    monkeypatch.setenv("RLVITALS_CHANNELS", str(file))
    with House(Settings(home=tmp_path / "home", database_url=database_url)) as house:
        house.plant("r1", name=EVIL)
        house.propose(house.fire("r1"))
        yield house


@pytest.fixture
def walk(house: House, open_page: OpenPage) -> Callable[..., Any]:
    """Opens a path as somebody who has signed in."""
    return lambda path, **given: open_page(house.url, path, login=house.login, **given)


def test_a_proposal_is_decided_once_asked_and_its_way_is_told(walk: Callable[..., Any], house: House) -> None:
    page = walk("/ui/")
    page.get_by_role("link", name="Control 1").click()
    card = page.locator(".decision")
    expect(card).to_contain_text("kl.pull_ratio 3.5, threshold 1, since step 117")
    expect(card).to_contain_text("From 0.1 to 0.05")
    card.locator("summary", has_text="Approve").click()
    expect(card).to_contain_text("on all ranks")
    card.locator("input[type=number]").fill("0.08")
    page.get_by_role("button", name="Yes, approve").click()
    expect(page.locator("#verdict")).to_contain_text("Approved. The trainer gets it with its next report.")
    expect(page.locator(".decision")).to_have_count(0)
    expect(page.locator("#waiting")).to_have_text("")
    page.locator(".commands").get_by_role("link", name="Set the KL coefficient").click()
    stations = page.locator(".course li")
    expect(stations).to_have_count(4)
    expect(stations.nth(1)).to_contain_text("Approved")
    expect(stations.nth(1)).to_contain_text("local")
    expect(stations.nth(3)).to_contain_text("Applied at a step boundary, on all ranks together")
    expect(page.locator(".lines")).to_contain_text("approved")
    assert [c["argument"] for c in house.get("/commands")] == [0.08]


def test_a_run_is_asked_for_what_it_can_do_and_says_why_not_else(walk: Callable[..., Any], house: House) -> None:
    house.plant("r2", name="tiny", capabilities={"pause": "", "set_kl_coef": EVIL})
    page = walk("/ui/control?run=r2")
    asking = page.locator("#own-commands")
    asking.locator("summary", has_text="Pause training").click()
    asking.locator("input[type=number]").fill("60")
    asking.locator("input[type=text]").first.fill(EVIL)
    page.get_by_role("button", name="Yes: pause training").click()
    expect(page.locator("#verdict")).to_contain_text("Asked for.")
    expect(page.locator(".commands")).to_contain_text("for at most 60 s")
    asking.locator("summary", has_text="it cannot do").click()
    expect(asking.locator(".reasons")).to_contain_text("<img src=x onerror=alert(1)> [U+202E]@everyone")
    (pause,) = house.get("/commands?run=r2")
    assert (pause["kind"], pause["argument"], pause["why"]) == ("pause", 60.0, EVIL)


def test_an_alert_is_silenced_from_its_run_and_the_silence_is_ended(
    walk: Callable[..., Any], house: House
) -> None:
    page = walk("/ui/run/r1")
    page.get_by_role("button", name="Silence 1 h").click()
    expect(page.locator("#verdict")).to_contain_text("Silenced.")
    page.get_by_role("button", name="I have seen it").click()
    expect(page.locator(".alert")).to_contain_text("Seen by local")
    page.get_by_role("link", name="Control").click()
    page.get_by_role("link", name="Silences").click()
    row = page.locator(".silences li").first
    expect(row).to_contain_text("run=r1")
    row.locator("summary", has_text="End it").click()
    page.get_by_role("button", name="Yes, end it").click()
    expect(page.locator("#verdict")).to_contain_text("Ended.")
    expect(page.locator("main")).to_contain_text("No alert is silenced.")
    assert [s["state"] for s in house.get("/silences")] == ["ended"]


def test_maintenance_that_comes_again_is_planned_and_a_wrong_hour_is_told(
    walk: Callable[..., Any], house: House
) -> None:
    page = walk("/ui/control/silences", width=390)
    page.locator("summary", has_text="Plan maintenance").click()
    form = page.locator(".asking[open]")
    form.get_by_label("Project").fill("math-*")
    form.get_by_label("Comes again").fill("0 25 * * 6")
    form.get_by_role("button", name="Yes, plan it").click()
    expect(page.locator("#verdict")).to_contain_text("cron")
    form.get_by_label("Comes again").fill("0 22 * * 6")
    form.get_by_label("Why").fill(EVIL)
    form.get_by_role("button", name="Yes, plan it").click()
    row = page.locator(".silences li").first
    expect(row).to_contain_text("Maintenance")
    expect(row).to_contain_text("0 22 * * 6 for 2 h, UTC")
    expect(row).to_contain_text("<img src=x onerror=alert(1)> [U+202E]@everyone")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_policy_is_chosen_and_taken_back_and_a_kl_policy_comes_with_its_warning(
    walk: Callable[..., Any], house: House
) -> None:
    page = walk("/ui/control/policies")
    page.locator("summary", has_text="For a run").click()
    form = page.locator(".asking[open]")
    form.get_by_label("Run").fill("r1")
    form.get_by_role("button", name="Observe").click()
    row = page.locator(".lines tbody tr").filter(has_text="r1")
    expect(row).to_contain_text("Observe")
    row.locator("summary", has_text="Take back").click()
    page.get_by_role("button", name="Yes, take it back").click()
    wait_until(lambda: [p["scope"] for p in house.get("/policies")] == ["default"], "the policy to be gone")
    expect(row).to_have_count(0)
    page.locator("summary", has_text="Steer a run").click()
    form = page.locator(".asking[open]").filter(has_text="Steer a run")
    form.get_by_label("Run", exact=True).fill("r1")
    form.get_by_role("button", name="article").click()
    expect(page.locator("#verdict")).to_contain_text("turns the wrong way")
    expect(page.locator(".lines tbody tr").filter(has_text="article")).to_contain_text("r1")


def test_what_was_chosen_and_is_taken_back_at_once_is_gone_from_a_page_that_just_asks_anew(
    walk: Callable[..., Any], house: House
) -> None:
    """It then shows what it does not yet say that it shows: were it believed, nothing would have changed."""
    page = walk("/ui/control/policies")
    row = page.locator(".lines tbody tr").filter(has_text="r1")
    expect(page.locator(".lines tbody tr")).to_have_count(1)
    before = page.evaluate("JSON.parse(document.querySelector('.prints').textContent)")
    house.put("/policies", {"scope": "run", "name": "r1", "policy": "observe"})
    expect(row).to_have_count(1)
    page.evaluate(
        """async (before) => {
          dash_clientside.vitals.nudge(1, [{ version: 1, prints: before }], [{ type: "pulse", page: "policies" }]);
          await fetch("/api/v1/policies?scope=run&name=r1", { method: "DELETE" });
        }""",
        before,
    )
    expect(row).to_have_count(0)
    assert page.evaluate("JSON.parse(document.querySelector('.prints').textContent)") == before


def test_the_audit_is_filtered_by_its_address_checked_and_exported(walk: Callable[..., Any], house: House) -> None:
    house.ask(CommandKind.CHECKPOINT)
    page = walk("/ui/control/audit")
    expect(page.locator(".lines")).to_contain_text("rule:kl_pull_dominates")
    page.get_by_label("Who").fill("ada")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url(re.compile("who=ada"))
    expect(page.locator(".lines tbody tr")).to_have_count(1)
    page.get_by_role("button", name="Check the chain").click()
    expect(page.locator("#verdict")).to_contain_text(re.compile(r"The chain of \d+ lines holds\."))
    with page.expect_download() as download:
        page.get_by_role("link", name="Export CSV").click()
    text = Path(download.value.path()).read_text()
    assert "ada" in text
    assert "rule:kl_pull_dominates" not in text


def test_a_channel_is_tested_and_the_providers_own_words_are_shown(
    walk: Callable[..., Any], house: House, provider: Provider
) -> None:
    provider.script.append(Said(status=500, body=f"down {EVIL}".encode()))
    house.deliver()
    provider.script.clear()
    provider.got.clear()
    page = walk("/ui/channels")
    page.locator(".channel", has_text="team").get_by_role("button", name="Send a test").click()
    expect(page.locator("#verdict")).to_contain_text("team took the test.")
    assert len(provider.got) == 1
    provider.script.append(Said(status=404, body=f"no_service {EVIL}".encode()))
    page.locator(".channel", has_text="shut").get_by_role("button", name="Send a test").click()
    expect(page.locator("#verdict")).to_contain_text("shut did not take the test.")
    expect(page.locator("#verdict")).to_contain_text("no_service <img src=x onerror=alert(1)>")
    page.locator(".lines tr", has_text="shut").get_by_role("button", name="1 attempt").click()
    expect(page.locator("#verdict .sends li")).to_have_count(1)


def test_a_channel_is_added_shown_without_its_address_and_removed(walk: Callable[..., Any], house: House) -> None:
    page = walk("/ui/channels")
    page.locator("summary", has_text="Add a channel").click()
    form = page.locator(".asking[open]")
    form.get_by_label("Name").fill("chat")
    form.get_by_label("Kind").fill("slack")
    form.get_by_label("Address").fill("ftp://hooks.slack.com/services/T0/B0/n0b0dysees")
    form.get_by_role("button", name="Yes, add it").click()
    expect(page.locator("#verdict")).to_contain_text("expected https://host/")
    form.get_by_label("Address").fill("https://hooks.slack.com/services/T0/B0/n0b0dysees")
    form.get_by_role("button", name="Yes, add it").click()
    card = page.locator(".channel", has_text="chat")
    expect(card).to_contain_text("slack at hooks.slack.com")
    page.reload()
    expect(card).to_contain_text("Nothing sent yet")
    assert "n0b0dysees" not in page.content()
    card.locator("summary", has_text="Remove").click()
    page.get_by_role("button", name="Yes, remove it").click()
    expect(card).to_have_count(0)
    assert [c["name"] for c in house.get("/channels")] == ["team", "shut"]


def test_the_effect_of_a_command_stands_on_its_page(walk: Callable[..., Any], house: House) -> None:
    live = LiveRun(store=house.store, run="r9")
    live.choose()
    live.rest({**PULLED, "kl.pull_ratio": 1.2}, 48)
    live.train({**PULLED, "kl.pull_ratio": 1.2}, 2, 48)
    live.rest({**CALM, "kl.pull_ratio": 0.5}, 51, 50)
    page = walk(f"/ui/control/command/{live.commands()[0].id}")
    expect(page.locator("h1")).to_have_text("Set the KL coefficient 0.1 → 0.08")
    expect(page.locator("#command-effect")).to_contain_text("Helped")
    expect(page.locator(".signal").filter(has_text="kl.pull_ratio")).to_contain_text("1.2 → 0.4")
    expect(page.locator(".around .main-svg").first).to_be_visible()


PAGES = ("control", "control/policies", "control/silences", "control/audit", "channels", "run/r1")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("width", "scheme"), [(1440, "dark"), (390, "light")])
def test_every_page_is_within_reach_of_all_and_of_a_phone(
    walk: Callable[..., Any], house: House, width: int, scheme: str
) -> None:
    command = house.ask(CommandKind.PAUSE, 60)
    house.post("/alerts/a1/silence", {"lasts_s": 3600.0, "why": EVIL})
    house.post("/silences", {"match": [f"run={'long' * 60}"], "lasts_s": 3600.0})
    page = walk("/ui/", width=width, scheme=scheme)
    for path in (*PAGES, f"control/command/{command.id}"):
        page.goto(f"{house.url}/ui/{path}")
        expect(page.locator("main h1")).to_be_visible()
        if path == "control":
            expect(page.locator("#own-commands summary").first).to_be_visible()
        for asked in page.locator("details.asking > summary").all():
            asked.click()
        told = grave_barriers(page)
        assert told == [], f"{path}: {told}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
