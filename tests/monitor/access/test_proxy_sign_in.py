"""A proxy that has signed somebody in names them and shows its secret: off by default, on both databases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import ValidationError

from rlvitals_monitor.access.vouching import SECRET_HEADER, Claim
from rlvitals_monitor.settings import Settings
from tests.monitor.access.test_door import LOGIN, V1, audited, invite
from tests.monitor.conftest import BASE_URL

SECRET = "s" * 32
HEADER = "X-Forwarded-User"
Visit = Callable[..., TestClient]


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    home = tmp_path / "home"
    return Settings(home=home, database_url=database_url, proxy_user_header=HEADER, proxy_secret=SECRET)


@pytest.fixture
def visit(app: FastAPI, client: TestClient) -> Visit:
    """Opens a browser whose requests come through a proxy that adds these headers."""

    def opened(*headers: tuple[str, str]) -> TestClient:
        page = TestClient(app, base_url=BASE_URL, raise_server_exceptions=False, follow_redirects=False)
        page.headers = type(page.headers)([*page.headers.multi_items(), *headers])
        return page

    return opened


def named(name: str = "ann", secret: str = SECRET) -> tuple[tuple[str, str], ...]:
    return (HEADER, name), (SECRET_HEADER, secret)


def me(page: TestClient) -> str:
    return str(page.get(f"{V1}/me").json().get("name", ""))


def test_whom_the_proxy_names_gets_a_session_with_the_role_that_an_admin_gave(
    client: TestClient, visit: Visit
) -> None:
    invite(client, role="operator")
    page = visit(*named())
    assert me(page) == ""
    entered = page.get(LOGIN)
    assert (entered.status_code, entered.headers["location"]) == (303, "/ui/")
    told = page.get(f"{V1}/me").json()
    assert (told["name"], told["role"]) == ("ann", "operator")
    assert any("by a proxy from" in line for line in audited(client, "signed in"))


def test_who_has_just_left_is_not_signed_in_again_at_once(client: TestClient, visit: Visit) -> None:
    invite(client)
    page = visit(*named())
    page.get(LOGIN)
    left = page.get("/ui/logout")
    assert page.get(left.headers["location"]).status_code == 200
    assert me(page) == ""


@pytest.mark.parametrize(
    "headers",
    [
        (*named(secret="t" * 32),),
        ((HEADER, "ann"),),
        (*named(), (HEADER, "root")),
        (*named(), (SECRET_HEADER, "t" * 32)),
        (*named("nobody here"),),
        (*named(""),),
    ],
    ids=["a wrong secret", "no secret", "two names", "two secrets", "an unknown name", "no name"],
)
def test_nobody_else_is_let_in_and_it_is_audited(
    client: TestClient, visit: Visit, headers: tuple[tuple[str, str], ...]
) -> None:
    invite(client)
    page = visit(*headers)
    refused = page.get(LOGIN)
    assert refused.status_code == 403
    assert "set-cookie" not in refused.headers
    assert SECRET not in refused.text
    assert me(page) == ""
    assert len(audited(client, "sign-in refused")) == 1


def test_a_person_who_is_shut_out_stays_out(client: TestClient, visit: Visit) -> None:
    user = invite(client)["user"]
    client.patch(f"{V1}/users/{user['id']}", json={"disabled": True})
    assert visit(*named()).get(LOGIN).status_code == 403


def test_a_wrong_secret_is_slowed_as_a_wrong_password_is(client: TestClient, visit: Visit) -> None:
    invite(client)
    page = visit(*named(secret="t" * 32))
    assert 429 in {page.get(LOGIN).status_code for _ in range(40)}


def test_without_the_setting_the_headers_say_nothing(database_url: str, client: TestClient, visit: Visit) -> None:
    state = client.app.state  # type: ignore[attr-defined]
    state.settings = Settings(home=state.settings.home, database_url=database_url)
    invite(client)
    page = visit(*named())
    assert page.get(LOGIN).status_code == 200
    assert me(page) == ""


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"proxy_user_header": HEADER}, "or neither"),
        ({"proxy_secret": SECRET}, "or neither"),
        ({"proxy_user_header": HEADER, "proxy_secret": "short"}, "32 characters or more"),
        ({"proxy_user_header": "Cookie", "proxy_secret": SECRET}, "names a person"),
        ({"proxy_user_header": "a b", "proxy_secret": SECRET}, "pattern"),
    ],
)
def test_half_a_setting_is_refused(given: dict[str, str], fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        Settings(**given)


def test_the_secret_is_not_shown_with_the_settings_and_a_name_is_read_as_utf_8() -> None:
    assert SECRET not in repr(Settings(proxy_user_header=HEADER, proxy_secret=SECRET))
    assert Claim(names=["李".encode().decode("latin-1")], secrets=[SECRET]).name == "李"
