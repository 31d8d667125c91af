"""Links from messages, as a chat's preview, a stranger and a person who is signed in follow them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rlvitals.contract.command import CommandKind
from rlvitals.contract.view import CommandView
from rlvitals_monitor.api.deps import utc_now
from rlvitals_monitor.auth import COOKIE
from rlvitals_monitor.control import mailbox
from rlvitals_monitor.control.policy import Policies
from rlvitals_monitor.store import alerts, commands, links, silences
from rlvitals_monitor.store.links import LASTS, LinkAct, fingerprint
from rlvitals_monitor.store.tokens import make_token, register
from tests.monitor.conftest import BASE_URL
from tests.monitor.planted import NOW, a_transition, an_alert, later, plant

OURS = {"origin": BASE_URL, "sec-fetch-site": "same-origin"}
V1 = "/api/v1"


@pytest.fixture
def proposed(app: FastAPI, stranger: TestClient) -> CommandView:
    """A proposed command of run r1, and the firing alert that it comes from."""
    app.dependency_overrides[utc_now] = lambda: later(10)
    transition = a_transition()
    plant(app.state.store, transition)
    with app.state.store.begin() as conn:
        made = mailbox.propose(conn, transition, Policies(), NOW)
    assert isinstance(made, CommandView)
    return made


@pytest.fixture
def link(app: FastAPI, proposed: CommandView) -> Callable[[LinkAct], str]:
    """Makes a link to the planted command or alert; answers its path."""

    def make(act: LinkAct) -> str:
        subject = proposed if act in (LinkAct.APPROVE, LinkAct.DENY) else an_alert()
        with app.state.store.begin() as conn:
            return links.make(conn, act, subject.id, fingerprint(subject), "team", NOW)

    return make


@pytest.fixture
def person(app: FastAPI, stranger: TestClient) -> Callable[..., TestClient]:
    """Somebody's browser, signed in."""

    def sign_in(name: str = "ann", *scopes: str) -> TestClient:
        token = make_token()
        with app.state.store.begin() as conn:
            register(conn, token, name, scopes or ("operate",), NOW)
        browser = TestClient(app, base_url=BASE_URL, raise_server_exceptions=False, follow_redirects=False)
        answer = browser.post("/ui/login", data={"token": token}, headers=OURS)
        assert answer.status_code == 303
        return browser

    return sign_in


def state_of(app: FastAPI, command: CommandView) -> CommandView:
    with app.state.store.read() as conn:
        found = commands.find(conn, command.id)
    assert found is not None
    return found


def test_looking_changes_nothing_however_often_and_by_whomever(
    app: FastAPI,
    stranger: TestClient,
    link: Callable[[LinkAct], str],
    person: Callable[..., TestClient],
    proposed: CommandView,
) -> None:
    ann, paths = person(), [link(act) for act in LinkAct]
    for path in paths:
        for visitor in (stranger, ann):
            for method in ("GET", "HEAD", "GET"):
                answer = visitor.request(method, path, headers={"user-agent": "Slackbot-LinkExpanding 1.0"})
                assert answer.status_code == 200
    assert state_of(app, proposed) == proposed
    with app.state.store.read() as conn:
        found = [links.find(conn, path.removeprefix(links.PATH)) for path in paths]
        assert [known is not None and known.used_at for known in found] == [None] * len(paths)
        assert silences.active(conn, later(10)) == ()
        assert alerts.find(conn, "a1").acknowledged_by == ""  # type: ignore[union-attr]


def test_a_page_is_kept_by_nobody_framed_by_nobody_and_runs_no_script(
    stranger: TestClient, link: Callable[[LinkAct], str]
) -> None:
    headers = stranger.get(link(LinkAct.APPROVE)).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert (headers["cache-control"], headers["referrer-policy"]) == ("no-store", "same-origin")
    assert headers["x-robots-tag"] == "noindex, nofollow"
    assert headers["x-frame-options"] == "DENY"


def test_who_is_signed_in_approves_by_name_once(
    app: FastAPI, person: Callable[..., TestClient], link: Callable[[LinkAct], str], proposed: CommandView
) -> None:
    path, ann = link(LinkAct.APPROVE), person("ann")
    done = ann.post(path, headers=OURS)
    assert (done.status_code, done.headers["location"]) == (303, path)
    approved = state_of(app, proposed)
    assert (approved.state.value, approved.decided_by) == ("pending", "ann")
    assert "by ann. It works once." in ann.get(path).text
    again = person("bob").post(path, headers=OURS)
    assert again.status_code == 409
    assert state_of(app, proposed) == approved


def test_a_denial_takes_its_reason_along(
    app: FastAPI, person: Callable[..., TestClient], link: Callable[[LinkAct], str], proposed: CommandView
) -> None:
    assert person().post(link(LinkAct.DENY), data={"reason": "<as planned>"}, headers=OURS).status_code == 303
    denied = state_of(app, proposed)
    assert (denied.state.value, denied.reason) == ("denied", "<as planned>")


def test_without_a_sign_in_a_decision_leads_through_the_login_and_back(
    app: FastAPI, stranger: TestClient, link: Callable[[LinkAct], str], proposed: CommandView
) -> None:
    path = link(LinkAct.APPROVE)
    led = stranger.post(path, headers=OURS)
    assert led.status_code == stranger.post(link(LinkAct.DENY), headers=OURS).status_code == 303
    assert state_of(app, proposed) == proposed
    back = stranger.post(led.headers["location"], data={"token": app.state.local_token}, headers=OURS)
    assert (back.status_code, back.headers["location"]) == (303, path)
    assert COOKIE in back.cookies
    assert "You act as local." in stranger.get(path).text


def test_the_login_leads_nowhere_else(app: FastAPI, stranger: TestClient, login_path: Callable[[], str]) -> None:
    token = app.state.local_token
    for onward in ("https://evil.example/", "//evil.example", "/api/v1/runs", "/ui/act/../x", "\\", "/ui/act/"):
        for answer in (
            stranger.get(f"{login_path()}&{urlencode({'next': onward})}"),
            stranger.post("/ui/login", params={"next": onward}, data={"token": token}, headers=OURS),
        ):
            assert (answer.status_code, answer.headers["location"]) == (303, "/ui/"), onward


def test_an_alert_may_be_looked_after_and_silenced_without_a_name(
    app: FastAPI, stranger: TestClient, client: TestClient, link: Callable[[LinkAct], str]
) -> None:
    for act in (LinkAct.ACKNOWLEDGE, LinkAct.SILENCE):
        assert stranger.post(link(act), headers=OURS).status_code == 303
    with app.state.store.read() as conn:
        (silence,) = silences.active(conn, later(10))
        assert alerts.find(conn, "a1").acknowledged_by == "a link in team"  # type: ignore[union-attr]
    assert (silence.ends_at, silence.who) == (later(3610), "a link in team")
    lines = client.get(f"{V1}/audit").json()["items"]
    assert {(line["what"], line["who"]) for line in lines} >= {
        ("acknowledged", "a link in team"),
        ("silence asked for", "a link in team"),
    }


def test_an_approval_without_a_name_counts_as_one_only_where_that_is_allowed(
    app: FastAPI, stranger: TestClient, link: Callable[[LinkAct], str], proposed: CommandView
) -> None:
    app.state.settings = app.state.settings.model_copy(update={"link_voices": (LinkAct.APPROVE,)})
    path = link(LinkAct.APPROVE)
    assert "one voice without a name" in stranger.get(path).text
    assert stranger.post(path, headers=OURS).status_code == 303
    approved = state_of(app, proposed)
    assert (approved.state.value, approved.decided_by) == ("pending", "a link in team")


def test_where_two_must_approve_two_links_of_two_people_do_and_no_voice_without_a_name(
    app: FastAPI, stranger: TestClient, person: Callable[..., TestClient]
) -> None:
    app.dependency_overrides[utc_now] = lambda: later(10)
    app.state.settings = app.state.settings.model_copy(update={"link_voices": tuple(LinkAct)})
    plant(app.state.store, a_transition())
    two = replace(app.state.limits, two_person_kinds=frozenset(CommandKind))
    with app.state.store.begin() as conn:
        made = mailbox.propose(conn, a_transition(), Policies(), NOW, two)
        assert isinstance(made, CommandView)
        paths = [links.make(conn, LinkAct.APPROVE, made.id, fingerprint(made), "team", NOW) for _ in range(4)]
    ann, bob = person("ann"), person("bob")
    led = stranger.post(paths[0], headers=OURS)
    assert led.headers["location"].startswith("/ui/login?next=")
    assert ann.post(paths[0], headers=OURS).status_code == 303
    assert "1 of 2 people" in ann.get(paths[0]).text
    assert state_of(app, made).state.value == "proposed"
    again = ann.post(paths[1], headers=OURS)
    assert (again.status_code, "it needs another person" in again.text) == (409, True)
    assert bob.post(paths[1], headers=OURS).status_code == 303
    approved = state_of(app, made)
    assert (approved.state.value, approved.decided_by) == ("pending", "ann, bob")


def test_who_may_only_read_must_sign_in_as_somebody_else(
    app: FastAPI, person: Callable[..., TestClient], link: Callable[[LinkAct], str], proposed: CommandView
) -> None:
    path, reader = link(LinkAct.APPROVE), person("rob", "read")
    assert "rob may not operate runs" in reader.get(path).text
    assert reader.post(path, headers=OURS).status_code == 303
    assert state_of(app, proposed) == proposed


def test_another_site_s_page_cannot_press_the_button(
    app: FastAPI,
    stranger: TestClient,
    person: Callable[..., TestClient],
    link: Callable[[LinkAct], str],
    proposed: CommandView,
) -> None:
    path, ann = link(LinkAct.APPROVE), person()
    for headers in (
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site", "origin": BASE_URL},
        {},
    ):
        assert ann.post(path, headers=headers).status_code == 403, headers
    assert stranger.post(link(LinkAct.SILENCE), headers={"origin": "https://evil.example"}).status_code == 403
    assert state_of(app, proposed) == proposed


def test_a_command_that_was_changed_since_is_refused(
    app: FastAPI, person: Callable[..., TestClient], proposed: CommandView
) -> None:
    with app.state.store.begin() as conn:
        path = links.make(conn, LinkAct.APPROVE, proposed.id, "0" * 64, "team", NOW)
    ann = person()
    assert ann.get(path).status_code == 410
    assert ann.post(path, headers=OURS).status_code == 409
    assert state_of(app, proposed) == proposed


def test_an_expired_an_unknown_and_a_cut_off_link_do_nothing_and_say_so(
    app: FastAPI, person: Callable[..., TestClient], link: Callable[[LinkAct], str], proposed: CommandView
) -> None:
    path, ann = link(LinkAct.SILENCE), person()
    for unknown in (path[:-1], path + "x", links.PATH + "x" * 43, links.PATH + "%00" * 43, links.PATH + "é" * 43):
        assert ann.get(unknown).status_code == 404
        assert ann.post(unknown, headers=OURS).status_code == 404
    app.dependency_overrides[utc_now] = lambda: NOW + LASTS
    assert ann.get(path).status_code == 410
    assert ann.post(path, headers=OURS).status_code == 409
    assert ann.post(path, headers=OURS, content=b"x" * 9000).status_code == 413


def test_what_could_not_be_done_leaves_the_link_as_it_was(
    app: FastAPI, person: Callable[..., TestClient], link: Callable[[LinkAct], str], proposed: CommandView
) -> None:
    path = link(LinkAct.APPROVE)
    with app.state.store.begin() as conn:
        mailbox.deny(conn, proposed.id, "bob", "", later(10))
    assert "denied by bob" in person().get(path).text
    assert person("eve").post(path, headers=OURS).status_code == 409
    with app.state.store.read() as conn:
        assert links.find(conn, path.removeprefix(links.PATH)).used_at is None  # type: ignore[union-attr]


def test_of_many_who_press_at_once_one_does_it(
    app: FastAPI, person: Callable[..., TestClient], link: Callable[[LinkAct], str], proposed: CommandView
) -> None:
    path, found = link(LinkAct.APPROVE), []
    people = [person(f"p{n}") for n in range(4)]
    start = threading.Barrier(len(people))

    def press(browser: TestClient) -> None:
        start.wait()
        found.append(browser.post(path, headers=OURS).status_code)

    threads = [threading.Thread(target=press, args=[browser]) for browser in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [303, 409, 409, 409]


def test_a_browser_that_comes_from_a_chat_asks_once_more_for_its_cookie(
    stranger: TestClient, link: Callable[[LinkAct], str]
) -> None:
    path, foreign = link(LinkAct.APPROVE), {"sec-fetch-site": "cross-site"}
    assert 'http-equiv="refresh"' in stranger.get(path, headers=foreign).text
    for url, headers in ((f"{path}?own=1", foreign), (path, {"sec-fetch-site": "same-origin"}), (path, {})):
        assert 'http-equiv="refresh"' not in stranger.get(url, headers=headers).text


def test_the_secret_of_a_link_stands_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    import logging

    from rlvitals_monitor.logs import HideTokens

    record = logging.LogRecord("x", logging.INFO, "", 0, "%s %s", ("/ui/act/secret-_1?own=1", 200), None)
    assert HideTokens().filter(record)
    assert record.getMessage() == "/ui/act/…?own=1 200"
