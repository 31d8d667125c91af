"""Batches of agents: who wrote a token, and a forced end of turn named up to the diagnosis."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rlvitals.integrations.verl import agent_r1, v0
from rlvitals_monitor.alerts.replay import episodes, replay
from rlvitals_monitor.alerts.scenario import read_scenarios
from rlvitals_monitor.diagnosis.diagnose import diagnose
from rlvitals_monitor.replay import fired_of
from rlvitals_monitor.rules.loader import load_rules
from tests.client.integrations.verl_v0_shaped import END, INF, NAN, TOOL, Trainer, proto, steps, tapped


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLVITALS_MODE", "offline")
    monkeypatch.setenv("RLVITALS_DIR", str(tmp_path / "spool"))


@pytest.fixture
def tracking() -> type:
    return tapped()


MASK = torch.tensor([[1, 1, 1, 0, 0, 1, 1, 1]] * 4)
SAMPLED = torch.tensor([[-0.5, -0.7, 0.0, 0.0, 0.0, -0.4, -0.2, -0.1]] * 4)
OLD = torch.tensor([[-0.5, -0.7, -3.0, -9.0, -9.0, -0.4, -0.2, -0.1]] * 4)


def chosen(sampled: Tensor | None = SAMPLED, old: Tensor | None = OLD, mask: Tensor = MASK) -> list[int] | None:
    columns = {"rollout_log_probs": sampled, "old_log_probs": old}
    found = agent_r1.written(columns, mask)
    return None if found is None else found[0].int().tolist()


def changed(values: Tensor, place: int, value: float) -> Tensor:
    other = values.clone()
    other[:, place] = value
    return other


def test_what_ends_a_turn_without_a_log_prob_of_the_sampler_was_not_chosen() -> None:
    assert chosen() == [1, 1, 0, 0, 0, 1, 1, 1]


def test_a_certain_token_that_the_policy_is_certain_of_too_was_chosen() -> None:
    assert chosen(old=changed(OLD, 2, -0.01)) == [1, 1, 1, 0, 0, 1, 1, 1]


def test_a_certain_token_inside_a_turn_was_chosen() -> None:
    sampled = changed(changed(SAMPLED, 2, -3.0), 0, 0.0)
    assert chosen(sampled, changed(OLD, 0, -2.0)) == [1, 1, 1, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_a_log_prob_that_is_not_finite_is_no_missing_one(value: float) -> None:
    assert chosen(changed(SAMPLED, 2, value)) == [1, 1, 1, 0, 0, 1, 1, 1]


def test_a_greedy_sampler_or_one_that_is_another_policy_says_nothing() -> None:
    assert chosen(torch.zeros_like(SAMPLED)) is None
    assert chosen(old=OLD - 5) is None
    assert chosen(sampled=None) is None
    assert chosen(old=None) is None


def conversations(*, covered: bool) -> Any:
    """Rows of two trajectories and one of padding; in row 0 a tool was called and the turn was ended by force."""
    ids = torch.tensor(
        [[1, TOOL, END, 4, 2, END], [2, 3, END, 0, 0, 0], [1, 1, 2, END, 0, 0], [1, 1, 2, END, 0, 0]]
    )
    seen = torch.tensor([[1] * 6, [1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 0, 0]])
    mask = seen.clone()
    mask[0, 3] = 0
    mask[3] = 0
    if covered:
        mask[0, 2] = 0
    sampled = torch.tensor([[-0.5, -0.6, 0.0, 0.0, -0.5, -0.3], *[[-0.5] * 6] * 3])
    old = sampled.clone()
    old[0, 2:4] = torch.tensor([-4.0, -6.0])
    batch = proto(
        responses=ids,
        attention_mask=torch.cat([torch.tensor([[0, 1]] * 4), seen], 1),
        response_mask=mask,
        rollout_log_probs=sampled,
        old_log_probs=old,
        sample_mask=torch.tensor([True, True, True, False]),
        advantages=torch.ones(4, 6),
        token_level_scores=torch.tensor(
            [[0.25] + [0.0] * 5, [0.5] + [0.0] * 5, [0.1] + [0.0] * 5, [9.0] + [0.0] * 5]
        ),
        trajectory_uids=np.array(["t", "t", "u", "u"], dtype=object),
    )
    batch.non_tensor_batch["uid"] = np.array(["a"] * 4, dtype=object)
    return batch


def test_rows_of_one_trajectory_have_its_score_and_padding_has_none() -> None:
    found = v0.columns(SimpleNamespace(), conversations(covered=True))
    assert found["token_level_scores"].tolist()[:3] == pytest.approx([0.75, 0.75, 0.1])
    assert agent_r1.trajectory_scores(proto().batch) == {}


@pytest.mark.parametrize("covered", [False, True])
def test_a_forced_end_of_turn_is_named_up_to_the_diagnosis_unless_the_mask_covers_it(
    tracking: type, covered: bool
) -> None:
    trainer = Trainer(tracking, [conversations(covered=covered) for _ in range(6)])
    trainer.config.data.max_response_length = 6
    trainer.fit()
    told = steps(trainer)
    assert [step.values["length.completions"] for step in told] == [3.0] * 6
    names = ("policy.forced_loss_tokens", "gradient.norm", "ratio.rollout_max", "ratio.rollout_min")
    series = {name: " ".join(f"{step.values[name]:g}" for step in told) for name in names}
    text = json.dumps({"scenarios": [{"name": "x", "series": series, "alerts": []}]})
    (scenario,) = read_scenarios(text, "x")
    found = diagnose([fired_of(one) for one in episodes(replay(load_rules(), scenario.steps, {}))])
    if covered:
        assert told[0].values["policy.forced_loss_tokens"] == 0
        assert not found
        return
    extreme = told[0].extremes["policy.forced_loss_tokens"]
    assert (extreme.token_id, extreme.position, extreme.sample) == (END, 2, 0)
    (incident,) = found
    assert (incident.cause, incident.onset_step) == ("special_token_fault", 1)
