"""A link in a message, followed by a person from a chat of another site, in a real browser."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from rlvitals.contract.view import CommandView
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store import alerts, commands, links
from rlvitals_monitor.store.links import LinkAct, fingerprint
from tests.dashboard.house import House, now_utc

pytestmark = pytest.mark.browser
EVIL = "<img src=x onerror=alert(1)> \u202e@everyone {{7*7}}"


class Chat:
    """A page of another site with links on it, and a form that posts to each by itself."""

    def __init__(self) -> None:
        self.hrefs: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = "".join(f'<a href="{h}">go</a><form method=post action="{h}"></form>' for h in outer.hrefs)
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.end_headers()
                self.wfile.write(b"<title>chat</title>" + body.encode())

            def log_message(self, *_: object) -> None: ...

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://localhost:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def house(sqlite_url: str, tmp_path: Path) -> Iterator[House]:
    with House(Settings(home=tmp_path / "home", database_url=sqlite_url)) as house:
        house.plant("r1", name=EVIL)
        yield house


@pytest.fixture
def chat() -> Iterator[Chat]:
    opened = Chat()
    yield opened
    opened.close()


@pytest.fixture
def proposed(house: House) -> CommandView:
    return house.propose(house.fire("r1", summary=EVIL))


@pytest.fixture
def link(house: House, proposed: CommandView) -> Callable[[LinkAct], str]:
    def make(act: LinkAct) -> str:
        with house.store.begin() as conn:
            alert = alerts.find(conn, "a1")
            assert alert is not None
            subject = proposed if act in (LinkAct.APPROVE, LinkAct.DENY) else alert
            return house.url + links.make(conn, act, subject.id, fingerprint(subject), "team", now_utc())

    return make


@pytest.fixture
def browser(chromium: Any) -> Iterator[Callable[..., Any]]:
    contexts: list[Any] = []

    def opened(url: str, **given: Any) -> Any:
        context = chromium.new_context(**given)
        contexts.append(context)
        page = context.new_page()
        page.on("dialog", lambda _: pytest.fail("a script ran"))
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()


def state_of(house: House, command: CommandView) -> tuple[str, str]:
    with house.store.read() as conn:
        found = commands.find(conn, command.id)
    assert found is not None
    return found.state.value, found.decided_by


def test_who_is_signed_in_comes_from_a_chat_and_approves_with_one_press(
    house: House, chat: Chat, browser: Callable[..., Any], link: Callable[[LinkAct], str], proposed: CommandView
) -> None:
    chat.hrefs = [link(LinkAct.APPROVE)]
    page = browser(house.url + house.login)
    page.goto(chat.url)
    page.get_by_role("link", name="go").click()
    expect(page.get_by_text("You act as local.")).to_be_visible()
    assert state_of(house, proposed) == ("proposed", "")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("heading", name="Approve: done")).to_be_visible()
    assert state_of(house, proposed) == ("pending", "local")
    page.reload()
    expect(page.get_by_text("by local. It works once.")).to_be_visible()


def test_who_is_not_is_led_through_the_login_and_back(
    house: House, chat: Chat, browser: Callable[..., Any], link: Callable[[LinkAct], str], proposed: CommandView
) -> None:
    chat.hrefs = [link(LinkAct.DENY)]
    page = browser(chat.url)
    page.get_by_role("link", name="go").click()
    expect(page.get_by_role("button")).to_have_count(0)
    page.get_by_role("link", name="Sign in").click()
    page.get_by_label("Token").fill(house.app.state.local_token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("You act as local.")).to_be_visible()
    page.get_by_label("Reason").fill("as planned")
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_text("denied: as planned")).to_be_visible()
    assert state_of(house, proposed) == ("denied", "local")


def test_another_site_cannot_press_the_button_for_who_is_signed_in(
    house: House, chat: Chat, browser: Callable[..., Any], link: Callable[[LinkAct], str], proposed: CommandView
) -> None:
    chat.hrefs = [link(LinkAct.APPROVE), link(LinkAct.SILENCE)]
    page = browser(house.url + house.login)
    for place in range(2):
        page.goto(chat.url)
        with page.expect_navigation() as answer:
            page.evaluate(f"document.forms[{place}].submit()")
        assert (answer.value.request.method, answer.value.status) == ("POST", 403)
    assert state_of(house, proposed) == ("proposed", "")
    assert house.get("/silences") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_all_of_it_can_be_read_and_pressed(
    house: House, browser: Callable[..., Any], link: Callable[[LinkAct], str], scheme: str
) -> None:
    page = browser(link(LinkAct.SILENCE), viewport={"width": 390, "height": 844}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.get_by_role("button", name="Silence for 1 h").bounding_box()["height"] >= 44
    expect(page.get_by_text("<img src=x onerror=alert(1)>").first).to_be_visible()
    found = Axe().run(page)
    assert [v["id"] for v in found.response["violations"]] == []
    page.get_by_role("button", name="Silence for 1 h").click()
    expect(page.get_by_text("by a link in team. It works once.")).to_be_visible()
    (silence,) = house.get("/silences")
    assert silence["match"] == ["run=r1", "rule=kl_pull_dominates"]
