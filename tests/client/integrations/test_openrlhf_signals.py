"""OpenRLHF by objects of its shapes: what is told of a step, by which names, and that training never notices."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from rlvitals.contract.metrics import METRICS, Family
from rlvitals.contract.report import Event, EventKind, Phase, StepReport
from rlvitals.integrations.openrlhf import controller, rank
from rlvitals.integrations.openrlhf.arguments import Arguments
from tests.client.integrations import tiny
from tests.client.integrations.openrlhf import (
    ANSWER,
    DOTTED,
    GROUP,
    PROMPT,
    ROWS,
    Trainer,
    namespace,
    put_ray,
)

REGISTERED = {metric.name for metric in METRICS if metric.family is not Family.SELF}
IN_REWARD = {"algo__kl__use_loss": False, "algo__kl__estimator": "k1"}


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLVITALS_MODE", "offline")
    monkeypatch.setenv("RLVITALS_DIR", str(tmp_path / "spool"))
    put_ray(monkeypatch)


def watched(trainer: Trainer) -> list[Any]:
    """Trains to the end; all that was journalled."""
    watch = controller.begin(trainer, {})
    assert watch is not None
    assert trainer.fit() == "done"
    controller.end(watch, Phase.FINISHED)
    return tiny.records(watch.vitals.reporter)


def steps(trainer: Trainer) -> list[StepReport]:
    return tiny.steps_of(watched(trainer))


def test_every_step_is_seen_and_every_metric_is_given_or_missing_with_a_reason() -> None:
    trainer = Trainer(steps=4)
    found = steps(trainer)
    assert [step.step for step in found] == trainer.ran == [1, 2, 3, 4]
    assert all(set(step.values) | set(step.missing) >= REGISTERED for step in found)
    assert all(reason for step in found for reason in step.missing.values())
    given = {"ratio.max", "kl.k3", "kl.grad_norm", "kl.coef", "reward.mean", "reward.group_std", "length.mean"}
    assert given <= set(found[-1].values)


def test_the_largest_ratio_of_all_ranks_is_told_with_its_token() -> None:
    spoilt: list[Any] = []

    def spoil(made: Any) -> None:
        made.action_log_probs[ROWS - 1, PROMPT] -= 2.0  # on the second rank
        spoilt.append(int(made.sequences[ROWS - 1, PROMPT + 1]))

    found = steps(Trainer(steps=1, change=spoil))[0]
    assert found.values["ratio.max"] > math.exp(1.9)
    assert found.extremes["ratio.max"].token_id == spoilt[0]
    assert found.extremes["ratio.max"].sample is None


def test_the_kl_gradient_is_that_of_the_loss_over_all_ranks() -> None:
    made: list[Any] = []
    trainer = Trainer(steps=1, change=made.append)
    table = trainer.ranks[0].trainer.table.detach().clone()
    found = steps(trainer)[0]
    logp = table.log_softmax(0)[made[0].sequences[:, 1:]].requires_grad_()
    ratio = logp - made[0].base_action_log_probs
    term = (((-ratio).exp() - 1 + ratio) * made[0].action_mask).sum() / made[0].action_mask.sum()
    (slope,) = torch.autograd.grad(0.1 * term, logp)
    assert found.values["kl.grad_norm"] == pytest.approx(float(slope.double().norm()), rel=1e-5)


def test_truncation_is_the_engines_word_and_never_the_share_that_reached_the_context_limit() -> None:
    found = steps(Trainer(steps=1))[0]
    assert found.values["length.truncation_rate"] == 1 / ROWS
    assert found.values["openrlhf/response_clip_ratio"] == 0.0


def test_what_a_tool_wrote_between_two_actions_is_not_the_policys() -> None:
    def insert(made: Any) -> None:
        made.action_mask[:, PROMPT] = 0

    found = steps(Trainer(steps=1, change=insert))[0]
    assert found.values["length.mean"] == ANSWER - 1
    assert found.values["policy.loss_tokens"] == ROWS * (ANSWER - 1)


def test_rows_come_back_into_the_order_of_their_prompts_before_groups_are_formed() -> None:
    def shuffle(made: Any) -> None:
        made.rewards = torch.tensor([1.0, 0.0] * GROUP)
        made.index = [row // 2 + (row % 2) * GROUP for row in range(ROWS)]

    found = steps(Trainer(steps=1, change=shuffle))[0]
    assert found.values["reward.zero_std_groups"] == 1.0


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_log_prob_or_reward_that_is_no_number_is_told_as_what_it_is(value: float) -> None:
    def spoil(made: Any) -> None:
        made.action_log_probs[0, PROMPT] = value
        made.rewards[1] = value

    found = steps(Trainer(steps=1, change=spoil))[0]
    assert found.values["numerics.nonfinite_old"] == 1
    assert found.values["numerics.nonfinite_rewards"] == 1
    kind = {math.inf: "positive_infinity", -math.inf: "negative_infinity"}.get(value, "nan")
    assert found.values[f"numerics.{kind}"] >= 1


def test_a_loss_that_is_nan_is_told_at_its_step() -> None:
    trainer = Trainer(steps=1)
    trainer.logs = {"policy_loss": math.nan, "actor_grad_norm": math.nan}

    def spoil(made: Any) -> None:
        made.rewards[:] = math.nan

    trainer.change = spoil
    found = steps(trainer)[0]
    assert math.isnan(found.values["policy.loss"])
    assert found.values["numerics.nonfinite_loss"] >= 1
    assert found.values["numerics.nonfinite_gradient"] == 1


def test_kl_in_the_reward_is_measured_by_the_controller_and_has_no_gradient() -> None:
    def spread(made: Any) -> None:
        made.kl = made.action_log_probs - made.base_action_log_probs
        made.base_action_log_probs = None

    found = steps(Trainer(steps=1, change=spread, **IN_REWARD))[0]
    assert found.values["kl.k1"] != 0
    assert found.values["ratio.reference_max"] > 0
    assert "kl.grad_norm" not in found.values
    assert "part of the reward" in found.missing["kl.grad_norm"]
    assert "part of the reward" in found.missing["kl.grad_max"]


def test_without_a_reference_no_kl_is_told() -> None:
    def drop(made: Any) -> None:
        made.base_action_log_probs = None

    found = steps(Trainer(steps=1, change=drop, algo__kl__init_coef=0.0, algo__kl__use_loss=False))[0]
    assert not {name for name in found.values if name.startswith("kl.")} - {"kl.coef"}
    assert "no reference model" in found.missing["kl.k3"]
    assert found.values["kl.coef"] == 0.0


def test_a_critic_is_told_with_the_variance_that_it_explains() -> None:
    def value(made: Any) -> None:
        made.values = made.rewards[:, None] * made.action_mask

    trainer = Trainer(steps=1, change=value)
    trainer.critic_model_group = object()  # type: ignore[assignment]
    trainer.logs = {"critic_loss": 0.125, "critic_grad_norm": 2.0, "values": 0.5}
    found = steps(trainer)[0]
    assert found.values["critic.value_loss"] == 0.125
    assert found.values["critic.gradient_norm"] == 2.0
    assert found.values["critic.explained_variance"] < 1
    assert found.values["openrlhf/values"] == 0.5


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (controller.Controller, "_step_ends"),
        (controller.Controller, "_before_advantages"),
        (controller.Controller, "_after_advantages"),
        (controller.Controller, "_before_boundary"),
        (controller.Controller, "ask"),
        (controller.Controller, "_run"),
        (rank.Rank, "_ends"),
        (rank.Rank, "_loss_seen"),
        (rank.Rank, "_backward"),
        (rank.Rank, "take"),
        (rank.Rank, "install"),
    ],
)
def test_whatever_of_ours_fails_training_ends_with_the_same_weights(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("on purpose")

    plain = Trainer()
    plain.fit()
    monkeypatch.setenv("RLVITALS_RAISE", "0")
    monkeypatch.setattr(owner, name, fail)
    trainer = Trainer()
    assert controller.watching(trainer, {}, trainer.fit) == "done"
    assert trainer.weights() == plain.weights()
    assert trainer.ran == plain.ran


def test_training_is_the_same_bit_for_bit_and_its_errors_are_its_own() -> None:
    plain, trainer = Trainer(), Trainer()
    plain.fit()
    watched(trainer)
    assert trainer.weights() == plain.weights()

    def fail() -> None:
        raise RuntimeError("the trainer's own")

    with pytest.raises(RuntimeError, match="the trainer's own"):
        controller.watching(Trainer(), {}, fail)


def test_the_hooks_are_told_with_what_they_have_seen() -> None:
    events = [r for r in watched(Trainer()) if isinstance(r, Event) and r.kind is EventKind.HOOK]
    told: Any = events[-1].payload["hooks"]
    rows = {row["hook"]: row["state"] for row in told if not row["optional"]}
    assert rows == dict.fromkeys(("controller", "step boundary", "experiences", "actor ranks"), "seen")


def test_an_evaluation_is_told_by_its_own_and_no_training_step() -> None:
    trainer = Trainer(steps=3)
    trainer.evaluated_after = 2
    found = steps(trainer)
    told = [step for step in found if "eval_sums_pass1" in step.values]
    assert [(step.step, step.values["eval_sums_pass1"]) for step in told] == [(2, 0.25)]
    assert [step.step for step in found if "reward.mean" in step.values] == [1, 2, 3]


def test_the_trainers_own_checkpoints_are_told() -> None:
    events = watched(Trainer(steps=4, ckpt__save_steps=2))
    found = [r for r in events if isinstance(r, Event) and r.kind is EventKind.CHECKPOINT]
    assert [(event.step, event.payload["folder"]) for event in found] == [
        (2, "ckpt/_actor/global_step2"),
        (4, "ckpt/_actor/global_step4"),
    ]


def test_flat_and_dotted_arguments_say_the_same() -> None:
    flat = namespace(
        {
            "init_kl_coef": 0.1,
            "use_kl_loss": True,
            "kl_estimator": "k3",
            "advantage_estimator": "group_norm",
            "n_samples_per_prompt": GROUP,
            "rollout_batch_size": ROWS // GROUP,
            "train_batch_size": ROWS,
            "max_epochs": 1,
            "generate_max_len": ANSWER,
            "eps_clip_low_high": (0.2, 0.3),
            "use_wandb": "0123456789abcdef",
        }
    )
    old, new = Arguments(flat, "0.9.1"), Arguments(namespace(DOTTED), "0.11.2")
    for name in ("group_size", "length_cap", "advantage_estimator", "scale_rewards", "kl_in_loss"):
        assert old.config()[name] == new.config()[name]
    assert (old.kl_coef, old.epsilons, old.updates) == (new.kl_coef, new.epsilons, new.updates)
    assert (old.form.clamp, new.form.clamp) == ("after", "before and after")
    assert "0123456789abcdef" not in f"{old.config()}{new.config()}"
