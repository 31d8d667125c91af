"""A process does what its role says and nothing else; all roles together are the whole service."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from rlvitals_dashboard.serve import create_service
from rlvitals_monitor.roles import Role
from rlvitals_monitor.settings import Settings


def service(tmp_path: Path, database_url: str, role: Role) -> TestClient:
    settings = Settings(home=tmp_path / role.value, database_url=database_url, role=role)
    return TestClient(create_service(settings), base_url="http://localhost", follow_redirects=False)


EXPECTED = {
    # role: (reports are taken, the API is read, pages are shown, the worker runs)
    Role.ALL: (True, True, True, True),
    Role.COLLECTOR: (True, False, False, False),
    Role.WORKER: (False, False, False, True),
    Role.DASHBOARD: (False, True, True, False),
}


@pytest.mark.parametrize("role", list(Role))
def test_a_process_does_what_its_role_says(tmp_path: Path, sqlite_url: str, role: Role) -> None:
    with service(tmp_path, sqlite_url, role) as client:
        app = client.app
        done = (
            client.post("/api/v1/reports", json={}).status_code == 401,
            client.get("/api/v1/runs").status_code == 401,
            client.get("/ui/login").status_code == 200,
            app.state.worker is not None,  # type: ignore[attr-defined]
        )
        assert done == EXPECTED[role]
        assert client.get("/readyz").status_code == 200
        assert (tmp_path / role.value / "token.json").exists() == role.shows


def test_what_a_process_does_not_do_is_a_404_in_json(tmp_path: Path, sqlite_url: str) -> None:
    with service(tmp_path, sqlite_url, Role.COLLECTOR) as client:
        for path in ("/ui/", "/", "/api/v1/runs"):
            answer = client.get(path)
            assert answer.status_code == 404
            assert answer.headers["content-type"] == "application/problem+json"


def test_a_process_that_is_about_to_stop_says_so_and_still_works(tmp_path: Path, sqlite_url: str) -> None:
    with service(tmp_path, sqlite_url, Role.COLLECTOR) as client:
        client.app.state.draining = True  # type: ignore[attr-defined]
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert "about to stop" in answer.json()["detail"]
        assert client.get("/healthz").status_code == 200
        assert client.post("/api/v1/reports", json={}).status_code == 401


def test_the_settings_know_the_role(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLVITALS_ROLE", "worker")
    assert Settings().role is Role.WORKER
    monkeypatch.setenv("RLVITALS_ROLE", "king")
    with pytest.raises(ValueError, match="collector"):
        Settings()
