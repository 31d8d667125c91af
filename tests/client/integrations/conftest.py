"""Real TRL trainers on the CPU, offline, with their journals in the test's own folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="the TRL extra is not installed: NO TEST OF THE INTEGRATION WILL RUN")

from trl import GRPOTrainer

from tests.client.integrations import tiny

MakeTrainer = Callable[..., GRPOTrainer]


@pytest.fixture(scope="session")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save_policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture
def make(policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeTrainer]:
    """Trainers of `tiny.make_trainer`; whatever is attached journals offline."""
    import torch

    monkeypatch.setenv("RLVITALS_MODE", "offline")
    monkeypatch.setenv("RLVITALS_DIR", str(tmp_path / "spool"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)

    def make(**settings: Any) -> GRPOTrainer:
        return tiny.make_trainer(policy, tmp_path / "output", **settings)

    yield make
    torch.set_num_threads(threads)
