"""The pages of incidents in a real browser, before the whole service, on both databases."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from rlvitals.contract.report import Event, EventKind, RunInfo, Text
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store.ingest import store_batch
from rlvitals_monitor.worker import Worker
from tests.dashboard.barriers import grave_barriers
from tests.dashboard.house import House, now_utc
from tests.monitor.batches import batch, step

pytestmark = pytest.mark.browser
OpenPage = Callable[..., Any]
EVIL = "<img src=x onerror=alert(1)> \u202e@everyone"
CHANNELS = """channels:
  - {name: team, kind: slack, url: "https://hooks.slack.com/services/T0/B0/n0b0dysees", severity: critical}
  - {name: pager, kind: slack, url: "https://hooks.slack.com/services/T0/B0/n0b0dysees", severity: critical}
"""
WELL = {"gradient.norm": 0.5, "length.truncation_rate": 0.1}
SICK = {"gradient.norm": math.nan, "length.truncation_rate": 1.0}


def train(house: House, run: str = "r1", attempt: str = "t1", *, name: str = EVIL) -> None:
    """Twelve steps, of which the last three are broken, with checkpoints and hostile completions; judged."""
    now = now_utc()
    steps = [step(n, n, WELL if n < 10 else SICK) for n in range(1, 13)]
    saved = [
        Event(
            seq=20 + at,
            time_s=now.timestamp(),
            kind=EventKind.CHECKPOINT,
            step=at,
            payload={"folder": f"out/{at}"},
        )
        for at in (4, 8)
    ]
    texts = [
        Text(seq=40 + s, step=10, sample=s, prompt=EVIL, completion=f"{EVIL} {s}", reward=float(s), invalid_utf8=s)
        for s in range(3)
    ]
    info = RunInfo(id=run, name=name, project="math", framework="trl 1.16", config={"world_size": 4})
    with house.store.begin() as conn:
        told = batch(*steps, attempt=attempt, info=info, events=tuple(saved), texts=tuple(texts))
        store_batch(conn, told, now)
    Worker(house.store).tick(now)


@pytest.fixture
def house(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    """With a run r1 whose gradients broke at step 10, and two channels."""
    file = tmp_path / "channels.yaml"
    file.write_text(CHANNELS)
    monkeypatch.setenv("RLVITALS_CHANNELS", str(file))
    with House(Settings(home=tmp_path / "home", database_url=database_url)) as house:
        train(house)
        yield house


@pytest.fixture
def walk(house: House, open_page: OpenPage) -> Callable[..., Any]:
    """Opens a path as somebody who has signed in."""
    return lambda path, **given: open_page(house.url, path, login=house.login, **given)


def test_a_person_finds_what_is_wrong_looks_after_it_and_takes_its_story_along(
    walk: Callable[..., Any], house: House
) -> None:
    page = walk("/ui/")
    page.get_by_role("link", name="Incidents").click()
    line = page.locator(".incident-list a").first
    expect(line).to_contain_text("<img src=x onerror=alert(1)> [U+202E]@everyone")
    expect(line).to_contain_text("since step 10")
    line.click()
    expect(page.locator(".incident-head")).to_contain_text("step 8 out/8")
    lanes = page.locator(".lanes .lane-track")
    expect(lanes.first).to_have_attribute("aria-label", "Critical: nonfinite from step 10, goes on")
    expect(page.locator(".lane-marks .lane-mark")).to_have_count(2)
    expect(page.locator(".guilty").first).to_contain_text("step 10, sample 2")
    page.get_by_role("button", name="I look after it").click()
    expect(page.locator("#verdict")).to_contain_text("It has your name.")
    expect(page.locator(".incident-head")).to_contain_text("Looked after")
    expect(page.locator("#incidents-deeds")).to_contain_text("Seen by local.")
    for label, form in (("Markdown", "md"), ("HTML", "html")):
        with page.expect_download() as download:
            page.get_by_role("link", name=label).click()
        assert download.value.suggested_filename == f"post-mortem-r1-nan_inf.{form}"
        assert "step 8, out/8" in Path(download.value.path()).read_text()
    assert {one["unseen"] for one in house.get("/incidents")} == {0}


def test_an_incident_is_escalated_and_silenced_as_a_whole(walk: Callable[..., Any], house: House) -> None:
    page = walk("/ui/run/r1/incidents")
    page.locator("summary", has_text="Escalate").click()
    page.get_by_label("Channel").fill("pagr")
    page.get_by_role("button", name="Yes, tell it").click()
    expect(page.locator("#verdict")).to_contain_text("there are: team, pager")
    page.get_by_label("Channel").fill("pager")
    page.get_by_role("button", name="Yes, tell it").click()
    expect(page.locator("#verdict")).to_contain_text("pager is told of")
    ids = house.get("/runs/r1/incidents")[0]["alert_ids"]
    assert [d["channel"] for d in house.get("/deliveries")] == ["pager"] * len(ids)
    page.locator("#incidents-deeds").get_by_role("button", name="Silence 1 h").click()
    expect(page.locator("#verdict")).to_contain_text("Silenced.")
    assert len(house.get("/silences")) == len(ids)


def test_an_address_of_what_is_not_there_says_what_to_do_and_a_new_incident_comes_by_itself(
    walk: Callable[..., Any], house: House
) -> None:
    page = walk("/ui/run/r1/incidents?cause=lr_zero")
    expect(page.locator("main")).to_contain_text("is not among this run's incidents any more")
    page.get_by_role("link", name="All incidents of this run").click()
    expect(page.locator(".incident-head h2")).to_be_visible()
    page.goto(f"{house.url}/ui/run/none/incidents")
    expect(page.locator("main")).to_contain_text("there is no run 'none'")
    house.plant("r2", name="quiet one")
    page.goto(f"{house.url}/ui/run/r2/incidents")
    expect(page.locator("main")).to_contain_text("No alert of this attempt has fired.")
    house.fire("r2", "b1", rule="nonfinite", fired_step=120)
    house.app.state.live.publish("r2")
    expect(page.locator(".incident-head")).to_contain_text("First alertstep 120")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("width", "scheme"), [(1440, "dark"), (390, "light")])
def test_the_pages_are_within_reach_of_all_and_of_a_phone(
    walk: Callable[..., Any], house: House, width: int, scheme: str
) -> None:
    train(house, "r2", "t2", name="long" * 60)
    page = walk("/ui/incidents", width=width, scheme=scheme)
    for path in ("incidents", "run/r1/incidents", "run/r2/incidents?cause=gone"):
        page.goto(f"{house.url}/ui/{path}")
        expect(page.locator("main .incident-list, main .notice").first).to_be_visible()
        for asked in page.locator("details.asking > summary").all():
            asked.click()
        told = grave_barriers(page)
        assert told == [], f"{path}: {told}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
