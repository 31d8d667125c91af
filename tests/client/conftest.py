"""What all tests of the client share: errors come through, notices are fresh, the spool is the test's own."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rlvitals import notices
from rlvitals.contract.report import Phase, RunInfo
from rlvitals.reporter import Reporter
from rlvitals.settings import Settings
from tests.client.service import Service, serving

MakeReporter = Callable[..., Reporter]


@pytest.fixture(autouse=True)
def _errors_come_through(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("RLVITALS_RAISE", "1")
    monkeypatch.setenv("RLVITALS_HOME", str(tmp_path / "home"))
    for name in ("RLVITALS_URL", "RLVITALS_TOKEN", "RLVITALS_MODE", "RLVITALS_DIR", "RLVITALS_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    notices.forget()
    yield
    notices.forget()


@pytest.fixture
def service() -> Iterator[Service]:
    with serving(Service()) as running:
        yield running


@pytest.fixture
def dead_url() -> str:
    """An address on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture
def make_reporter(tmp_path: Path) -> Iterator[MakeReporter]:
    """Reporters of run ``r`` on the test's own spool; closed at the end."""
    made: list[Reporter] = []

    def make(url: str = "", run: str = "r", **settings: Any) -> Reporter:
        chosen = {
            "url": url,
            "spool": tmp_path / "spool",
            "interval_s": 0.02,
            "timeout_s": 5.0,
            "exit_flush_s": 0.2,
        }
        reporter = Reporter(Settings(**{**chosen, **settings}), RunInfo(id=run))
        made.append(reporter)
        return reporter

    yield make
    for reporter in made:
        reporter.close(Phase.FINISHED)
