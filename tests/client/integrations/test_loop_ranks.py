"""A hand-written loop on two real ranks over gloo, and one prepared by accelerate."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlvitals
from tests.client.integrations import grpo, loop_rank, tiny
from tests.client.integrations.pair import run_pair

DEADLINE_S = 120.0


@pytest.mark.slow
def test_two_ranks_report_as_one_and_stop_at_the_same_step(tmp_path: Path) -> None:
    first, second = sorted(
        run_pair(loop_rank.__name__, tmp_path, deadline_s=DEADLINE_S), key=lambda told: int(told["rank"])
    )
    assert (first["stopped"], second["stopped"]) == (True, True)
    assert first["turned"] == second["turned"] == [0.7]
    assert second["values"] == []
    assert len(first["values"]) == 2
    for step, values in enumerate(first["values"]):
        parts = [rank["seen"][step * grpo.MICRO : (step + 1) * grpo.MICRO] for rank in (first, second)]
        tokens = [k3 for rank in parts for part in rank for k3 in part]
        assert values["policy.loss_tokens"] == len(tokens)
        assert values["kl.k3"] == pytest.approx(sum(tokens) / len(tokens), abs=1e-6)
        assert values["length.completions"] == 2 * grpo.PROMPTS * grpo.GROUP
        assert values["reward.group_size"] == grpo.GROUP


def test_a_loop_prepared_by_accelerate_is_the_same_bit_for_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accelerate = pytest.importorskip("accelerate", reason="NO TEST WITH ACCELERATE: it is not installed")
    monkeypatch.setenv("RLVITALS_MODE", "offline")
    monkeypatch.setenv("RLVITALS_DIR", str(tmp_path / "spool"))
    accelerator = accelerate.Accelerator(cpu=True)

    def made() -> grpo.Loop:
        return grpo.Loop(prepare=accelerator.prepare, backward=accelerator.backward)

    plain = made()
    plain.train()
    weights = plain.weights()
    watched = made()
    with rlvitals.run(project="p", **watched.facts()) as vitals:
        watched.train(vitals)
    assert watched.weights() == weights
    step = tiny.steps(vitals.reporter)[-1]
    assert step.values["policy.learning_rate"] == 1e-2
    assert step.values["gradient.update_ratio"] > 0
