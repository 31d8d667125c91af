"""Real TRL trainers against a real service, or against whatever may stand in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="the TRL extra is not installed: NO END-TO-END TEST WILL RUN")

from trl import GRPOTrainer

from rlvitals import notices
from tests.client.integrations import tiny
from tests.end_to_end.server import Server, serving

MakeTrainer = Callable[..., GRPOTrainer]


@pytest.fixture(autouse=True)
def _like_a_users_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Errors of ours are swallowed as at a user's; spool and home are the test's own; goodbyes are short."""
    for name in ("RLVITALS_URL", "RLVITALS_TOKEN", "RLVITALS_MODE", "RLVITALS_RUN_ID", "RLVITALS_RAISE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RLVITALS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RLVITALS_DIR", str(tmp_path / "spool"))
    monkeypatch.setenv("RLVITALS_INTERVAL_S", "0.05")
    monkeypatch.setenv("RLVITALS_EXIT_FLUSH_S", "0.5")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    notices.forget()
    yield
    notices.forget()


@pytest.fixture(scope="session")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save_policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture
def make(policy: Path, tmp_path: Path) -> Iterator[MakeTrainer]:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)

    def make(**settings: Any) -> GRPOTrainer:
        return tiny.make_trainer(policy, tmp_path / "output", **settings)

    yield make
    torch.set_num_threads(threads)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The real service; the client finds it as it would on a user's machine."""
    with serving(tmp_path / "service") as running:
        for name, value in running.env.items():
            monkeypatch.setenv(name, value)
        yield running
