"""Tokens, people, sessions and shared links over REST, on both databases; and whether the wire is safe."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rlvitals_monitor.access.share_scope import VIEW
from rlvitals_monitor.access.wire import unsafe_wire
from rlvitals_monitor.settings import Settings
from tests.monitor.batches import NOW
from tests.monitor.conftest import BASE_URL
from tests.monitor.planted import plant_run

V1 = "/api/v1"
OURS = {"origin": BASE_URL}
Clock = Callable[[datetime], None]


@pytest.fixture
def browser(app: FastAPI, client: TestClient) -> Callable[[], TestClient]:
    return lambda: TestClient(app, base_url=BASE_URL, raise_server_exceptions=False, follow_redirects=False)


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


def make(client: TestClient, **ask: Any) -> dict[str, Any]:
    answer = client.post(f"{V1}/tokens", json={"name": "trainer", "scopes": ["read"]} | ask)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def test_a_token_is_made_expires_is_listed_and_revoked(
    client: TestClient, stranger: TestClient, set_clock: Clock
) -> None:
    made = make(client, days=2.0)
    token, secret = made["token"], made["secret"]
    assert (token["name"], token["scopes"], token["created_by"]) == ("trainer", ["read"], "local")
    assert stranger.get(f"{V1}/me", headers=bearer(secret)).json()["may"] == ["read"]
    assert secret not in client.get(f"{V1}/tokens").text
    set_clock(NOW + timedelta(days=2))
    assert stranger.get(f"{V1}/me", headers=bearer(secret)).status_code == 401
    assert {t["name"]: t["valid"] for t in client.get(f"{V1}/tokens").json()} == {"local": True, "trainer": False}
    assert client.delete(f"{V1}/tokens/{token['id']}").status_code == 409
    set_clock(NOW)
    assert client.delete(f"{V1}/tokens/{token['id']}").status_code == 204
    assert stranger.get(f"{V1}/me", headers=bearer(secret)).status_code == 401
    assert client.delete(f"{V1}/tokens/none").status_code == 404
    lines = {line["what"]: line for line in client.get(f"{V1}/audit").json()["items"]}
    assert secret not in json.dumps(lines)
    assert {"token created", "token revoked"} <= lines.keys()


def test_a_rotated_token_leaves_its_clients_a_grace(
    client: TestClient, stranger: TestClient, set_clock: Clock
) -> None:
    old = make(client, days=10.0)
    set_clock(NOW + timedelta(days=4))
    new = client.post(f"{V1}/tokens/{old['token']['id']}/rotate", json={"grace_s": 60.0}).json()
    assert new["token"]["scopes"] == ["read"]
    assert new["token"]["expires_at"].startswith(f"{NOW + timedelta(days=14):%Y-%m-%dT%H:%M}")
    for secret in (old["secret"], new["secret"]):
        assert stranger.get(f"{V1}/me", headers=bearer(secret)).status_code == 200
    set_clock(NOW + timedelta(days=4, seconds=61))
    assert stranger.get(f"{V1}/me", headers=bearer(old["secret"])).status_code == 401
    assert stranger.get(f"{V1}/me", headers=bearer(new["secret"])).status_code == 200
    assert client.post(f"{V1}/tokens/{old['token']['id']}/rotate").status_code == 409


def test_the_owners_file_follows_when_its_token_is_rotated(
    app: FastAPI, client: TestClient, stranger: TestClient, settings: Settings
) -> None:
    own = client.get(f"{V1}/tokens").json()[0]["id"]
    secret = client.post(f"{V1}/tokens/{own}/rotate", json={"grace_s": 0.0}).json()["secret"]
    assert json.loads((settings.home_folder / "token.json").read_text())["token"] == secret
    assert app.state.local_token == secret
    assert client.get(f"{V1}/me").status_code == 401
    assert stranger.get(f"{V1}/me", headers=bearer(secret)).status_code == 200


@pytest.mark.parametrize(
    "ask",
    [
        {"scopes": []},
        {"scopes": ["root"]},
        {"scopes": ["ingest:" + "x" * 200]},
        {"name": ""},
        {"name": "  "},
        {"days": 0},
        {"days": -1.0},
        {"days": 1e9},
        {"days": "NaN"},
        {"days": "Infinity"},
    ],
)
def test_a_token_that_cannot_be_is_refused(client: TestClient, ask: dict[str, Any]) -> None:
    answer = client.post(f"{V1}/tokens", json={"name": "x", "scopes": ["read"]} | ask)
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")


@pytest.mark.parametrize(
    "name", [" ", "service", "Policy ", "stranger", "ann\nsigned in", "\u202enna", "a\u200bnn"]
)
def test_no_token_is_called_so_that_the_audit_would_say_another(client: TestClient, name: str) -> None:
    answer = client.post(f"{V1}/tokens", json={"name": name, "scopes": ["read"]})
    assert (answer.status_code, answer.json()["field"]) == (422, "name")


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("\u0430nn", 422),  # its first letter is Cyrillic
        ("an\u03bd", 422),  # its last letter is Greek
        *(("ann  lee", 422), ("Ann", 409), ("\uff41nn", 409), ("an\u200bn", 422), ("ann\u00a0lee", 201)),
        *(("Анна", 201), ("安娜 Anna", 201), ("Änne <b>", 201)),
    ],
)
def test_nobody_is_called_so_that_they_could_be_taken_for_another(
    client: TestClient, name: str, status: int
) -> None:
    client.post(f"{V1}/users", json={"name": "ann", "role": "viewer"})
    assert client.post(f"{V1}/users", json={"name": name, "role": "viewer"}).status_code == status


def test_bare_words_for_numbers_are_refused_too(client: TestClient) -> None:
    for word in ("NaN", "Infinity", "-Infinity"):
        body = f'{{"name": "x", "scopes": ["read"], "days": {word}}}'
        answer = client.post(f"{V1}/tokens", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 422, word


def test_people_are_added_once_changed_and_removed(client: TestClient) -> None:
    user = client.post(f"{V1}/users", json={"name": "Ann", "role": "viewer"}).json()["user"]
    assert (user["invited"], user["role"]) == (True, "viewer")
    for taken in ("Ann", "ann", "Ａnn", "local", "Service", "a\x00b", "a\u202eb"):
        answer = client.post(f"{V1}/users", json={"name": taken, "role": "viewer"})
        assert answer.status_code in (409, 422), taken
    path = f"{V1}/users/{user['id']}"
    assert client.patch(path, json={"role": "admin"}).json()["role"] == "admin"
    assert client.patch(path, json={"disabled": True}).json()["disabled_at"] is not None
    assert client.post(f"{path}/invite").status_code == 409
    assert client.delete(path).status_code == 204
    assert client.delete(path).status_code == client.patch(path, json={}).status_code == 404
    said = [line["what"] for line in client.get(f"{V1}/audit").json()["items"]][::-1]
    wanted = ["user added", "user's role changed", "user disabled", "user removed"]
    assert [what for what in said if what.startswith("user")] == wanted


def test_an_admin_does_not_take_away_their_own_rights(
    client: TestClient, browser: Callable[[], TestClient]
) -> None:
    made = client.post(f"{V1}/users", json={"name": "ann", "role": "admin"}).json()
    page, entry = browser(), made["link"].partition("entry=")[2]
    told = {"entry": entry, "password": "four words make one", "again": "four words make one"}
    assert page.post("/ui/login", data=told, headers=OURS).status_code == 303
    path = f"{V1}/users/{made['user']['id']}"
    assert page.patch(path, json={"role": "viewer"}, headers=OURS).status_code == 409
    assert page.delete(path, headers=OURS).status_code == 409


def test_one_ends_ones_own_sessions_and_an_admin_everybodys(
    client: TestClient, browser: Callable[[], TestClient], login_path: Callable[[], str]
) -> None:
    reader = make(client)["secret"]
    mine, other = browser(), browser()
    for page in (mine, other):
        page.post("/ui/login", data={"token": reader}, headers=OURS)
    owner = browser()
    owner.get(login_path())
    seen = mine.get(f"{V1}/sessions").json()
    assert [(s["name"], s["own"], s["current"]) for s in seen].count(("trainer", True, True)) == 1
    assert len(seen) == 2
    assert mine.get(f"{V1}/sessions?everybody=true").status_code == 403
    assert len(owner.get(f"{V1}/sessions?everybody=true").json()) == 3
    owners = next(s["id"] for s in owner.get(f"{V1}/sessions").json())
    assert mine.delete(f"{V1}/sessions/{owners}", headers=OURS).status_code == 404
    assert mine.delete(f"{V1}/sessions", headers=OURS).json() == {"ended": 1}
    assert (mine.get(f"{V1}/me").status_code, other.get(f"{V1}/me").status_code) == (200, 401)
    (left,) = mine.get(f"{V1}/sessions").json()
    assert owner.delete(f"{V1}/sessions/{left['id']}", headers=OURS).status_code == 204
    assert mine.get(f"{V1}/me").status_code == 401
    assert owner.delete(f"{V1}/sessions?everybody=true", headers=OURS).status_code == 200
    assert owner.get(f"{V1}/me").status_code == 200


def test_a_shared_link_shows_its_view_until_it_is_over(
    app: FastAPI, client: TestClient, browser: Callable[[], TestClient], set_clock: Clock
) -> None:
    with app.state.store.begin() as conn:
        plant_run(conn, "r1")
    asked = {"view": "/texts?step=5", "hours": 2.0}
    made, revoked = (client.post(f"{V1}/runs/r1/shares", json=asked).json() for _ in range(2))
    guest, late = browser(), browser()
    led = guest.get(made["link"], headers={"sec-fetch-site": "cross-site"})
    assert (led.status_code, led.headers["location"]) == (303, "/ui/run/r1/texts?step=5")
    assert "samesite=lax" in led.headers["set-cookie"].lower()
    assert "set-cookie" not in guest.get(made["link"]).headers
    me = guest.get(f"{V1}/me").json()
    assert (me["kind"], me["run"], me["view"], me["may"]) == ("share", "r1", "/texts?step=5", [])
    assert guest.get(f"{V1}/runs/r1").status_code == 200
    assert guest.get(f"{V1}/runs/r2").status_code == 403
    app.state.uses.write(app.state.store)
    listed = client.get(f"{V1}/runs/r1/shares").json()
    assert [one["open"] for one in listed] == [True, True]
    assert {one["last_used_at"] is not None for one in listed} == {True, False}
    late.get(revoked["link"])
    assert client.delete(f"{V1}/shares/{revoked['share']['id']}").status_code == 204
    assert client.delete(f"{V1}/shares/{revoked['share']['id']}").status_code == 409
    assert late.get(f"{V1}/runs/r1").status_code == 401
    assert "taken back" in late.get(revoked["link"]).text
    set_clock(NOW + timedelta(hours=2))
    over = guest.get(f"{V1}/runs/r1")
    assert (over.status_code, "this shared link is over" in over.json()["detail"]) == (401, True)
    gone = browser().get(made["link"])
    assert (gone.status_code, "has expired" in gone.text) == (410, True)
    assert browser().get(made["link"][:-1]).status_code == 404
    assert made["link"].rpartition("/")[2] not in client.get(f"{V1}/audit").text


def test_who_is_signed_in_stays_so_when_they_follow_a_shared_link(
    app: FastAPI, client: TestClient, browser: Callable[[], TestClient], login_path: Callable[[], str]
) -> None:
    with app.state.store.begin() as conn:
        plant_run(conn, "r1")
    page = browser()
    page.get(login_path())
    page.get(client.post(f"{V1}/runs/r1/shares", json={}).json()["link"])
    assert page.get(f"{V1}/me").json()["kind"] == "token"


@pytest.mark.parametrize(
    "ask",
    [
        *({"hours": hours} for hours in (0, -1.0, 1e6, "NaN", "Infinity", None)),
        *({"view": view} for view in ("//evil.example", "/../x", "https://x", "?a b", "/texts#x", "\x00")),
        {"view": "?" + "x" * 3_000},
    ],
)
def test_a_share_that_cannot_be_is_refused(app: FastAPI, client: TestClient, ask: dict[str, Any]) -> None:
    with app.state.store.begin() as conn:
        plant_run(conn, "r1")
    assert client.post(f"{V1}/runs/r1/shares", json=ask).status_code == 422
    assert client.post(f"{V1}/runs/none/shares", json={}).status_code == 404


@pytest.mark.parametrize("view", ["", "/texts", "?metric=kl.k3&from=5", "/texts?step=5&q=%E5%AF%86"])
def test_what_stands_behind_a_run_in_an_address_is_a_view(view: str) -> None:
    assert VIEW.fullmatch(view)


@pytest.mark.parametrize(
    ("scheme", "client", "unsafe"),
    [
        ("http", "127.0.0.1", False),
        ("http", "::1", False),
        ("https", "192.0.2.1", False),
        ("http", "192.0.2.1", True),
        ("http", "testclient", True),
        ("http", "", True),
    ],
)
def test_the_wire_is_safe_on_this_machine_and_under_tls(scheme: str, client: str, unsafe: bool) -> None:
    assert unsafe_wire(scheme, client) is unsafe


def test_over_a_network_nobody_steers_or_administers_without_tls_unless_that_is_chosen(
    app: FastAPI, client: TestClient, settings: Settings
) -> None:
    app.state.settings = settings.model_copy(update={"host": "0.0.0.0"})
    refused = client.post(f"{V1}/tokens", json={"name": "x", "scopes": ["read"]})
    assert (refused.status_code, "needs TLS" in refused.json()["detail"]) == (403, True)
    assert client.get(f"{V1}/tokens").status_code == 200
    secure = TestClient(app, base_url="https://127.0.0.1:8642", headers=dict(client.headers))
    assert secure.post(f"{V1}/tokens", json={"name": "x", "scopes": ["read"]}).status_code == 201
    app.state.settings = app.state.settings.model_copy(update={"control_without_tls": True})
    assert client.post(f"{V1}/tokens", json={"name": "x", "scopes": ["read"]}).status_code == 201


def test_prometheus_needs_a_token_unless_it_is_set_that_it_does_not(
    app: FastAPI, stranger: TestClient, settings: Settings
) -> None:
    assert stranger.get("/metrics").status_code == 401
    app.state.settings = settings.model_copy(update={"metrics_without_token": True})
    assert stranger.get("/metrics").status_code == 200
