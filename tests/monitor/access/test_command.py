"""``rlvitals token``, ``user``, ``share`` and ``login-link`` as the owner of the machine uses them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest
from fastapi.testclient import TestClient

from rlvitals_monitor.__main__ import login_link, share, token, user
from rlvitals_monitor.app import create_app
from rlvitals_monitor.settings import Settings
from tests.monitor.conftest import BASE_URL
from tests.monitor.planted import plant_run

Browser = Callable[[], TestClient]


@pytest.fixture
def browser(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    """Opens browsers before the service on whose database the commands act."""
    monkeypatch.setenv("RLVITALS_DATABASE_URL", database_url)
    app = create_app(Settings(), with_worker=False)
    with TestClient(app):
        with app.state.store.begin() as conn:
            plant_run(conn, "r1")
        yield lambda: TestClient(app, base_url=BASE_URL, follow_redirects=False)


def test_a_link_for_the_owner_is_printed_and_works_once(
    browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    assert login_link([]) == 0
    link = capsys.readouterr().out.strip()
    assert link.startswith(f"{BASE_URL}/ui/login?entry=")
    assert [browser().get(link).status_code for _ in range(2)] == [303, 403]
    assert login_link(["--minutes", "nan"]) == 2
    assert "--minutes: expected minutes above 0" in capsys.readouterr().err


def test_people_are_added_listed_and_changed_by_name(browser: Browser, capsys: pytest.CaptureFixture[str]) -> None:
    assert user(["add", "ann", "--role", "operator"]) == 0
    told = capsys.readouterr()
    assert browser().get(told.out.strip()).status_code == 200
    assert "ann, operator; the link works once" in told.err
    assert user(["role", "ann", "viewer"]) == user(["disable", "ann"]) == 0
    assert user(["invite", "ann"]) == 1
    assert "'ann' is disabled" in capsys.readouterr().err
    assert user(["list"]) == 0
    assert re.search(r"disabled  viewer  ann  never seen", capsys.readouterr().out)
    assert user(["enable", "ann"]) == user(["invite", "ann"]) == user(["remove", "ann"]) == 0
    assert user(["remove", "ann"]) == 1
    assert user(["add", "local"]) == 2


def test_a_token_is_rotated_and_the_owners_own_stays_in_its_file(
    browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    file = Settings().home_folder / "token.json"
    assert token(["list"]) == 0
    own = capsys.readouterr().out.partition("  ")[0]
    assert token(["rotate", own, "--grace", "0"]) == 0
    secret = capsys.readouterr().out.strip()
    assert json.loads(file.read_text())["token"] == secret
    assert token(["rotate", own]) == 1
    assert token(["create", "x", "--scope", "read", "--days", "-1"]) == 2
    assert token(["create", "x", "--scope", "read", "--days", "30"]) == 0
    token(["list"])
    assert "valid until" in capsys.readouterr().out


def test_a_run_is_shared_listed_and_taken_back(browser: Browser, capsys: pytest.CaptureFixture[str]) -> None:
    assert share(["create", "r1", "--view", "/texts", "--hours", "2"]) == 0
    told = capsys.readouterr()
    link, share_id = told.out.strip(), told.err.partition(":")[0]
    assert browser().get(link).headers["location"] == "/ui/run/r1/texts"
    assert share(["list"]) == share(["revoke", share_id]) == 0
    assert f"{share_id}  " in capsys.readouterr().out
    assert share(["revoke", share_id]) == share(["create", "none"]) == 1
    assert share(["create", "r1", "--view", "//x"]) == 2
    assert browser().get(link).status_code == 410
