"""The hand-written loop of the examples, as it is, only shorter."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="transformers is not installed: THE PLAIN LOOP WAS NOT RUN")

import torch

from rlvitals.contract.metrics import METRICS, Family
from rlvitals.contract.report import StepReport
from rlvitals.follow import Follower
from rlvitals.spool import journal_folder


def test_the_plain_loop_learns_and_tells_all_that_it_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import plain_grpo

    monkeypatch.setenv("RLVITALS_MODE", "offline")
    monkeypatch.setenv("RLVITALS_DIR", str(tmp_path / "spool"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    vitals = plain_grpo.train(plain_grpo.Settings(steps=12))
    torch.set_num_threads(threads)
    run = vitals.reporter
    follower = Follower(journal_folder(run.settings.spool, run.run.id, run.attempt))
    steps = [r for r in (item.record for item in follower.read(1_000_000)) if isinstance(r, StepReport)]
    follower.close()
    assert [step.step for step in steps] == list(range(1, 13))
    assert steps[-1].values["reward.mean"] > steps[0].values["reward.mean"]
    told = {"text.invalid_utf8_per_1k", "kl.pull_ratio", "ratio.max", "length.truncation_rate", "gradient.norm"}
    told |= {"gradient.top_parameter_share", "gradient.update_ratio", "progress.phase_rollout_s", "progress.epoch"}
    assert told <= steps[-1].values.keys()
    registered = {metric.name for metric in METRICS if metric.family is not Family.SELF}
    assert registered <= steps[-1].values.keys() | steps[-1].missing.keys()
    assert run.run.capabilities["set_kl_coef"] == ""
