"""verl's V0 trainers, tapped by the frame that logs a step: on fakes of the shape that verl has."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rlvitals.integrations.verl import v0
from rlvitals.integrations.verl.session import session_of
from tests.client.integrations.verl_v0_shaped import INF, NAN, Trainer, proto, steps, tapped


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLVITALS_MODE", "offline")
    monkeypatch.setenv("RLVITALS_DIR", str(tmp_path / "spool"))


@pytest.fixture
def tracking() -> type:
    return tapped()


def test_each_step_that_is_logged_is_reported_with_its_batch(tracking: type) -> None:
    trainer = Trainer(tracking, [proto(), proto()])
    logger = trainer.fit(validated={"val-core/gsm8k/reward/mean@1": 0.25})
    assert [step for step, _ in logger.logged] == [0, 1, 2]
    validated, *told = steps(trainer)
    assert (validated.step, validated.values["val-core/gsm8k/reward/mean@1"]) == (0, 0.25)
    assert "reward.mean" not in validated.values
    assert [step.step for step in told] == [1, 2]
    assert told[0].values["length.at_cap_share"] == 0.25
    assert told[0].values["reward.zero_std_groups"] == 0.5
    assert told[0].values["gradient.norm"] == 1.0


@pytest.mark.parametrize("norm", [NAN, INF, -INF])
def test_a_norm_that_is_not_finite_is_told_as_what_it_is(tracking: type, norm: float) -> None:
    trainer = Trainer(tracking, [proto(norm=norm)])
    trainer.fit()
    (told,) = steps(trainer)
    assert told.values["gradient.norm"] == norm or (math.isnan(norm) and math.isnan(told.values["gradient.norm"]))
    assert told.values["numerics.nonfinite_gradient"] == 1


def test_log_probs_that_are_not_finite_are_counted_apart_and_absent_ones_are_missing(tracking: type) -> None:
    old = torch.tensor([[NAN, INF, -1.0, -1.0], [-INF, -1.0, -1.0, -1.0], [-1.0] * 4, [-1.0] * 4])
    trainer = Trainer(tracking, [proto(old_log_probs=old)])
    trainer.fit()
    (told,) = steps(trainer)
    assert told.values["numerics.nan"] >= 1
    assert told.values["numerics.positive_infinity"] >= 1
    assert told.values["numerics.negative_infinity"] >= 1
    assert "calculate_log_probs" in told.missing["ratio.rollout_max"]
    assert "nobody says" in told.missing["policy.forced_loss_tokens"]


def test_who_is_no_trainer_is_left_alone(tracking: type) -> None:
    class Evaluation:
        config, global_steps = None, 3

    def fit(self: Any) -> None:
        tracking().log(data={"training/global_step": 1}, step=1)

    fit(Evaluation())
    assert v0.find_caller(None) is None


def test_a_frame_without_a_batch_gives_scalars_and_says_what_is_blind(tracking: type) -> None:
    trainer = Trainer(tracking, [SimpleNamespace(norm=1.0)])
    trainer.fit()
    (told,) = steps(trainer)
    assert told.values["gradient.norm"] == 1.0
    rows = {row["hook"]: row for row in session_of(trainer).hooks.rows()}
    assert rows["batch"]["state"] == "failing"
    assert "DataProto" in str(rows["batch"]["why"])


def test_several_turns_of_an_early_verl_are_counted_by_the_loss_mask(tracking: type) -> None:
    trainer = Trainer(tracking, [])
    whole = torch.tensor([[0, 0, 1, 0, 1, 0], [0, 0, 1, 1, 0, 1], [0, 0, 1, 1, 1, 0], [0, 0, 1, 1, 0, 0]])
    batch = proto(loss_mask=whole)
    assert v0.columns(trainer, batch)["response_mask"] is batch.batch["response_mask"]
    trainer.config.actor_rollout_ref.rollout.multi_turn.enable = True
    assert v0.columns(trainer, batch)["response_mask"].tolist() == whole[:, 2:].tolist()


def test_without_a_mask_of_its_own_a_response_ends_with_the_attention() -> None:
    batch = proto()
    del batch.batch["response_mask"]
    found = v0.columns(SimpleNamespace(), batch)
    assert found["response_mask"].tolist() == batch.batch["attention_mask"][:, 2:].tolist()


def test_an_action_mask_beside_the_losss_own_says_who_wrote_a_token() -> None:
    actions = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]])
    found = v0.columns(SimpleNamespace(), proto(action_mask=actions))
    assert found["written_mask"].tolist() == actions.bool().tolist()
    assert "action_mask" not in found


def test_the_legacy_branchs_loss_counts_by_the_action_mask() -> None:
    trainer = type("RayAgentTrainer", (), {"__module__": "agent_r1.src.agent_ray_trainer"})()
    actions = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]])
    found = v0.columns(trainer, proto(action_mask=actions))
    assert found["response_mask"] is actions
    assert found["written_mask"] is None
