"""What pages say when something is in their way, and that they go on by themselves: before the real service,
which is killed and started again on the same port."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from playwright.sync_api import expect

from rlvitals_monitor.store.engine import Store
from tests.chaos.network import Network, Way
from tests.dashboard.house import now_utc
from tests.dashboard.page_table import addresses
from tests.dashboard.stage import CAST, Staged, perform
from tests.end_to_end.server import Server

pytestmark = pytest.mark.browser


MECHANISMS = ("", "control", "compare", "rules/edit", "settings/retention", "run/", "run/texts")
"""Pages that stay fresh each in another way; with EVERY_PAGE=1 the service is killed below all of them."""
HALF = (
    "run",
    "run/",
    "run/nobody",
    "run/%",
    "run/%ff%00",
    "run/{run}/tex",
    "run/{run}/texts?step=NaN",
    "run/{run}/texts?step=1e999&attempt=%00",
    "run/{run}?from=&to=abc",
    "run/{run}?from=-Infinity&to=NaN&attempt=nobody",
    "run/{run}/incidents?incident=",
    "compare?runs=",
    "compare?runs={run},,nobody@x&by=fathoms",
    "control/command/",
    "control/command/%F0%9F%92%A9",
    "control/audit?cursor=abc",
    "rules/rule/",
    "rules/rule/kl_pull_dominates",
    "rules?state=what&run=nobody",
    "rules/edit?runs=a@b",
    "import?run=nobody",
    "settings/peop",
    "?q=%00&sort=nothing&cursor=zzz",
    "nothing/at/all",
)
"""Addresses that were cut off, or written by hand; each is below the prefix."""


class Scene:
    """A service with runs on its own data behind a way that can be cut, and a browser that has signed in."""

    def __init__(self, server: Server, way: Way, staged: Staged, context: Any) -> None:
        self.server, self.way, self.staged, self.context = server, way, staged, context
        self.faults: list[str] = []
        context.on("weberror", lambda error: self.faults.append(str(error.error)))
        self.sign_in()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.way.port}"

    def sign_in(self) -> None:
        token = json.loads((self.server.home / "token.json").read_text())["token"]
        page = self.context.new_page()
        page.goto(f"{self.url}/ui/login")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/ui/")
        page.close()

    def delete(self, path: str) -> None:
        token = json.loads((self.server.home / "token.json").read_text())["token"]
        headers = {"authorization": f"Bearer {token}"}
        answer = httpx2.delete(f"{self.server.url}/api/v1{path}", headers=headers, timeout=30)
        assert answer.status_code < 300, answer.text

    def open(self, path: str) -> Any:
        page = self.context.new_page()
        page.goto(f"{self.url}{path}")
        expect(page.locator("main h1").first).to_be_visible()
        return page

    @property
    def addresses(self) -> dict[str, str]:
        staged = self.staged
        return addresses(staged.run, staged.command, staged.rule, staged.other)

    def open_all(self, *places: str) -> dict[str, Any]:
        pages = {place: self.open(self.addresses[place]) for place in places}
        for page in pages.values():
            is_well(page)
        return pages


@pytest.fixture(scope="module")
def scene(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """One for all tests here: each leaves it as it was, but for a run that it deletes."""
    folder = tmp_path_factory.mktemp("failures")
    (folder / "data").mkdir()
    store = Store(f"sqlite:///{folder / 'data' / 'rlvitals.db'}")
    store.migrate()
    staged = perform(store, now_utc(), (replace(CAST[0], steps=130), *(replace(a, steps=20) for a in CAST[1:3])))
    store.close()
    server = Server(folder)
    server.start()
    network = Network()
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    try:
        yield Scene(server, network.way(("127.0.0.1", server.port)), staged, context)
    finally:
        context.close()
        network.close()
        server.stop()


@pytest.fixture(autouse=True)
def no_script_stumbles(scene: Scene) -> Iterator[None]:
    yield
    for page in scene.context.pages:
        page.close()
    assert scene.faults == []


def banner(page: Any, state: str) -> Any:
    return page.locator(f"#failure > .{state}")


def is_well(page: Any) -> None:
    expect(page.locator("#failure > div:visible")).to_have_count(0)
    expect(page.locator("#live-word")).to_have_text("Live")


def test_each_page_says_that_the_service_is_dead_and_goes_on_when_it_is_back(scene: Scene) -> None:
    pages = scene.open_all(*(scene.addresses if os.environ.get("EVERY_PAGE") else MECHANISMS))
    scene.server.kill()
    for page in pages.values():
        expect(banner(page, "dead")).to_be_visible()
        expect(banner(page, "dead")).to_contain_text("rlvitals serve")
        expect(page.locator("#live-word")).to_have_text("Reconnecting")
        expect(page.locator("main h1").first).to_be_visible()
    asked = pages["run/"]
    asked.get_by_role("link", name="Texts", exact=True).click()
    scene.server.start()
    for page in pages.values():
        is_well(page)
    expect(asked.locator("#texts-text h2").first).to_be_visible()


def test_a_session_that_is_over_is_said_to_be_and_a_page_goes_on_after_the_next_sign_in(scene: Scene) -> None:
    pages = scene.open_all("", "rules/edit", "run/")
    draft = pages["rules/edit"].locator("#draft")
    draft.fill("# half a sent")
    scene.delete("/sessions?everybody=true")
    for page in pages.values():
        expect(banner(page, "over")).to_be_visible()
        expect(banner(page, "over").get_by_role("link", name="Sign in again")).to_be_visible()
    scene.sign_in()
    for page in pages.values():
        is_well(page)
    expect(draft).to_have_value("# half a sent")
    asked = pages["run/"]
    asked.get_by_role("link", name="Rules", exact=True).click()
    expect(asked.locator("h1")).to_have_text("Rules")


def test_a_run_that_is_deleted_while_one_looks_is_said_to_be_gone_and_by_whom(scene: Scene) -> None:
    below = f"/ui/run/{CAST[2].id}"
    pages = [scene.open(f"{below}{part}") for part in ("", "/texts")]
    for page in pages:
        is_well(page)
    scene.delete(f"/runs/{CAST[2].id}")
    for page in pages:
        expect(banner(page, "gone")).to_be_visible()
        expect(banner(page, "gone")).to_contain_text("local")
    pages[0].get_by_role("link", name="To the runs").click()
    expect(pages[0].locator("h1")).to_have_text("Runs")
    is_well(pages[0])
    late = scene.open(below)
    expect(late.locator("main")).to_contain_text("deleted")


def test_a_lost_socket_is_made_anew_and_the_page_goes_on(scene: Scene) -> None:
    page = scene.open("/ui/control/silences")
    is_well(page)
    page.evaluate("window.stayed = true")
    scene.way.cut()
    expect(page.locator("#live-word")).to_have_text("Reconnecting")
    scene.way.heal()
    is_well(page)
    scene.server.ask("/silences", {"match": ["rule=truncation"], "lasts_s": 600.0, "why": "after the cut"})
    expect(page.locator("main")).to_contain_text("after the cut")
    assert page.evaluate("window.stayed")


def test_a_half_written_address_says_what_is_wrong_and_leads_on(scene: Scene) -> None:
    page = scene.open("/ui/")
    for tail in HALF:
        page.goto(f"{scene.url}/ui/{tail.format(run=scene.staged.run)}")
        expect(page.locator("main h1, main h2").first).to_be_visible()
        assert "Traceback" not in page.locator("body").inner_text()
    page.goto(f"{scene.url}/ui/run/{scene.staged.run[:5]}")
    expect(page.locator(".failed")).to_contain_text("cut off")
    page.get_by_role("link", name="To the runs").click()
    expect(page.locator("h1")).to_have_text("Runs")


def test_a_run_that_was_not_there_yet_appears_by_itself(scene: Scene) -> None:
    page = scene.open("/ui/run/early-bird")
    expect(page.locator(".failed")).to_contain_text("early-bird")
    told = {"names": ["reward.mean"], "rows": [[1, 1, 1.0, 0.5]]}
    scene.server.ask("/reports", {"run": {"id": "early-bird"}, "attempt": "a", "writer": "w", **told})
    expect(page.locator("h1")).to_have_text("early-bird")
    is_well(page)
