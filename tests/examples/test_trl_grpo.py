"""The TRL example without a GPU, as it is, only shorter: GRPO and RLOO."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("trl", reason="the TRL extra is not installed: THE TRL EXAMPLE WAS NOT RUN")

import torch

from rlvitals.contract.metrics import METRICS, Family
from tests.client.integrations import tiny

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.mark.parametrize("rloo", [False, True], ids=["GRPO", "RLOO"])
def test_the_example_trains_and_tells_all_that_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rloo: bool
) -> None:
    import trl_grpo

    monkeypatch.setenv("RLVITALS_MODE", "offline")
    monkeypatch.setenv("RLVITALS_DIR", str(tmp_path / "spool"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    run = trl_grpo.train(trl_grpo.Settings(steps=4, cpu=True, rloo=rloo, output=str(tmp_path / "output")))
    torch.set_num_threads(threads)
    steps = tiny.steps(run)
    assert [step.step for step in steps] == [1, 2, 3, 4]
    told = {"text.invalid_utf8_per_1k", "kl.k1", "kl.pull_ratio", "length.truncation_rate", "gradient.norm"}
    assert told <= steps[-1].values.keys()
    registered = {metric.name for metric in METRICS if metric.family is not Family.SELF}
    assert registered <= steps[-1].values.keys() | steps[-1].missing.keys()
    assert run.run.capabilities["set_kl_coef"] == ""
