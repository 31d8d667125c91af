"""Signing in over HTTP, on both databases: by password, link and token; the pace; how sessions end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rlvitals_monitor.access import uses
from rlvitals_monitor.store import entries, sessions, tokens, users
from rlvitals_monitor.store.tables import entries as entry_rows
from rlvitals_monitor.store.tables import sessions as session_rows
from rlvitals_monitor.store.tables import users as user_rows
from tests.monitor.batches import NOW
from tests.monitor.conftest import BASE_URL
from tests.monitor.planted import plant_run

V1, LOGIN = "/api/v1", "/ui/login"
OURS = {"origin": BASE_URL}
PASSWORD = "four words make one"
Clock = Callable[[datetime], None]


@pytest.fixture
def browser(app: FastAPI, client: TestClient) -> Callable[[], TestClient]:
    """Opens one without cookies."""
    return lambda: TestClient(app, base_url=BASE_URL, raise_server_exceptions=False, follow_redirects=False)


@pytest.fixture
def ann(client: TestClient, browser: Callable[[], TestClient]) -> TestClient:
    """A viewer who has chosen her password by the invitation."""
    page = browser()
    choose(page, invite(client))
    return page


def invite(client: TestClient, name: str = "ann", role: str = "viewer") -> dict[str, Any]:
    made = client.post(f"{V1}/users", json={"name": name, "role": role})
    assert made.status_code == 201, made.text
    return dict(made.json())


def choose(page: TestClient, invitation: dict[str, Any], password: str = PASSWORD) -> int:
    entry = invitation["link"].partition("entry=")[2]
    told = {"entry": entry, "password": password, "again": password}
    return page.post(LOGIN, data=told, headers=OURS).status_code


def enter(page: TestClient, password: str = PASSWORD, name: str = "ann") -> int:
    return page.post(LOGIN, data={"name": name, "password": password}, headers=OURS).status_code


def audited(client: TestClient, what: str) -> list[str]:
    return [line["detail"] for line in client.get(f"{V1}/audit", params={"what": what}).json()["items"]]


def test_who_was_invited_chooses_a_password_once_and_comes_back_with_it(
    client: TestClient, browser: Callable[[], TestClient]
) -> None:
    invitation, page = invite(client), browser()
    for _ in range(2):
        shown = page.get(invitation["link"])
        assert (shown.status_code, "ann" in shown.text) == (200, True)
    assert choose(page, invitation, "too short") == 422
    assert choose(page, invitation) == 303
    me = page.get(f"{V1}/me").json()
    assert (me["kind"], me["name"], me["role"], me["may"]) == ("user", "ann", "viewer", ["read"])
    assert choose(browser(), invitation) == 403
    again = browser()
    assert [enter(again, "four words make two"), enter(again), again.get(f"{V1}/me").status_code] == [
        403,
        303,
        200,
    ]
    assert audited(client, "password chosen") == ["by an invitation of local"]
    assert audited(client, "sign-in refused")[0].startswith("as 'ann' with a password, from ")


def test_a_password_and_a_cookie_are_nowhere_in_the_database(app: FastAPI, ann: TestClient) -> None:
    cookie = ann.cookies["rlvitals_session"]
    with app.state.store.read() as conn:
        kept = str([*conn.execute(user_rows.select()), *conn.execute(session_rows.select())])
    assert PASSWORD not in kept
    assert cookie not in kept


def test_another_invitation_makes_the_first_one_void_and_ends_her_sessions(
    client: TestClient, ann: TestClient, browser: Callable[[], TestClient]
) -> None:
    user = client.get(f"{V1}/users").json()[0]["id"]
    first, second = (client.post(f"{V1}/users/{user}/invite").json() for _ in range(2))
    assert choose(browser(), first) == 403
    assert ann.get(f"{V1}/me").status_code == 200
    assert choose(browser(), second, "quite another one") == 303
    assert ann.get(f"{V1}/me").status_code == 401
    assert enter(browser()) == 403


def test_a_wrong_name_is_answered_as_a_wrong_password_is(
    ann: TestClient, browser: Callable[[], TestClient]
) -> None:
    told = [
        browser().post(LOGIN, data={"name": name, "password": "not this one"}, headers=OURS)
        for name in ("ann", "nobody", "x\x00\ud800".encode("utf-8", "surrogatepass").decode("latin-1"))
    ]
    assert {answer.status_code for answer in told} == {403}
    assert len({answer.text for answer in told}) == 1


def test_guessing_gets_slow_and_the_right_password_is_heard_after_the_wait(
    ann: TestClient, browser: Callable[[], TestClient], set_clock: Clock
) -> None:
    page = browser()
    assert [enter(page, f"guess number {n}") for n in range(6)] == [403] * 5 + [429]
    early = page.post(LOGIN, data={"name": "ANN", "password": PASSWORD}, headers=OURS)
    assert (early.status_code, early.headers["retry-after"]) == (429, "2")
    assert ann.get(f"{V1}/me").status_code == 200
    set_clock(NOW + timedelta(seconds=3))
    assert [enter(page), enter(page, "a wrong one again")] == [303, 403]


def test_a_source_that_fails_with_many_names_is_slowed_and_a_true_token_still_gets_in(
    app: FastAPI, ann: TestClient, browser: Callable[[], TestClient]
) -> None:
    page = browser()
    answers = [enter(page, "guess", f"name{n}") for n in range(21)]
    assert answers == [403] * 20 + [429]
    assert page.post(LOGIN, data={"token": "rlv_wrong"}, headers=OURS).status_code == 429
    assert page.post(LOGIN, data={"token": app.state.local_token}, headers=OURS).status_code == 303


def test_a_sign_in_link_works_once_also_when_two_come_at_once(
    client: TestClient, browser: Callable[[], TestClient], login_path: Callable[[], str]
) -> None:
    path, answers = login_path(), list[int]()
    pages = [browser() for _ in range(4)]
    threads = [threading.Thread(target=lambda p=page: answers.append(p.get(path).status_code)) for page in pages]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [303, 403, 403, 403]


def test_a_browser_that_loads_the_link_beforehand_does_not_use_it_up(
    browser: Callable[[], TestClient], login_path: Callable[[], str]
) -> None:
    path, page = login_path(), browser()
    looked = page.get(path, headers={"sec-purpose": "prefetch;prerender"})
    assert (looked.status_code, "set-cookie" in looked.headers) == (200, False)
    assert page.post(LOGIN, data={"entry": path.partition("entry=")[2]}, headers=OURS).status_code == 303


def test_a_link_is_over_after_its_time_and_with_its_token(
    app: FastAPI, browser: Callable[[], TestClient], login_path: Callable[[], str], set_clock: Clock
) -> None:
    late, revoked = login_path(), login_path()
    set_clock(NOW + timedelta(minutes=6))
    assert browser().get(late).status_code == 403
    set_clock(NOW)
    with app.state.store.begin() as conn:
        tokens.revoke(conn, tokens.list_tokens(conn)[0].id, NOW)
    assert browser().get(revoked).status_code == 403


def test_a_token_in_an_address_is_refused_and_asked_for_in_the_form(
    app: FastAPI, browser: Callable[[], TestClient]
) -> None:
    answer = browser().get(LOGIN, params={"token": app.state.local_token})
    assert (answer.status_code, "set-cookie" in answer.headers) == (400, False)
    assert app.state.local_token not in answer.text


@pytest.mark.parametrize(
    ("after", "known"),
    [(timedelta(hours=23), True), (timedelta(hours=24, seconds=1), False), (timedelta(days=8), False)],
)
def test_a_session_that_nobody_uses_ends(ann: TestClient, set_clock: Clock, after: timedelta, known: bool) -> None:
    set_clock(NOW + after)
    assert ann.get(f"{V1}/me").status_code == (200 if known else 401)


def test_a_session_that_is_used_lasts_until_its_absolute_end(
    app: FastAPI, ann: TestClient, set_clock: Clock
) -> None:
    for day in range(1, 14):
        set_clock(NOW + timedelta(hours=12 * day))
        assert ann.get(f"{V1}/me").status_code == 200, day
        app.state.uses.write(app.state.store)
    set_clock(NOW + timedelta(days=7, seconds=1))
    over = ann.get(f"{V1}/me")
    assert (over.status_code, over.json()["detail"]) == (401, "this session is over: sign in again")


def test_a_session_ends_with_its_token_with_its_user_and_by_signing_out(
    app: FastAPI,
    client: TestClient,
    ann: TestClient,
    browser: Callable[[], TestClient],
    login_path: Callable[[], str],
) -> None:
    user = client.get(f"{V1}/users").json()[0]["id"]
    assert client.patch(f"{V1}/users/{user}", json={"disabled": True}).status_code == 200
    assert ann.get(f"{V1}/me").status_code == 401
    assert enter(browser()) == 403
    assert client.patch(f"{V1}/users/{user}", json={"disabled": False}).status_code == 200
    assert ann.get(f"{V1}/me").status_code == 401
    assert enter(ann) == 303
    cookie = ann.cookies["rlvitals_session"]
    elsewhere = browser()
    elsewhere.cookies.set("rlvitals_session", cookie)
    assert ann.get("/ui/logout", headers={"sec-fetch-site": "cross-site"}).status_code == 303
    assert elsewhere.get(f"{V1}/me").status_code == 200
    ann.get("/ui/logout")
    assert elsewhere.get(f"{V1}/me").status_code == 401
    owner = browser()
    owner.get(login_path())
    with app.state.store.begin() as conn:
        tokens.revoke(conn, tokens.list_tokens(conn)[0].id, NOW)
    assert owner.get(f"{V1}/me").status_code == 401


def test_uses_are_written_apart_from_requests_and_what_is_long_over_is_forgotten(
    app: FastAPI, client: TestClient, ann: TestClient, set_clock: Clock
) -> None:
    store = app.state.store
    set_clock(NOW + timedelta(minutes=5))
    ann.get(f"{V1}/me")
    client.get(f"{V1}/me")
    with store.read() as conn:
        assert {info.last_used_at for info in tokens.list_tokens(conn)} == {None}
    app.state.uses.write(store)
    used = NOW + timedelta(minutes=5)
    with store.begin() as conn:
        assert [info.last_used_at for info in tokens.list_tokens(conn)] == [used]
        assert [user.seen_at for user in users.list_users(conn)] == [used]
        assert [s.seen_at for s in sessions.list_open(conn, used, timedelta(1))] == [used]
        tokens.note_uses(conn, {tokens.list_tokens(conn)[0].id: NOW})
        assert tokens.list_tokens(conn)[0].last_used_at == used
    uses.sweep(store, NOW + timedelta(days=30))
    with store.read() as conn:
        assert conn.execute(session_rows.select()).all() == conn.execute(entry_rows.select()).all() == []


def test_one_keeps_at_most_so_many_sessions_and_the_oldest_goes(app: FastAPI, ann: TestClient) -> None:
    with app.state.store.begin() as conn:
        user = users.list_users(conn)[0]
        for minute in range(1, sessions.EACH_MAX + 1):
            at = NOW + timedelta(minutes=minute)
            sessions.start(conn, sessions.AccessKind.USER, user.id, "x", at, at + timedelta(days=1))
        assert len(sessions.list_open(conn, NOW, timedelta(days=1))) == sessions.EACH_MAX
    assert ann.get(f"{V1}/me").status_code == 401


def test_an_entry_is_used_by_one_of_two(app: FastAPI, client: TestClient) -> None:
    with app.state.store.begin() as conn:
        secret = entries.make(conn, entries.Purpose.TOKEN, "t", "x", NOW, timedelta(1))
        assert [entries.use(conn, secret, NOW), entries.use(conn, secret, NOW)] == [True, False]


def test_who_signs_in_as_another_leaves_no_session_behind(
    client: TestClient, ann: TestClient, browser: Callable[[], TestClient]
) -> None:
    """A socket that is open by the earlier cookie would go on as who one was."""
    before = ann.cookies["rlvitals_session"]
    choose(ann, invite(client, "ben"))
    assert ann.get(f"{V1}/me").json()["name"] == "ben"
    other = browser()
    other.cookies.set("rlvitals_session", before)
    assert other.get(f"{V1}/me").status_code == 401
    assert "by another sign-in" in audited(client, "session ended")[0]


def test_another_shared_link_ends_the_session_by_the_first_and_signing_out_both(
    client: TestClient, app: FastAPI, browser: Callable[[], TestClient]
) -> None:
    with app.state.store.begin() as conn:
        plant_run(conn, "r1")
        plant_run(conn, "r2")
    first, second = (client.post(f"{V1}/runs/{run}/shares", json={}).json()["link"] for run in ("r1", "r2"))
    page = browser()
    page.get(first)
    held = page.cookies["rlvitals_share"]
    page.get(second)
    assert page.get(f"{V1}/me").json()["run"] == "r2"
    other = browser()
    other.cookies.set("rlvitals_share", held)
    assert other.get(f"{V1}/me").status_code == 401
    choose(page, invite(client))
    held = page.cookies["rlvitals_share"]
    page.get("/ui/logout")
    other.cookies.set("rlvitals_share", held)
    assert other.get(f"{V1}/me").status_code == 401


def test_a_long_password_of_any_script_may_be_chosen(
    client: TestClient, browser: Callable[[], TestClient]
) -> None:
    assert choose(browser(), invite(client), "四个随机词" * 40) == 303
