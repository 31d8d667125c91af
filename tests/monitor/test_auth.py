from __future__ import annotations

import json
import logging
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect

from rlvitals_monitor import auth
from rlvitals_monitor.api.deps import utc_now
from rlvitals_monitor.app import create_app
from rlvitals_monitor.auth import Principal, check_scopes, ensure_local_token
from rlvitals_monitor.browser_guard import host_name
from rlvitals_monitor.logs import HideTokens
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store import tokens
from rlvitals_monitor.store.engine import Store
from tests.monitor.batches import NOW, NOW_S
from tests.monitor.conftest import BASE_URL

REPORT = {"run": {"id": "r1"}, "attempt": "a1", "names": ["m"], "rows": [[1, 1, NOW_S, 0.5]]}
SOCKET = "ws://127.0.0.1:8642/ui/socket"
TokenFor = Callable[..., dict[str, str]]


@pytest.fixture
def sign_in(login_path: Callable[[], str]) -> Callable[[TestClient], None]:
    def enter(browser: TestClient) -> None:
        assert browser.get(login_path()).status_code == 303

    return enter


@pytest.mark.parametrize(
    ("scopes", "allowed", "denied"),
    [
        ({"admin"}, {"read", "ingest", "operate", "admin"}, set()),
        ({"operate"}, {"read", "operate"}, {"ingest", "admin"}),
        ({"read"}, {"read"}, {"ingest", "operate", "admin"}),
        ({"ingest"}, {"ingest"}, {"read", "operate", "admin"}),
        ({"ingest:p", "read"}, {"ingest", "read"}, {"operate", "admin"}),
        ({"unheard-of"}, set(), {"read", "ingest", "operate", "admin"}),
    ],
)
def test_a_scope_grants_just_what_it_implies(scopes: set[str], allowed: set[str], denied: set[str]) -> None:
    who = Principal(name="x", scopes=frozenset(scopes))
    assert {scope for scope in allowed | denied if who.may(scope)} == allowed


def test_an_ingest_scope_of_a_project_is_for_that_project() -> None:
    who = Principal(name="x", scopes=frozenset({"ingest:p"}))
    assert (who.may_ingest("p"), who.may_ingest("q"), who.may_ingest("")) == (True, False, False)


@pytest.mark.parametrize("scopes", [[], ["root"], ["ingest:"], ["ingest:a b"], ["read", "write"]])
def test_a_scope_that_does_not_exist_is_refused(scopes: list[str]) -> None:
    with pytest.raises(ValueError, match=r"expected one of|at least one"):
        check_scopes(scopes)


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer rlv_wrong"}, {"authorization": "Basic eA=="}])
def test_without_a_valid_token_nothing_is_answered(stranger: TestClient, headers: dict[str, str]) -> None:
    for answer in (
        stranger.get("/api/v1/runs", headers=headers),
        stranger.post("/api/v1/reports", json=REPORT, headers=headers),
    ):
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert answer.headers["content-type"] == "application/problem+json"


def test_a_token_without_the_scope_is_forbidden_by_name(stranger: TestClient, token_for: TokenFor) -> None:
    answer = stranger.post("/api/v1/reports", json=REPORT, headers=token_for("read", name="viewer"))
    assert (answer.status_code, answer.json()["detail"]) == (403, "'viewer' lacks the scope 'ingest'")
    assert stranger.get("/api/v1/runs", headers=token_for("ingest")).status_code == 403


def test_a_revoked_token_is_a_strangers(stranger: TestClient, app: FastAPI, token_for: TokenFor) -> None:
    header = token_for("read", name="leaver")
    assert stranger.get("/api/v1/runs", headers=header).status_code == 200
    with app.state.store.begin() as connection:
        (info,) = [t for t in tokens.list_tokens(connection) if t.name == "leaver"]
        assert tokens.revoke(connection, info.id, NOW)
        assert not tokens.revoke(connection, info.id, NOW)
    assert stranger.get("/api/v1/runs", headers=header).status_code == 401


def test_tokens_are_stored_as_digests_only(app: FastAPI, stranger: TestClient) -> None:
    with app.state.store.read() as connection:
        rows = connection.execute(tokens.tokens.select()).all()
    assert rows
    assert all(app.state.local_token not in str(tuple(row)) for row in rows)


def test_the_owner_finds_the_token_in_a_file_that_only_they_can_read(
    app: FastAPI, stranger: TestClient, settings: Settings
) -> None:
    path = settings.home_folder / "token.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text()) == {"url": BASE_URL, "token": app.state.local_token}


def test_the_local_token_outlives_a_restart_and_serves_a_second_store_of_its_owner(
    store: Store, tmp_path: Path
) -> None:
    settings = Settings(home=tmp_path / "home")
    first = ensure_local_token(store, settings, NOW)
    assert ensure_local_token(store, settings, NOW) == first
    other = Store(f"sqlite:///{tmp_path / 'other.db'}")
    other.migrate()
    assert ensure_local_token(other, settings, NOW) == first
    with other.read() as connection:
        assert auth.principal_by_token(connection, first, NOW) is not None
    other.close()


def test_a_revoked_local_token_is_replaced(store: Store, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    first = ensure_local_token(store, settings, NOW)
    with store.begin() as connection:
        tokens.revoke(connection, tokens.list_tokens(connection)[0].id, NOW)
    second = ensure_local_token(store, settings, NOW)
    assert second != first
    with store.read() as connection:
        assert auth.principal_by_token(connection, first, NOW) is None
        assert auth.principal_by_token(connection, second, NOW) is not None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"token": 5}', b'{"token": "not-ours"}', b"\xff"])
def test_a_broken_token_file_is_replaced(store: Store, tmp_path: Path, content: bytes) -> None:
    settings = Settings(home=tmp_path)
    (tmp_path / "token.json").write_bytes(content)
    assert ensure_local_token(store, settings, NOW).startswith(tokens.PREFIX)


def test_the_sign_in_link_gives_a_session_and_leaves_the_address_bar(
    stranger: TestClient, app: FastAPI, login_path: Callable[[], str]
) -> None:
    answer = stranger.get(login_path())
    assert (answer.status_code, answer.headers["location"]) == (303, "/ui/")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert app.state.local_token not in cookie
    assert answer.headers["referrer-policy"] == "same-origin"
    assert stranger.get("/api/v1/runs").status_code == 200


def test_a_token_can_be_pasted_and_a_wrong_one_gives_no_session(stranger: TestClient, app: FastAPI) -> None:
    page = stranger.get("/ui/login")
    assert (page.status_code, "<form" in page.text) == (200, True)
    for wrong in ("<b>x", "", "x" * 3_000):
        answer = stranger.post("/ui/login", data={"token": wrong})
        assert answer.status_code in (403, 413)
        assert answer.headers["content-type"].startswith("text/html") or answer.status_code == 413
        assert "set-cookie" not in answer.headers
        assert "<b>x" not in answer.text
    assert stranger.post("/ui/login", data={"token": app.state.local_token}).status_code == 303
    assert stranger.get("/api/v1/runs").status_code == 200
    stranger.get("/ui/logout")
    assert stranger.get("/api/v1/runs").status_code == 401


def test_a_session_outlives_a_restart_of_the_service(
    stranger: TestClient, settings: Settings, sign_in: Callable[[TestClient], None]
) -> None:
    sign_in(stranger)
    again = create_app(settings, with_worker=False)
    again.dependency_overrides[utc_now] = lambda: NOW
    with TestClient(again, base_url=BASE_URL, cookies=stranger.cookies) as client:
        assert client.get("/api/v1/runs").status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"origin": BASE_URL, "sec-fetch-site": "cross-site"}, 403),
        ({"origin": BASE_URL, "sec-fetch-site": "same-site"}, 403),
        ({"origin": BASE_URL}, 200),
        ({"origin": BASE_URL, "sec-fetch-site": "same-origin"}, 200),
    ],
)
def test_what_changes_something_by_cookie_must_come_from_our_own_pages(
    stranger: TestClient, sign_in: Callable[[TestClient], None], headers: dict[str, str], status: int
) -> None:
    sign_in(stranger)
    assert stranger.post("/api/v1/reports", json=REPORT, headers=headers).status_code == status


def test_a_foreign_origin_is_refused_even_with_a_token(client: TestClient) -> None:
    answer = client.post("/api/v1/reports", json=REPORT, headers={"origin": "http://evil.example"})
    assert (answer.status_code, answer.headers["content-type"]) == (403, "application/problem+json")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8642", "127.0.0.1.evil.example", "", "[::2]:80"])
def test_a_foreign_host_is_refused_so_that_dns_rebinding_fails(client: TestClient, host: str) -> None:
    assert client.get("/api/v1/runs", headers={"host": host}).status_code == 403
    assert client.get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", ["LOCALHOST:1", "127.0.0.1", "[::1]:8642", "box.example", "vitals.example"])
def test_loopback_and_configured_hosts_are_ours(settings: Settings, host: str) -> None:
    named = {"allowed_hosts": ("box.example",), "public_url": "https://Vitals.example:8443/x"}
    own = create_app(settings.model_copy(update=named), with_worker=False)
    with TestClient(own, base_url=BASE_URL) as client:
        bearer = {"authorization": f"Bearer {own.state.local_token}", "host": host}
        assert client.get("/api/v1/runs", headers=bearer).status_code == 200


@pytest.mark.parametrize("url", ["vitals.example", "ftp://vitals.example", "https://", "https://[::1"])
def test_a_public_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="public_url"):
        Settings(public_url=url)


@pytest.mark.parametrize(
    ("header", "name"),
    [("a:1", "a"), ("A", "a"), ("[::1]:1", "[::1]"), ("[::1]", "[::1]"), ("[::1", "["), ("", "")],
)
def test_the_port_is_no_part_of_a_hosts_name(header: str, name: str) -> None:
    assert host_name(header) == name


def test_a_websocket_of_a_foreign_page_is_not_opened(app: FastAPI, stranger: TestClient) -> None:
    @app.websocket("/ui/socket")
    async def greet(socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_text("hello")
        await socket.close()

    with stranger.websocket_connect(SOCKET, headers={"origin": BASE_URL}) as socket:
        assert socket.receive_text() == "hello"
    refused: list[dict[str, Any]] = [{"origin": "http://evil.example"}, {"host": "evil.example"}]
    for headers in refused:
        with pytest.raises(WebSocketDisconnect), stranger.websocket_connect(SOCKET, headers=headers):
            pass


def test_the_access_log_does_not_have_the_token(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("tests.access")
    log.addFilter(HideTokens())
    with caplog.at_level(logging.INFO, "tests.access"):
        log.info('%s - "%s %s"', "1.2.3.4", "GET", "/ui/login?entry=secret1&x=1")
        log.info('%s - "%s %s"', "1.2.3.4", "GET", "/ui/share/secret2")
    assert "secret" not in caplog.text
    assert "entry=…&x=1" in caplog.text


def test_a_session_says_whose_it_is_in_the_audit(
    stranger: TestClient, client: TestClient, sign_in: Callable[[TestClient], None]
) -> None:
    client.post("/api/v1/reports", json={**REPORT, "run": {"id": "r1", "capabilities": {"pause": ""}}})
    sign_in(stranger)
    asked = stranger.post(
        "/api/v1/runs/r1/commands", json={"kind": "pause", "argument": 60.0}, headers={"origin": BASE_URL}
    )
    assert asked.status_code == 201, asked.text
    assert stranger.get("/api/v1/audit?run=r1").json()["items"][0]["who"] == "local"


@pytest.mark.parametrize("path", ["/ui/login", "/api/v1/runs", "/api/nothing"])
def test_no_other_site_may_show_our_pages_in_a_frame(stranger: TestClient, path: str) -> None:
    headers = stranger.get(path).headers
    assert headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["referrer-policy"] == "same-origin"
    assert headers["x-content-type-options"] == "nosniff"
