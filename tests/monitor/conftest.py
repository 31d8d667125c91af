"""The whole service over ASGI, on both databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rlvitals_monitor.access.login_link import make_login_link
from rlvitals_monitor.api.deps import utc_now
from rlvitals_monitor.app import create_app
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store import tokens
from tests.monitor.batches import NOW

BASE_URL = "http://127.0.0.1:8642"


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", database_url=database_url)


@pytest.fixture
def app(settings: Settings) -> FastAPI:
    """The service without its worker; its clock stands at `NOW`."""
    made = create_app(settings, with_worker=False)
    made.dependency_overrides[utc_now] = lambda: NOW
    return made


@pytest.fixture
def set_clock(app: FastAPI) -> Callable[[datetime], None]:
    def move(to: datetime) -> None:
        app.dependency_overrides[utc_now] = lambda: to

    return move


@pytest.fixture
def stranger(app: FastAPI) -> Iterator[TestClient]:
    """Somebody without a token."""
    with TestClient(app, base_url=BASE_URL, raise_server_exceptions=False, follow_redirects=False) as client:
        yield client


@pytest.fixture
def login_path(app: FastAPI, stranger: TestClient) -> Callable[[], str]:
    """Makes a path that signs in as the owner, once."""
    return lambda: make_login_link(app.state.store, app.state.local_token, "a test", timedelta(minutes=5), NOW)


@pytest.fixture
def client(app: FastAPI, stranger: TestClient) -> TestClient:
    """The owner, with the token of the local file."""
    return TestClient(
        app,
        base_url=BASE_URL,
        headers={"authorization": f"Bearer {app.state.local_token}"},
        raise_server_exceptions=False,
        follow_redirects=False,
    )


@pytest.fixture
def token_for(app: FastAPI, stranger: TestClient) -> Callable[..., dict[str, str]]:
    """Makes a token with the scopes; answers the header that shows it."""

    def make(*scopes: str, name: str = "somebody") -> dict[str, str]:
        made = tokens.make_token()
        with app.state.store.begin() as connection:
            tokens.register(connection, made, name, scopes, NOW)
        return {"authorization": f"Bearer {made}"}

    return make
