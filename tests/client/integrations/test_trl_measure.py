"""The closed forms against autograd on the trainer's own loss, for each way in which TRL weighs tokens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Qwen2ForCausalLM
from trl import RLOOConfig, RLOOTrainer

import rlvitals
from rlvitals.integrations.trl import pull
from rlvitals.probes import gradients
from tests.client.integrations import tiny
from tests.client.integrations.conftest import MakeTrainer

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

LOSSES = ["dapo", "grpo", "bnpo", "dr_grpo"]


class Autograd:
    """Installed before `attach`: the norm of d loss / d log-probs of each training step, from the graph itself."""

    def __init__(self, trainer: Any) -> None:
        self.norms: list[float] = []
        self._logp: torch.Tensor | None = None
        self._logprobs, self._loss = trainer._get_per_token_logps_and_entropies, trainer.compute_loss
        trainer._get_per_token_logps_and_entropies = self._keep
        trainer.compute_loss = self._differentiate

    def _keep(self, *args: Any, **kwargs: Any) -> Any:
        result = self._logprobs(*args, **kwargs)
        if result[0].requires_grad:
            self._logp = result[0]
        return result

    def _differentiate(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        loss: torch.Tensor = self._loss(*args, **kwargs)
        assert self._logp is not None
        (gradient,) = torch.autograd.grad(loss, self._logp, retain_graph=True)
        self.norms.append(float(gradient.double().norm()))
        return loss


def ends_equal(completions: list[str], trainer_state: Any, **_: Any) -> list[float]:
    """Contrast for two generations, none afterwards: then the loss holds nothing but the KL term."""
    return tiny.letters(completions) if trainer_state.global_step < 2 else [1.0] * len(completions)


def run(trainer: Any) -> tuple[list[float], list[Mapping[str, float]]]:
    autograd = Autograd(trainer)
    reporter = rlvitals.attach(trainer)
    trainer.train()
    return autograd.norms, [step.values for step in tiny.steps(reporter)]


@pytest.mark.parametrize("corrected", [True, False], ids=["k3 times ratio", "plain k3"])
@pytest.mark.parametrize("loss_type", LOSSES)
def test_the_kl_gradient_norm_is_the_one_that_autograd_finds(
    make: MakeTrainer, loss_type: str, corrected: bool
) -> None:
    norms, found = run(
        make(
            reward=ends_equal,
            loss_type=loss_type,
            use_bias_correction_kl=corrected,
            num_iterations=2,
            max_steps=6,
            beta=0.3,
        )
    )
    assert norms[4] > 0
    for step in (4, 5):  # old and new log-probs are the same in the first of the two, not in the second
        assert found[step]["kl.grad_norm"] == pytest.approx(norms[step], rel=1e-4)


@pytest.mark.parametrize("loss_type", LOSSES)
def test_the_policy_pull_is_the_one_that_autograd_finds(make: MakeTrainer, loss_type: str) -> None:
    norms, found = run(make(loss_type=loss_type, beta=1e-7, max_steps=3))
    for step in (1, 2):
        pull = found[step]["kl.grad_norm"] / found[step]["kl.pull_ratio"]
        assert pull == pytest.approx(norms[step], rel=1e-4)


def test_micro_batches_give_the_gradient_of_the_whole_step(make: MakeTrainer) -> None:
    settings = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "max_steps": 4, "beta": 0.3}
    norms, found = run(make(reward=ends_equal, **settings))
    whole = (norms[6] ** 2 + norms[7] ** 2) ** 0.5
    assert found[3]["kl.grad_norm"] == pytest.approx(whole, rel=1e-4)


def test_sequence_level_ratios_withhold_what_the_closed_form_does_not_hold_for(make: MakeTrainer) -> None:
    trainer = make(importance_sampling_level="sequence", num_iterations=2, max_steps=2)
    reporter = rlvitals.attach(trainer)
    trainer.train()
    last = tiny.steps(reporter)[-1]
    for name in ("ratio.clip_low_share", "ratio.clip_high_share", "kl.grad_norm", "kl.pull_ratio"):
        assert name not in last.values
        assert "per sequence" in last.missing[name]
    assert "kl.k3" in last.values


@pytest.mark.parametrize(
    ("loss_type", "settings"),
    [("grpo", {}), ("dapo", {}), ("cispo", {}), ("cispo", {"epsilon_high": 5.0}), ("sapo", {"num_iterations": 1})],
)
def test_the_policys_pull_is_the_gradient_of_the_trainers_own_loss(
    make: MakeTrainer, monkeypatch: pytest.MonkeyPatch, loss_type: str, settings: dict[str, Any]
) -> None:
    trainer = make(**{"loss_type": loss_type, "num_iterations": 2, "beta": 0.0, "max_steps": 2} | settings)
    exact, told = Autograd(trainer), []
    measured = gradients.measure_policy_pull

    def kept(*args: Any, **kwargs: Any) -> Any:
        found = measured(*args, **kwargs)
        told.append(found.tally().sums["policy.pull_sq"] ** 0.5)
        return found

    monkeypatch.setattr(gradients, "measure_policy_pull", kept)
    rlvitals.attach(trainer)
    trainer.train()
    assert len(told) == 2
    assert told == pytest.approx(exact.norms, rel=1e-4)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"top_entropy_quantile": 0.5}, pull.SOME_TOKENS),
        (
            {"importance_sampling_level": "sequence", "loss_type": "grpo", "use_bias_correction_kl": False},
            pull.SEQUENCE_PULL,
        ),
        ({"loss_type": "sapo"}, pull.OWN_WEIGHTS),
        ({"delta": 1.5, "loss_type": "grpo"}, pull.DELTA),
        ({"off_policy_mask_threshold": 0.5}, pull.OFF_POLICY_MASK),
    ],
)
def test_a_loss_whose_pull_has_no_closed_form_says_so(
    make: MakeTrainer, settings: dict[str, Any], reason: str
) -> None:
    trainer = make(num_iterations=2, max_steps=1, **settings)
    reporter = rlvitals.attach(trainer)
    trainer.train()
    found = tiny.steps(reporter)[0]
    assert found.missing["kl.pull_ratio"] == found.missing["kl.share_of_gradient"] == reason
    assert "kl.grad_norm" in found.values


def test_old_log_probs_of_whole_completions_are_not_told_as_a_ratio_of_1(policy: Path, make: MakeTrainer) -> None:
    template = make(max_steps=1)
    kept = ("output_dir", "max_completion_length", "per_device_train_batch_size", "num_generations", "max_steps")
    settings = {name: getattr(template.args, name) for name in kept}
    trainer = RLOOTrainer(
        model=Qwen2ForCausalLM.from_pretrained(str(policy)),
        processing_class=template.processing_class,
        reward_funcs=tiny.letters,
        args=RLOOConfig(**settings, report_to=[], use_cpu=True, bf16=False, save_strategy="no", disable_tqdm=True),
        train_dataset=template.train_dataset,
    )
    reporter = rlvitals.attach(trainer)
    trainer.train()
    found = tiny.steps(reporter)[0]
    assert found.missing["ratio.max"] == pull.SEQUENCE_PULL
    assert found.values["policy.loss_tokens"] > 0
