"""Every metric of the registry on a real GRPO run: measured, or missing with the reason that is told here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
import torch

import rlvitals
from rlvitals import notices
from rlvitals.contract.metrics import BY_NAME
from rlvitals.contract.report import StepReport, Text
from rlvitals.integrations.texts import plain_text, shown_text
from rlvitals.integrations.trl import optimizer, sampling_logits
from rlvitals.probes.phases import PhaseClock, StepPhase
from tests.client.integrations import tiny
from tests.client.integrations.conftest import MakeTrainer

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

STEPS = 3
SETTINGS: dict[str, Any] = {"max_steps": STEPS, "num_iterations": 2, "eval_strategy": "no"}
"""Two passes over each generation, so that there are old log-probs."""

NOT_HERE = {
    "critic.": "no value head",
    "component.": "where rules are judged",
    "correction.": "nothing is corrected",
    "guard.": "no such guard",
    "ratio.rollout_": "no vLLM",
    "numerics.nonfinite_rollout": "no vLLM",
    "gradient.loss_scale": "not in float16",
    "progress.gpu_memory_": "no GPU memory",
    "numerics.logit_": "each 4th generation",
    "numerics.nonfinite_logits": "each 4th generation",
    "kl.in_loss": "importance ratio",
    "kl.parameter_grad_norm": "off unless asked for",
    "text.script_drift": "first steps",
    "length.suggested_cap": "at least the cap",
    "reward.advantage_equal_group_max": "all equal",
}
"""What this run cannot give (name, or how it begins) → a word of the reason that is told."""


@pytest.fixture
def steps(make: MakeTrainer) -> list[StepReport]:
    trainer = make(**SETTINGS)
    reporter = rlvitals.attach(trainer, reward_range=(0.0, 10.0))
    trainer.train()
    return tiny.steps(reporter)


def test_every_metric_is_measured_or_says_why_not(steps: list[StepReport]) -> None:
    step = steps[2]  # the first with a generation, old log-probs and a policy that has left its reference
    assert set(BY_NAME) - set(step.values) == set(step.missing), "each is in one of the two"
    for name, reason in step.missing.items():
        expected = [word for start, word in NOT_HERE.items() if name.startswith(start)]
        assert expected, f"{name} is missing: {reason}"
        assert expected[0] in reason, name
    for start in NOT_HERE:
        known = [name for name in BY_NAME if name.startswith(start)]
        assert not known or set(known) & set(step.missing), start


def test_values_are_of_the_kind_that_the_registry_says(steps: list[StepReport]) -> None:
    shares = [name for name, m in BY_NAME.items() if name.endswith("_share") and m.unit == "1"]
    for step in steps:
        assert all(0.0 <= step.values[name] <= 1.0 for name in shares if name in step.values)
        counts = [
            name for name in step.values if BY_NAME.get(name) and BY_NAME[name].unit in ("{value}", "{char}")
        ]
        assert all(step.values[name] >= 0 and step.values[name] % 1 == 0 for name in counts)


def test_the_phases_of_a_step_add_up_to_no_more_than_its_time(steps: list[StepReport]) -> None:
    for step in steps:
        parts = [step.values[f"progress.phase_{name}_s"] for name in ("rollout", "reward", "reference", "update")]
        assert all(part >= 0 for part in parts)
        assert sum(parts) <= step.values["progress.step_time"]
    assert steps[0].values["progress.phase_rollout_s"] > 0 == steps[1].values["progress.phase_rollout_s"]


def test_evaluating_and_saving_have_phases_of_their_own(make: MakeTrainer) -> None:
    trainer = make(max_steps=2, save_strategy="steps", save_steps=1)
    trainer.add_callback(tiny.AtStepEnd(lambda step: trainer.evaluate(trainer.train_dataset.select(range(4)))))
    reporter = rlvitals.attach(trainer)
    trainer.train()
    last = tiny.steps(reporter)[-1].values
    assert last["progress.phase_eval_s"] > 0
    assert last["progress.phase_checkpoint_s"] > 0


def test_an_evaluations_own_forward_passes_are_not_told_as_the_reference_models(
    make: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer, entered = make(max_steps=1), []
    trainer.add_callback(tiny.AtStepEnd(lambda step: trainer.evaluate(trainer.train_dataset.select(range(4)))))
    enter = PhaseClock.enter

    def watched(clock: PhaseClock, phase: StepPhase) -> None:
        entered.append((phase, StepPhase.EVAL in clock._open))
        enter(clock, phase)

    monkeypatch.setattr(PhaseClock, "enter", watched)
    rlvitals.attach(trainer)
    trainer.train()
    assert (StepPhase.REFERENCE, False) in entered
    assert (StepPhase.REFERENCE, True) not in entered


def test_the_gradient_by_parameter_and_the_step_itself_are_seen(steps: list[StepReport]) -> None:
    for step in steps:
        assert 0 < step.values["gradient.top_parameter_share"] <= 1
        assert step.extremes["gradient.top_parameter_share"].token.endswith("weight")
        assert step.values["gradient.update_ratio"] > 0
        assert step.values["gradient.skipped_steps"] == 0 == step.values["gradient.nonfinite_parameters"]


def test_a_rate_of_zero_is_seen_as_a_step_that_moved_nothing(make: MakeTrainer) -> None:
    trainer = make(max_steps=1, learning_rate=0.0)
    reporter = rlvitals.attach(trainer)
    trainer.train()
    (step,) = tiny.steps(reporter)
    assert (step.values["gradient.skipped_steps"], step.values["gradient.update_ratio"]) == (1, 0)


def test_the_parameter_whose_gradient_breaks_first_is_named(make: MakeTrainer) -> None:
    trainer = make(max_steps=1)
    broken = "model.layers.0.mlp.up_proj.weight"
    parameter = dict(trainer.model.named_parameters())[broken]
    parameter.register_hook(lambda gradient: torch.full_like(gradient, math.nan))
    reporter = rlvitals.attach(trainer)
    trainer.train()
    (step,) = tiny.steps(reporter)
    assert step.values["gradient.nonfinite_parameters"] == 1
    assert step.extremes["gradient.nonfinite_parameters"].token == broken
    assert math.isnan(step.values["gradient.norm"])


def test_logits_are_seen_where_completions_are_sampled(steps: list[StepReport]) -> None:
    first = steps[0]
    assert first.values["numerics.logit_min"] < 0 < first.values["numerics.logit_max"]
    assert 0 < first.values["numerics.logit_std"] < 1
    assert first.extremes["numerics.logit_max"].position == 0
    assert steps[1].missing["numerics.logit_std"] == sampling_logits.UNSEEN


def test_the_hook_on_the_logits_is_gone_when_training_has_ended(make: MakeTrainer) -> None:
    trainer = make(max_steps=1)
    rlvitals.attach(trainer)
    trainer.train()
    assert not trainer.model.get_output_embeddings()._forward_hooks


def test_an_extreme_names_the_completion_that_was_kept_although_the_trainer_shuffles(make: MakeTrainer) -> None:
    settings = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}
    trainer = make(max_steps=6, beta=0.3, learning_rate=0.05, **settings)
    reporter = rlvitals.attach(trainer)
    trainer.train()
    found = tiny.records(reporter)
    kept = {(text.step, text.sample): text for text in found if isinstance(text, Text)}
    seen = 0
    for step in tiny.steps_of(found):
        for name in ("kl.k3_max", "kl.k1_max", "ratio.reference_min", "kl.overflow_margin"):
            extreme = step.extremes.get(name)
            text = kept.get((step.step, extreme.sample)) if extreme and extreme.sample is not None else None
            if extreme is not None and text is not None and extreme.position is not None:
                assert text.token_ids[extreme.position] == extreme.token_id, (step.step, name)
                seen += 1
    assert seen >= 4
    for text in kept.values():
        if text.why != "worst_ratio":
            assert text.tokens is not None
            assert {len(text.tokens.scores[name]) for name in ("ref_logp", "advantage")} == {len(text.token_ids)}


def test_entropies_of_tokens_give_the_mean_that_the_trainer_logs(make: MakeTrainer) -> None:
    trainer = make(max_steps=2, logging_steps=1)
    reporter = rlvitals.attach(trainer)
    trainer.train()
    logged = {entry["step"]: entry["entropy"] for entry in trainer.state.log_history if "entropy" in entry}
    for step in tiny.steps(reporter):
        assert step.values["policy.entropy"] == pytest.approx(logged[step.step], rel=1e-5)
        assert 0 < step.values["policy.entropy_p01"] <= step.values["policy.entropy_p10"]


def test_the_kl_gradient_by_the_parameters_is_the_whole_gradient_where_nothing_else_pulls(
    make: MakeTrainer,
) -> None:
    def ends_equal(completions: list[str], trainer_state: Any, **_: Any) -> list[float]:
        return tiny.letters(completions) if trainer_state.global_step < 2 else [1.0] * len(completions)

    trainer = make(reward=ends_equal, beta=0.3, max_steps=4, max_grad_norm=1e9)
    reporter = rlvitals.attach(trainer, kl_gradient_every=2)
    trainer.train()
    found = tiny.steps(reporter)
    assert found[3].values["kl.parameter_grad_norm"] == pytest.approx(found[3].values["gradient.norm"], rel=1e-3)
    assert found[3].values["kl.parameter_grad_norm"] > 0
    assert "every 2 steps" in found[2].missing["kl.parameter_grad_norm"]


def test_measuring_the_kl_gradient_leaves_the_weights_bit_for_bit_the_same(make: MakeTrainer) -> None:
    plain, watched = make(beta=0.3), None
    plain.train()
    watched = make(beta=0.3)
    rlvitals.attach(watched, kl_gradient_every=1)
    watched.train()
    assert tiny.weights_hash(watched) == tiny.weights_hash(plain)


def test_a_reference_that_is_not_there_is_the_reason_for_all_that_needs_it(make: MakeTrainer) -> None:
    trainer = make(beta=0.0, max_steps=1)
    reporter = rlvitals.attach(trainer, kl_gradient_every=1)
    trainer.train()
    missing = tiny.steps(reporter)[0].missing
    names = ("kl.k3", "kl.overflow_margin", "ratio.reference_max", "numerics.nonfinite_reference")
    assert {missing[name] for name in (*names, "kl.parameter_grad_norm")} == {
        "beta is 0: TRL loads no reference model"
    }


def test_deepspeed_is_refused_with_its_reason(make: MakeTrainer) -> None:
    trainer = make(max_steps=1)
    trainer.is_deepspeed_enabled = True
    watch = optimizer.OptimizerWatch(trainer)
    watch.step_begins(1)
    assert list(watch.gradients()) == list(watch.step_done()) == []
    assert set(watch.absent().missing.values()) == {optimizer.DEEPSPEED}


def test_groups_are_told_apart_by_the_range_that_was_given(make: MakeTrainer) -> None:
    def best(completions: list[str], **_: Any) -> list[float]:
        return [10.0] * 4 + [3.0] * (len(completions) - 4)

    trainer = make(reward=best, max_steps=1)
    reporter = rlvitals.attach(trainer, reward_range=(0.0, 10.0))
    trainer.train()
    values: Mapping[str, float] = tiny.steps(reporter)[0].values
    split = [values[f"reward.all_{what}_groups"] for what in ("right", "wrong", "equal")]
    assert split == [0.5, 0.0, 0.5]
    assert values["reward.advantages_all_zero"] == 1.0
    assert values["rewards/best/variance_share"] == pytest.approx(1.0)


def test_a_range_that_is_none_is_told_and_training_goes_on(
    make: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLVITALS_RAISE", "0")
    trainer = make(max_steps=1)
    reporter = rlvitals.attach(trainer, reward_range=(1.0, 0.0))
    trainer.train()
    assert tiny.steps(reporter)[0].values["reward.range_given"] == 0.0


def test_a_range_of_ids_that_was_given_is_counted_and_what_it_holds_is_told(
    make: MakeTrainer, caplog: pytest.LogCaptureFixture
) -> None:
    notices.forget()
    trainer = make(max_steps=1)
    reporter = rlvitals.attach(trainer, token_ranges={"byte_ids": [(0, 10_000)], "reserved_ids": "auto"})
    trainer.train()
    assert tiny.steps(reporter)[0].values["text.byte_piece_ratio"] == 1.0
    assert "0-10000: " in caplog.text


@pytest.mark.parametrize(
    ("prompt", "plain"),
    [
        ("hi", "hi"),
        ([{"role": "user", "content": "你好"}], "你好"),
        ([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}]}], "a\n"),
        (None, ""),
    ],
)
def test_a_prompts_scripts_are_those_of_its_text_and_not_of_its_markup(prompt: Any, plain: str) -> None:
    assert plain_text(prompt) == plain
    assert isinstance(shown_text(prompt), str)
