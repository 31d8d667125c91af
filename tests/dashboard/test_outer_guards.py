"""What stands around the whole service, the dashboard's callbacks too, which anybody may call."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from rlvitals_dashboard.serve import create_service, main
from rlvitals_monitor.request_bounds import BODY_BYTES_MAX
from rlvitals_monitor.settings import Settings

BASE_URL = "http://127.0.0.1:8642"
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    home = tmp_path_factory.mktemp("home")
    app = create_service(Settings(home=home), with_worker=False)
    return TestClient(app, base_url=BASE_URL, raise_server_exceptions=False, follow_redirects=False)


@pytest.mark.parametrize("path", ["/ui/_dash-update-component", "/ui/", "/ui/login", "/nothing"])
def test_a_body_without_an_end_is_refused_before_it_is_read(stranger: TestClient, path: str) -> None:
    answer = stranger.post(path, content=b"[" * (BODY_BYTES_MAX + 1), headers=JSON)
    assert answer.status_code == 413


def test_a_body_that_does_not_say_its_length_is_read_no_further_than_the_bound(stranger: TestClient) -> None:
    piece, taken, sent = b" " * (1 << 20), 0, []

    async def receive() -> dict[str, Any]:
        nonlocal taken
        taken += len(piece)
        assert taken < 4 * BODY_BYTES_MAX
        return {"type": "http.request", "body": piece, "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    path = "/ui/_dash-update-component"
    headers = [(b"host", b"127.0.0.1:8642"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "headers": headers}
    asyncio.run(stranger.app({**scope, "query_string": b"", "scheme": "http", "root_path": ""}, receive, send))
    assert sent[0]["status"] >= 400
    assert taken <= BODY_BYTES_MAX + len(piece)


@pytest.mark.parametrize("path", ["/ui/", "/ui/run/r1", "/ui/login", "/ui/_dash-layout"])
def test_a_foreign_host_is_refused_before_anybody_is_asked_who_it_is(stranger: TestClient, path: str) -> None:
    answer = stranger.get(path, headers={"host": "evil.example"})
    assert (answer.status_code, "evil.example" in answer.text) == (403, True)


def test_a_service_whose_key_does_not_fit_says_so_and_does_not_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "none.pem"
    code = main(["--port", "0", "--data", str(tmp_path), "--tls-cert", str(missing), "--tls-key", str(missing)])
    assert code == 1
    assert f"--tls-cert: cannot read {missing}: No such file or directory" in capsys.readouterr().out
