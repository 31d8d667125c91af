"""Rule files that change under a running service."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from rlvitals_monitor.alerts.rulebook import RuleBook
from rlvitals_monitor.app import create_app
from rlvitals_monitor.rules.document import RuleFileError
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.worker import Worker
from tests.monitor.conftest import BASE_URL

NOW = datetime(2026, 1, 2, tzinfo=timezone.utc)
LATER = NOW + timedelta(seconds=5)
GOOD = (
    "groups:\n  - name: own\n    rules:\n      - alert: {alert}\n        expr: {expr}\n"
    "        labels: {{severity: warning}}\n        annotations: {{summary: s}}\n"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "own.yaml"


@pytest.fixture
def write(file: Path) -> Callable[..., None]:
    """Writes the file; each time is another second to the file system."""
    beats = iter(range(1, 100))

    def put(alert: str = "mine", expr: str = "kl.k3 > 1", text: str | None = None) -> None:
        file.write_text(GOOD.format(alert=alert, expr=expr) if text is None else text)
        at = next(beats)
        os.utime(file, (at, at))

    return put


def names(book: RuleBook) -> set[str]:
    return {rule.alert for rule in book.rules}


def test_a_changed_file_is_in_force_at_the_next_look(file: Path, write: Callable[..., None]) -> None:
    write()
    book = RuleBook([file], NOW)
    write("other")
    assert "mine" in names(book)
    book.refresh(LATER)
    assert "other" in names(book)
    assert "mine" not in names(book)
    assert book.view.loaded_at == LATER


def test_a_bad_file_leaves_the_last_good_rules_and_heals(file: Path, write: Callable[..., None]) -> None:
    write()
    book = RuleBook([file], NOW)
    write(expr="kl.k33 > 1")
    book.refresh(LATER)
    assert "mine" in names(book)
    (problem,) = book.view.problems
    assert problem.startswith(f"{file}:5: expected a known metric, got 'kl.k33'; did you mean 'kl.k3'?")
    assert (book.view.loaded_at, book.view.failed_at) == (NOW, LATER)
    write(text="groups: [")
    book.refresh(LATER + timedelta(seconds=1))
    assert book.view.failed_at == LATER
    write("healed")
    book.refresh(LATER)
    assert "healed" in names(book)
    assert (book.view.problems, book.view.failed_at) == ((), None)


def test_a_file_that_goes_away_is_a_problem_and_not_the_end_of_its_rules(
    file: Path, write: Callable[..., None]
) -> None:
    write()
    book = RuleBook([file], NOW)
    file.unlink()
    book.refresh(LATER)
    assert "mine" in names(book)
    assert "expected a readable UTF-8 file" in book.view.problems[0]


def test_a_service_does_not_begin_with_a_bad_file(file: Path, write: Callable[..., None]) -> None:
    write(expr="1 +")
    with pytest.raises(RuleFileError, match=r"own\.yaml:5: expected an expression"):
        RuleBook([file], NOW)


def test_the_service_says_so_and_judges_on(
    file: Path, write: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write()
    monkeypatch.setenv("RLVITALS_RULES", str(file))
    app = create_app(Settings(home=tmp_path / "home"), with_worker=False)
    with TestClient(app, base_url=BASE_URL) as client:
        worker = Worker(app.state.store, book=app.state.rulebook)
        assert client.get("/api/v1/rules/status").status_code == 401
        client.headers["authorization"] = f"Bearer {app.state.local_token}"
        assert client.get("/api/v1/rules/status").json()["problems"] == []
        write(expr="'a' > 1")
        worker.tick(NOW)
        said = client.get("/api/v1/rules/status").json()
        assert ":5: expected" in said["problems"][0]
        assert "mine" in {rule.alert for rule in worker.rules}
        assert "mine" in {rule["rule"] for rule in client.get("/api/v1/rules").json()}
        write("again")
        worker.tick(NOW)
        assert client.get("/api/v1/rules/status").json()["problems"] == []
        assert "again" in {rule.alert for rule in worker.rules}
