"""`rlvitals.attach` on a real TRL trainer: what is reported at each step, and that training never notices."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import rlvitals
from rlvitals.contract.evaluation import is_evaluation
from rlvitals.contract.metrics import BY_NAME
from rlvitals.contract.report import Event, Text
from rlvitals.integrations import telling
from rlvitals.integrations.trl import facts, measure, session
from rlvitals.integrations.trl.callback import VitalsCallback
from rlvitals.probes.ratios import NO_OLD
from tests.client.integrations import tiny
from tests.client.integrations.conftest import MakeTrainer

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def trained(trainer: Any, **attach: Any) -> rlvitals.Reporter:
    reporter = rlvitals.attach(trainer, **attach)
    trainer.train()
    return reporter


def test_weights_are_bit_for_bit_the_same_with_and_without_us(make: MakeTrainer) -> None:
    plain = make(num_iterations=2)
    plain.train()
    watched = make(num_iterations=2)  # making a trainer sets the seeds
    reporter = trained(watched)
    assert len(tiny.steps(reporter)) == 4
    assert tiny.weights_hash(watched) == tiny.weights_hash(plain)


def test_hooks_that_raise_leave_the_weights_bit_for_bit_the_same(
    make: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = make()
    plain.train()
    monkeypatch.setenv("RLVITALS_RAISE", "0")
    calls: list[str] = []

    def failing(name: str) -> Any:
        def fail(*_: Any, **__: Any) -> None:
            calls.append(name)
            raise RuntimeError(name)

        return fail

    hooks = ("logprobs_computed", "loss_computed", "gradient_measured", "rewards_calculated", "generation_begins")
    others = ("generation_done", "train_begins", "step_begins", "_finish", "train_ends")
    for name in (*hooks, *others):
        monkeypatch.setattr(session.Session, name, failing(name))
    broken = make()
    trained(broken)
    assert set(calls) == {*hooks, *others}
    assert tiny.weights_hash(broken) == tiny.weights_hash(plain)


def test_every_step_is_told_although_the_trainer_logs_every_tenth(make: MakeTrainer) -> None:
    reporter = trained(make(max_steps=3))
    assert [step.step for step in tiny.steps(reporter)] == [1, 2, 3]


def test_each_family_that_trl_can_give_is_reported(make: MakeTrainer) -> None:
    last = tiny.steps(trained(make()))[-1]
    unregistered = {name for name in last.values if name not in BY_NAME}
    assert unregistered == {f"rewards/letters/{what}" for what in ("mean", "std", "variance_share")}
    assert set(BY_NAME) - set(last.values) - set(last.missing) == set(), "each is measured or says why not"
    for name in ("text.top_id_share", "length.truncation_rate", "reward.group_std", "kl.pull_ratio", "kl.coef"):
        assert name in last.values
    for name in ("policy.loss", "policy.entropy", "policy.learning_rate", "policy.loss_tokens", "gradient.norm"):
        assert name in last.values
    for name in ("numerics.nonfinite", "progress.step_time", "progress.tokens", "progress.epoch"):
        assert name in last.values


def test_what_is_not_measured_says_why(make: MakeTrainer) -> None:
    last = tiny.steps(trained(make(beta=0.0)))[-1]
    assert last.missing["kl.k3"] == facts.BETA_IS_ZERO == "beta is 0: TRL loads no reference model"
    assert last.missing["ratio.max"] == NO_OLD
    assert "1 by construction" in NO_OLD
    assert last.missing["ratio.rollout_logp_diff"] == measure.NO_SAMPLER
    assert last.values["kl.coef"] == 0.0
    assert not set(last.values) & set(last.missing)


def test_ratios_are_measured_where_the_trainer_keeps_old_log_probs(make: MakeTrainer) -> None:
    first, second, *_ = tiny.steps(trained(make(num_iterations=2)))
    assert first.values["ratio.max"] == pytest.approx(1.0, abs=1e-5)
    assert second.values["ratio.max"] > 1.001
    assert second.extremes["ratio.max"].token_id is not None
    assert second.missing["reward.mean"] == second.missing["numerics.nonfinite_rewards"] == telling.REUSED
    assert set(BY_NAME) - set(second.values) - set(second.missing) == set()
    assert "reward.mean" in first.values


def test_micro_batches_of_a_step_add_up(make: MakeTrainer) -> None:
    whole = tiny.steps(trained(make(max_steps=1)))[0].values
    split = tiny.steps(trained(make(max_steps=1, per_device_train_batch_size=4, gradient_accumulation_steps=2)))
    halves = split[0].values
    assert halves["length.completions"] == whole["length.completions"] == 8
    for name in ("policy.loss_tokens", "reward.mean", "text.top_id_share", "reward.advantage_abs_max"):
        assert halves[name] == pytest.approx(whole[name])


def test_a_nan_loss_that_the_trainer_logs_as_zero_arrives_as_nan_at_its_step(make: MakeTrainer) -> None:
    trainer = make(max_steps=4, logging_steps=1)
    original = trainer.compute_loss

    def poisoned(*args: Any, **kwargs: Any) -> torch.Tensor:
        loss: torch.Tensor = original(*args, **kwargs)
        return loss + math.nan if trainer.state.global_step == 2 else loss  # the gradient stays finite

    trainer.compute_loss = poisoned
    reporter = trained(trainer)
    logged = {entry["step"]: entry["loss"] for entry in trainer.state.log_history if "loss" in entry}
    losses = {step.step: step.values["policy.loss"] for step in tiny.steps(reporter)}
    assert math.isfinite(logged[3])
    assert math.isnan(losses[3])
    assert all(math.isfinite(losses[step]) for step in (1, 2, 4))
    assert [step.values["numerics.nonfinite_loss"] for step in tiny.steps(reporter)] == [0, 0, 1, 0]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_non_finite_rewards_are_counted_and_kept_out_of_the_mean(make: MakeTrainer, value: float) -> None:
    def reward(completions: list[str], **_: Any) -> list[float]:
        return [value, *tiny.letters(completions[1:])]

    found = tiny.steps(trained(make(reward=reward, max_steps=1)))[0].values
    assert found["numerics.nonfinite_rewards"] == 1
    assert math.isfinite(found["reward.mean"])


def test_masking_truncated_completions_hides_them_from_the_loss_and_not_from_us(make: MakeTrainer) -> None:
    found = tiny.steps(trained(make(max_steps=1, mask_truncated_completions=True)))[0]
    cut = found.values["length.truncation_rate"]
    assert cut > 0.5
    assert found.values["policy.loss_tokens"] <= (1 - cut) * 8 * tiny.CAP
    assert found.values["length.mean"] > cut * tiny.CAP - 1e-9


def test_a_step_whose_completions_are_all_masked_has_no_entropy_although_the_trainer_logs_zero(
    make: MakeTrainer,
) -> None:
    trainer = make(max_steps=1, logging_steps=1, mask_truncated_completions=True)
    found = tiny.steps(trained(trainer))[0]
    assert found.values["policy.loss_tokens"] == 0
    assert [entry["entropy"] for entry in trainer.state.log_history if "entropy" in entry] == [0.0]
    assert found.missing["policy.entropy"] == "no token under the loss mask with finite log-probs"


def test_a_training_that_broke_off_leaves_nothing_behind_for_the_next_one(make: MakeTrainer) -> None:
    broken: list[int] = [1]

    def reward(completions: list[str], **_: Any) -> list[float]:
        if broken:
            raise RuntimeError(broken.pop())
        return tiny.letters(completions)

    trainer = make(reward=reward, max_steps=1)
    reporter = rlvitals.attach(trainer)
    with pytest.raises(RuntimeError):
        trainer.train()
    hooks = len(trainer.model.get_output_embeddings()._forward_hooks)
    callback = next(c for c in trainer.callback_handler.callbacks if isinstance(c, VitalsCallback))
    callback.session.clock._since -= 100.0  # as if so many seconds had passed
    trainer.train()
    found = tiny.steps(reporter)[0].values
    assert hooks == 1
    assert not trainer.model.get_output_embeddings()._forward_hooks
    assert found["progress.phase_reward_s"] < 100


def test_a_random_policy_is_seen_to_write_broken_utf8_and_ids_without_a_token(make: MakeTrainer) -> None:
    found = [step.values for step in tiny.steps(trained(make()))]
    assert sum(values["text.invalid_utf8_count"] for values in found) > 0
    assert max(values["text.never_trained_rate"] for values in found) > 0


def test_the_worst_and_a_few_other_completions_are_kept_with_their_rewards(make: MakeTrainer) -> None:
    texts = [record for record in tiny.records(trained(make(max_steps=2))) if isinstance(record, Text)]
    assert {text.step for text in texts} == {1, 2}
    assert {"reservoir", "worst_length"} <= {text.why for text in texts}
    assert len(texts) <= 2 * 5
    assert all(text.prompt.startswith("say ") and text.reward is not None for text in texts)
    assert any(text.truncated and len(text.token_ids) == tiny.CAP for text in texts)


def test_without_texts_no_completion_leaves_the_process(make: MakeTrainer) -> None:
    found = tiny.records(trained(make(max_steps=2), texts=False))
    assert not [record for record in found if isinstance(record, Text)]
    assert "text.top_id_share" in tiny.steps_of(found)[0].values


def test_the_run_says_its_settings_by_the_names_that_rules_use(make: MakeTrainer) -> None:
    run = rlvitals.attach(make(beta=0.07), config={"kl_target": 0.1}).run
    told = {"group_size": 4, "length_cap": tiny.CAP, "kl_coef": 0.07, "kl_target": 0.1, "num_iterations": 1}
    assert {name: run.config[name] for name in told} == told
    assert run.config["kl_estimator"] == "k3 * ratio"
    assert run.config["loss_type"] == "dapo"
    assert run.framework == "trl"
    why_not = dict(run.capabilities)
    assert "no knob was registered" in why_not.pop("set_knob")
    assert set(why_not.values()) == {""}


def test_a_run_without_a_reference_says_that_its_coefficient_cannot_be_set(make: MakeTrainer) -> None:
    run = rlvitals.attach(make(beta=0.0)).run
    assert run.capabilities["set_kl_coef"] == facts.BETA_IS_ZERO
    assert run.capabilities["pause"] == ""


def test_attaching_twice_hooks_once(make: MakeTrainer) -> None:
    trainer = make(max_steps=1)
    assert rlvitals.attach(trainer) is rlvitals.attach(trainer)
    assert sum(isinstance(c, VitalsCallback) for c in trainer.callback_handler.callbacks) == 1


def test_the_kept_log_probs_are_let_go_with_their_micro_batch(make: MakeTrainer) -> None:
    trainer = make(max_steps=1)
    trained(trainer)
    callback = next(c for c in trainer.callback_handler.callbacks if isinstance(c, VitalsCallback))
    assert callback.session._logp is None


def test_an_evaluation_is_no_part_of_a_step(make: MakeTrainer) -> None:
    trainer = make(max_steps=2)
    reporter = rlvitals.attach(trainer)
    trainer.add_callback(tiny.AtStepEnd(lambda step: trainer.evaluate(trainer.train_dataset.select(range(4)))))
    trainer.train()
    trained_on = [step for step in tiny.steps(reporter) if not is_evaluation(step.values)]
    assert [step.values["length.completions"] for step in trained_on] == [8, 8]
    evaluated = [step for step in tiny.steps(reporter) if is_evaluation(step.values)]
    assert [step.step for step in evaluated] == [1, 2]
    assert all(math.isfinite(step.values["eval_reward"]) for step in evaluated)


def test_a_checkpoint_is_told_as_an_event(make: MakeTrainer) -> None:
    reporter = trained(make(max_steps=2, save_strategy="steps", save_steps=2))
    events = [record for record in tiny.records(reporter) if isinstance(record, Event)]
    assert [event.step for event in events if event.kind == "checkpoint"] == [2]
