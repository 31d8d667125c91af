"""Completions from another engine: how far its log-probs are from the trainer's, and at which token."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

import rlvitals
from rlvitals.contract.report import StepReport
from tests.client.integrations import tiny
from tests.client.integrations.conftest import MakeTrainer
from tests.client.integrations.vllm_engine import Engine, Spoil, make_trainer

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
Train = Callable[..., list[StepReport]]
STEPS, ROW, PLACE = 3, 5, 0
OFF = 0.7
"""By how much the engine's log-prob of one token is planted below the trainer's."""


def untouched(generation: int, ids: list[list[int]], logps: list[list[float | None]]) -> None:
    """The engine tells what it has computed."""


class Planted:
    """In the second generation one token's log-prob is another; ``token`` is that token's id."""

    def __init__(self, value: float | None = None) -> None:
        self._value, self.token, self.tokens = value, -1, 0

    def __call__(self, generation: int, ids: list[list[int]], logps: list[list[float | None]]) -> None:
        if generation != 2:
            return
        self.token, self.tokens = ids[ROW][PLACE], sum(map(len, ids))
        logps[ROW][PLACE] = (logps[ROW][PLACE] or 0.0) - OFF if self._value is None else self._value


@pytest.fixture
def trained(policy: Path, make: MakeTrainer, monkeypatch: pytest.MonkeyPatch) -> Train:
    def trained(spoil: Spoil, **settings: object) -> list[StepReport]:
        engine = Engine(policy, spoil)
        trainer = make_trainer(monkeypatch, make, engine, max_steps=STEPS, **settings)
        reporter = rlvitals.attach(trainer)
        trainer.train()
        assert (engine.generations, engine.pushes) == (STEPS, STEPS)
        return tiny.steps(reporter)

    return trained


def test_an_engine_that_computes_as_the_trainer_does_has_ratios_of_1(trained: Train) -> None:
    for step in trained(untouched):
        assert step.values["ratio.rollout_max"] == pytest.approx(1.0, abs=1e-4)
        assert step.values["ratio.rollout_min"] == pytest.approx(1.0, abs=1e-4)
        assert step.values["ratio.rollout_ess"] == pytest.approx(1.0, abs=1e-6)
        assert step.values["ratio.rollout_logp_diff"] == pytest.approx(0.0, abs=1e-4)
        assert step.values["correction.weight_mean"] == pytest.approx(1.0, abs=1e-4)
        assert step.values["numerics.nonfinite_rollout"] == 0
        assert step.missing["numerics.logit_std"].startswith("not measured: another engine samples")


def test_a_token_that_the_engine_sees_otherwise_is_named_with_its_place(trained: Train) -> None:
    planted = Planted()
    first, second, third = trained(planted)
    assert second.values["ratio.rollout_max"] == pytest.approx(math.exp(OFF), rel=1e-4)
    extreme = second.extremes["ratio.rollout_max"]
    assert (extreme.sample, extreme.position, extreme.token_id) == (ROW, PLACE, planted.token)
    assert second.values["ratio.rollout_logp_diff"] == pytest.approx(OFF / planted.tokens, rel=1e-3)
    for step in (first, third):
        assert step.values["ratio.rollout_max"] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf], ids=["NaN", "infinity", "negative infinity"])
def test_a_token_without_a_finite_log_prob_is_counted_and_spoils_no_other(trained: Train, value: float) -> None:
    steps = trained(Planted(value), vllm_importance_sampling_correction=False)
    assert [step.values["numerics.nonfinite_rollout"] for step in steps] == [0, 1, 0]
    extreme = steps[1].extremes["numerics.nonfinite_rollout"]
    assert (extreme.sample, extreme.position) == (ROW, PLACE)
    assert steps[1].values["ratio.rollout_max"] == pytest.approx(1.0, abs=1e-4)
    assert [step.values["numerics.nonfinite_policy"] for step in steps] == [0, 0, 0]


def test_what_vllm_gives_no_log_prob_of_is_a_nan_to_the_trainer_and_to_us(trained: Train) -> None:
    def withheld(generation: int, ids: list[list[int]], logps: list[list[float | None]]) -> None:
        if generation == 2:
            logps[ROW][PLACE] = None

    steps = trained(withheld)
    assert [step.values["numerics.nonfinite_rollout"] for step in steps] == [0, 1, 0]
    assert steps[1].values["ratio.rollout_max"] == pytest.approx(1.0, abs=1e-4)
    assert math.isfinite(steps[1].values["policy.loss"])


def test_training_is_the_same_with_us_and_without(
    policy: Path, make: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = make_trainer(monkeypatch, make, Engine(policy, Planted()), max_steps=STEPS)
    plain.train()
    watched = make_trainer(monkeypatch, make, Engine(policy, Planted()), max_steps=STEPS)
    rlvitals.attach(watched)
    watched.train()
    assert tiny.weights_hash(watched) == tiny.weights_hash(plain)
