from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from rlvitals_monitor.__main__ import db, token
from rlvitals_monitor.settings import Settings
from tests.monitor.batches import NOW_S

DEADLINE_S = 30


@pytest.fixture(autouse=True)
def own_database(monkeypatch: pytest.MonkeyPatch, database_url: str) -> None:
    monkeypatch.setenv("RLVITALS_DATABASE_URL", database_url)


def test_a_token_is_created_shown_once_listed_and_revoked(capsys: pytest.CaptureFixture[str]) -> None:
    assert token(["create", "trainer", "--scope", "ingest:demo", "--scope", "read"]) == 0
    made = capsys.readouterr()
    assert re.fullmatch(r"rlv_[\w-]{43}\n", made.out)
    token_id = made.err.partition(":")[0]
    assert token(["list"]) == 0
    listed = capsys.readouterr().out
    assert f"{token_id}  " in listed
    assert "valid  trainer  ingest:demo read" in listed
    assert made.out.strip() not in listed
    assert token(["revoke", token_id]) == 0
    assert token(["revoke", token_id]) == 1
    token(["list"])
    assert "revoked" in capsys.readouterr().out


def test_a_token_with_a_scope_that_does_not_exist_is_not_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert token(["create", "x", "--scope", "root"]) == 2
    assert "got 'root'" in capsys.readouterr().err


def test_the_schema_is_checked_and_brought_up_to_date(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RLVITALS_DATABASE_URL", f"sqlite:///{tmp_path / 'empty.db'}")
    (tmp_path / "empty.db").touch()
    assert db(["check"]) == 1
    assert db(["migrate"]) == 0
    assert db(["check"]) == 0
    assert "rlvitals db migrate" in capsys.readouterr().out


def test_settings_come_from_the_environment_and_wildcard_addresses_are_no_host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RLVITALS_ALLOWED_HOSTS", "box.example, other.example ,")
    monkeypatch.setenv("RLVITALS_PORT", "9000")
    monkeypatch.setenv("RLVITALS_HOST", "0.0.0.0")
    monkeypatch.delenv("RLVITALS_DATABASE_URL")
    found = Settings()
    assert found.hosts == {"localhost", "127.0.0.1", "[::1]", "box.example", "other.example"}
    assert found.url == "http://127.0.0.1:9000"
    assert found.store_url == f"sqlite:///{found.home_folder}/data/rlvitals.db"
    assert Settings(host="::1").url == "http://[::1]:9000"


def test_over_a_real_socket_a_killed_service_comes_back_with_everything(tmp_path: Path) -> None:
    report = {"run": {"id": "r1"}, "attempt": "a1", "names": ["a", "b", "c", "d"]}
    rows = [[1, 1, NOW_S, "NaN", "Infinity", "-Infinity", None], [2, 2, NOW_S, 1.0, None, None, None]]
    first = Service()
    with first.client() as client:
        assert client.post("/api/v1/reports", json=report | {"rows": rows[:1]}).json()["stored_through"] == 1
    first.end(signal.SIGKILL)
    second = Service()
    with second.client() as client:
        receipt = client.post("/api/v1/reports", json=report | {"rows": rows}).json()
        assert (receipt["stored"], receipt["duplicates"], receipt["stored_through"]) == (1, 1, 2)
        views = client.get("/api/v1/runs/r1/series?metric=a&metric=b&metric=c&metric=d").json()
        assert [view["value"] for view in views] == [["NaN", 1.0], ["Infinity"], ["-Infinity"], []]
        assert client.get("/readyz").status_code == 200
    assert second.end(signal.SIGINT) in (0, -signal.SIGINT)


class Service:
    """``python -m rlvitals_monitor`` on a port of its own choice, in the environment of the test."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rlvitals_monitor", "--port", "0"],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            env=os.environ,
        )
        self.url = self._address()

    def client(self) -> httpx2.Client:
        told = json.loads((Path(os.environ["RLVITALS_HOME"]) / "token.json").read_text())
        return httpx2.Client(base_url=self.url, headers={"authorization": f"Bearer {told['token']}"})

    def end(self, by: signal.Signals) -> int:
        self.process.send_signal(by)
        code = self.process.wait(DEADLINE_S)
        if self.process.stderr is not None:
            self.process.stderr.close()
        return code

    def _address(self) -> str:
        """Read from the log, which says it once the socket is open."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            found = re.search(r"running on (http://[\d.]+:\d+)", line)
            if found:
                return found[1]
        raise AssertionError(f"the service ended with {self.process.wait(DEADLINE_S)}")
