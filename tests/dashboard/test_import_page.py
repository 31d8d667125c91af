"""A log that is dropped in a real browser, before the whole service, on both databases."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from rlvitals_monitor.settings import Settings
from tests.dashboard.barriers import grave_barriers
from tests.dashboard.house import House
from tests.dashboard.live_runs import judge

pytestmark = pytest.mark.browser
OpenPage = Callable[..., Any]
ONE_DATABASE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
EVIL = "<img src=x onerror=alert(1)> \u202e"


@pytest.fixture
def house(database_url: str, tmp_path: Path) -> Iterator[House]:
    with House(Settings(home=tmp_path / "home", database_url=database_url)) as house:
        yield house


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Sixty steps; the loss becomes NaN at step 50, and one line is broken."""
    rows = [json.dumps({"step": at, "loss": 0.1, "grad_norm": 1.0, f"my {EVIL}": at}) for at in range(60)]
    rows[50] = '{"step": 50, "loss": NaN, "grad_norm": 1.0}'
    rows.insert(20, f'{{"step": 20, "loss": {EVIL}')
    path = tmp_path / "old run.jsonl"
    path.write_text("\n".join(rows))
    return path


DROP = """([name, text]) => {
    const carried = new DataTransfer();
    carried.items.add(new File([text], name, { type: "application/octet-stream" }));
    const place = document.querySelector(".drop");
    for (const kind of ["dragenter", "dragover", "drop"])
        place.dispatchEvent(new DragEvent(kind, { dataTransfer: carried, bubbles: true, cancelable: true }));
}"""
"""What a browser does when a file is let go over the place."""


@ONE_DATABASE
def test_a_log_is_dropped_by_mouse_and_one_that_misses_the_place_replaces_no_page(
    house: House, open_page: OpenPage, log: Path
) -> None:
    page = open_page(house.url, "/ui/import", login=house.login)
    expect(page.locator("#import-file")).to_be_attached()
    missed = """() => {
        const carried = new DataTransfer();
        carried.items.add(new File(["{}"], "missed.jsonl"));
        return document.querySelector("h1").dispatchEvent(
            new DragEvent("drop", { dataTransfer: carried, bubbles: true, cancelable: true }));
    }"""
    assert page.evaluate(missed) is False
    page.evaluate(DROP, [log.name, log.read_text()])
    expect(page.locator("#import-result")).to_contain_text("old run.jsonl is a run now.")
    assert [run["name"] for run in house.get("/runs")] == ["old run.jsonl"]


def test_a_dropped_log_has_its_page_its_faults_by_line_and_its_timeline(
    house: House, open_page: OpenPage, log: Path
) -> None:
    page = open_page(house.url, "/ui/import", login=house.login)
    page.locator("#import-file").set_input_files(log)
    result = page.locator("#import-result")
    expect(result).to_contain_text("60 steps")
    expect(result).to_contain_text("1 line could not be read")
    expect(result).to_contain_text("Line 21")
    expect(result).to_contain_text("<img src=x onerror=alert(1)> [U+202E]")
    expect(result).to_contain_text("Judged up to step 0 of 59")
    judge(house)
    (run,) = house.get("/runs")
    house.app.state.live.publish(run["id"])
    expect(result).to_contain_text("All steps up to 59 are judged.")
    row = result.locator("tr", has_text="nonfinite").first
    expect(row).to_contain_text("50")
    expect(page).to_have_url(re.compile(f"run={run['id']}"))
    page.reload()
    expect(row).to_contain_text("Critical")
    row.get_by_role("link", name="50").click()
    expect(page.locator("main h1")).to_contain_text("old run.jsonl")


@ONE_DATABASE
def test_what_is_no_log_is_said_and_makes_no_run(house: House, open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(house.url, "/ui/import", login=house.login, width=390)
    other = tmp_path / "poem.txt"
    other.write_text("no number here\n")
    page.locator("#import-file").set_input_files(other)
    expect(page.locator("#import-result")).to_contain_text("no training step was found in the log")
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    page.locator("#import-file").set_input_files(empty)
    expect(page.locator("#import-result")).to_contain_text("expected a log as the body, got nothing")
    page.get_by_text("More about it").click()
    page.get_by_label("Format").fill("stone tablet")
    page.locator("#import-file").set_input_files(other)
    expect(page.locator("#import-result")).to_contain_text("expected one of console, JSON lines")
    assert house.get("/runs") == []
    assert grave_barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@ONE_DATABASE
def test_a_run_that_is_gone_is_said(house: House, open_page: OpenPage) -> None:
    page = open_page(house.url, "/ui/import?run=gone", login=house.login)
    expect(page.locator("#import-result")).to_contain_text("there is no run 'gone'")
