"""slime's flags with stand-ins for its modules; its own contracts run in tests/trainers/test_slime.py."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import torch

from rlvitals.contract.command import Command, CommandKind, Outcome
from rlvitals.contract.report import Event, EventKind, StepReport, Text
from rlvitals.follow import Follower
from rlvitals.integrations import slime
from rlvitals.integrations.slime import arguments, flags, rollout, support, train
from rlvitals.spool import journals
from tests.client.integrations import slime_fake


@pytest.fixture(autouse=True)
def job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The environment of a job, which all of its processes have."""
    monkeypatch.setenv("RLVITALS_MODE", "offline")
    monkeypatch.setenv("RLVITALS_DIR", str(tmp_path / "spool"))
    monkeypatch.setenv("RLVITALS_RUN_ID", "r")
    monkeypatch.setenv("RLVITALS_ATTEMPT", "a1")
    yield
    rollout.forget()
    train.forget()


def records(folder: Path) -> list[tuple[str, Any]]:
    """(writer, record) of all journals in the test's spool."""
    found: list[tuple[str, Any]] = []
    for journal in journals(folder / "spool"):
        follower = Follower(journal)
        items = [item.record for item in follower.read(100_000)]
        found += [(journal.name.partition(".")[2].partition(".")[0], record) for record in items]
        follower.close()
    return found


def steps(folder: Path, role: str) -> list[StepReport]:
    return [record for writer, record in records(folder) if writer == role and isinstance(record, StepReport)]


def train_step(model: Any, args: Any, rollout_id: int, step_id: int, batch: Any = None, shift: float = 0.1) -> Any:
    logits = torch.full((5,), -1.0 + shift, requires_grad=True)
    data = [(batch or slime_fake.micro_batch(), logits)]
    result = model.train_one_step(
        args, rollout_id, step_id, data, [slime_fake.Model()], slime_fake.Optimizer(), None
    )
    return result, logits.grad


def command(kind: CommandKind, argument: float | None = None) -> Command:
    later = datetime.now(timezone.utc) + timedelta(hours=1)
    return Command(id=kind.value, kind=kind, argument=argument, expires_at=later)


def test_a_rollout_is_told_at_the_first_step_that_trains_on_it(policy: Path, tmp_path: Path) -> None:
    args = slime_fake.arguments(str(policy))
    assert slime.log_rollout(3, args, slime_fake.samples(), {"rollout/mine": 2.0}, 1.5) is False
    (step,) = steps(tmp_path, "rollout")
    assert step.step == 6, "two optimizer steps train on each rollout"
    assert step.values["length.mean"] == 2.0
    assert step.values["length.truncation_rate"] == 0.25
    assert step.values["reward.zero_std_groups"] == 0.5
    assert step.values["progress.phase_rollout_s"] == 1.5
    assert step.values["rollout/mine"] == 2.0
    assert "text.invalid_utf8_count" in step.values
    assert not (step.values.keys() | step.missing.keys()) & arguments.TRAIN_TELLS, "those are another writer's"
    texts = [record for _, record in records(tmp_path) if isinstance(record, Text)]
    assert any(text.truncated and text.token_ids == (1, 2, 3, 4) for text in texts)


def test_with_the_one_flag_alone_the_losses_are_missing_with_the_flag_that_brings_them(tmp_path: Path) -> None:
    args = slime_fake.arguments(custom_megatron_before_train_step_hook_path=None)
    slime.log_rollout(0, args, slime_fake.samples(), None, 1.0)
    (step,) = steps(tmp_path, "rollout")
    assert "before-train-step-hook" in step.missing["kl.k3"]
    assert "rlvitals.run was given no tokenizer" in step.missing["text.invalid_utf8_count"]


def test_a_reward_that_is_not_there_is_missing_and_one_that_is_nan_is_nan(tmp_path: Path) -> None:
    args, told = slime_fake.arguments(), slime_fake.samples()
    told[1].reward = math.nan
    slime.log_rollout(0, args, told, None, 1.0)
    told[1].reward = None
    slime.log_rollout(1, args, told, None, 1.0)
    told[1].reward = math.inf
    slime.log_rollout(2, args, told, None, 1.0)
    nan, missing, infinite = steps(tmp_path, "rollout")
    assert nan.values["numerics.nonfinite_rewards"] == 1
    assert "reward.mean" in missing.missing
    assert infinite.values["numerics.nonfinite_rewards"] == 1


def test_the_users_own_function_is_called_and_decides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(flags.LOG, f"{__name__}.takes_over")
    assert slime.log_rollout(0, slime_fake.arguments(), slime_fake.samples(), None, 1.0) is True
    assert len(steps(tmp_path, "rollout")) == 1, "ours is told all the same"


def takes_over(rollout_id: int, args: Any, samples: Any, extra: Any, seconds: float) -> bool:
    return True


def test_samples_that_cannot_be_read_harm_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("RLVITALS_RAISE", raising=False)
    assert slime.log_rollout(0, slime_fake.arguments(), [object()], None, 1.0) is False
    hooks = [
        record for _, record in records(tmp_path) if isinstance(record, Event) and record.kind is EventKind.HOOK
    ]
    assert "failing" in str(hooks[-1].payload)


def test_evaluations_have_a_cadence_of_their_own(tmp_path: Path) -> None:
    args, data = slime_fake.arguments(), {"math": {"rewards": [1.0, 0.0], "truncated": [True, False]}}
    slime.log_rollout(1, args, slime_fake.samples(), None, 1.0)
    assert slime.log_eval_rollout(0, args, data, {"acc": 0.25}) is False
    slime.log_eval_rollout(1, args, {"math": {"rewards": [math.nan]}}, None)
    step, first, second = steps(tmp_path, "rollout")
    assert step.step == 2
    assert (first.step, second.step) == (0, 2), "an evaluation of an earlier step is no rewind"
    assert (first.values["eval/math"], first.values["eval/math-truncated_ratio"]) == (0.5, 0.5)
    assert first.values["eval/acc"] == 0.25
    assert math.isnan(second.values["eval/math"])


def test_a_training_step_is_measured_from_slimes_own_loss(
    monkeypatch: pytest.MonkeyPatch, policy: Path, tmp_path: Path
) -> None:
    model, args = slime_fake.install(monkeypatch), slime_fake.arguments(str(policy))
    for step_id in range(2):
        train_step(model, args, 1, step_id)
    train_step(model, args, 2, 0, shift=math.nan)
    slime.before_train_step(args, 2, 1, [slime_fake.Model()], slime_fake.Optimizer(), None)
    first, second, third = steps(tmp_path, "train")
    assert [first.step, second.step, third.step] == [2, 3, 4]
    assert second.values["ratio.max"] == pytest.approx(math.exp(0.1))
    assert second.extremes["ratio.max"].token_id in (1, 2, 3, 5)
    assert second.values["ratio.rollout_max"] == pytest.approx(math.exp(0.1))
    assert second.values["ratio.reference_min"] == pytest.approx(math.exp(0.3), rel=1e-5)
    assert second.values["kl.coef"] == 0.01
    assert second.values["policy.entropy"] == 0.5
    assert second.values["policy.loss_tokens"] == 4
    assert second.values["gradient.norm"] == 0.7
    assert second.values["policy.learning_rate"] == 1e-3
    assert second.values["kl.grad_norm"] > 0
    assert not (second.values.keys() | second.missing.keys()) & arguments.ROLLOUT_TELLS
    assert third.values["numerics.nonfinite_policy"] == 4
    assert math.isnan(third.values["policy.loss"])


def test_every_metric_of_the_training_side_is_given_or_missing_with_a_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model, args = slime_fake.install(monkeypatch), slime_fake.arguments()
    for step_id in range(2):
        train_step(model, args, 0, step_id)
    slime.before_train_step(args, 1, 0, [slime_fake.Model()], slime_fake.Optimizer(), None)
    step = steps(tmp_path, "train")[-1]
    assert step.values.keys() | step.missing.keys() >= arguments.TRAIN_TELLS
    assert all(step.missing.values())


def test_reused_log_probs_make_no_ratio_of_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model, args = slime_fake.install(monkeypatch), slime_fake.arguments(global_batch_size=4)
    train_step(model, args, 0, 0, slime_fake.micro_batch(old=None))
    train_step(model, args, 1, 0, slime_fake.micro_batch(old=None))
    step = steps(tmp_path, "train")[-1]
    assert "ratio.max" not in step.values
    assert step.missing["ratio.max"] == arguments.REUSED
    assert step.values["ratio.rollout_max"] == pytest.approx(math.exp(0.2))


def test_training_is_bit_for_bit_the_same_and_slime_gets_its_functions_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = slime_fake.install(monkeypatch)
    monkeypatch.setattr(slime, "before_train_step", lambda *_: None)
    original = model.train_one_step
    plain = train_step(model, slime_fake.arguments(), 0, 0)
    slime.init(slime_fake.arguments())
    assert model.train_one_step is not original
    watched = train_step(model, slime_fake.arguments(), 0, 0)
    assert torch.equal(plain[1], watched[1])
    assert plain[0][1] == watched[0][1]
    train.forget()
    assert model.train_one_step is original


def test_what_raises_of_ours_leaves_training_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("RLVITALS_RAISE", raising=False)
    model, args = slime_fake.install(monkeypatch), slime_fake.arguments()
    plain = train_step(model, args, 0, 0)

    def broken(*_: Any, **__: Any) -> Any:
        raise ValueError("ours")

    monkeypatch.setattr(train.batches, "of_loss", broken)
    watched = train_step(model, args, 0, 1)
    assert torch.equal(plain[1], watched[1])
    slime.before_train_step(args, 1, 0, [slime_fake.Model()], slime_fake.Optimizer(), None)
    assert [step.step for step in steps(tmp_path, "train")] == [0, 1]


def test_the_coefficient_is_changed_where_slime_reads_it_and_read_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model, args = slime_fake.install(monkeypatch), slime_fake.arguments()
    train_step(model, args, 0, 0)
    training = train.training_of(args, "actor")
    assert training is not None
    training.vitals.reporter.control.offer([command(CommandKind.SET_KL_COEF, 0.05)])
    train_step(model, args, 0, 1)
    assert args.kl_loss_coef == 0.01, "never in the middle of a rollout's steps"
    train_step(model, args, 1, 0)
    assert args.kl_loss_coef == 0.05
    (outcome,) = [record for _, record in records(tmp_path) if isinstance(record, Outcome)]
    assert (outcome.before, outcome.after, outcome.step) == (0.01, 0.05, 2)
    assert steps(tmp_path, "train")[-1].values["kl.coef"] == 0.05


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"use_kl_loss": False}, "no reference model"), ({"kl_loss_coef": 0.0}, "coefficient is 0")],
)
def test_a_coefficient_that_has_no_reference_or_is_zero_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    model, args = slime_fake.install(monkeypatch), slime_fake.arguments(**changes)
    train_step(model, args, 0, 0)
    training = train.training_of(args, "actor")
    assert training is not None
    training.vitals.reporter.control.offer([command(CommandKind.SET_KL_COEF, 0.05)])
    train_step(model, args, 1, 0)
    (outcome,) = [record for _, record in records(tmp_path) if isinstance(record, Outcome)]
    assert reason in outcome.reason


def test_a_stop_saves_what_the_last_rollout_made_and_leaves_slimes_loop(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model, args = slime_fake.install(monkeypatch), slime_fake.arguments(save="out")
    saved: list[Any] = []
    model.save = lambda *what: saved.append(what)
    train_step(model, args, 4, 0)
    training = train.training_of(args, "actor")
    assert training is not None
    training.vitals.reporter.control.offer([command(CommandKind.STOP)])
    with pytest.raises(flags.StoppedOnRequest):
        train_step(model, args, 5, 0)
    assert [what[0] for what in saved] == [4]
    events = [record for _, record in records(tmp_path) if isinstance(record, Event)]
    assert any(e.kind is EventKind.CHECKPOINT and e.payload["folder"] == "out/iter_0000004" for e in events)


def test_a_gradient_of_nan_is_told_before_the_update(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    slime_fake.install(monkeypatch)
    args = slime_fake.arguments()
    slime.postprocess(args, 0, slime_fake.micro_batch())
    assert steps(tmp_path, "train") == []
    slime.postprocess(args, 1, slime_fake.micro_batch(old=-90.0, ref=-1.0))
    (step,) = steps(tmp_path, "train")
    assert (step.step, step.values["kl.nan_gradient_tokens"]) == (2, 4)
    events = [record for _, record in records(tmp_path) if isinstance(record, Event)]
    assert any("NaN" in str(event.payload.get("nan_gradient_ahead", "")) for event in events)


def test_both_forms_of_the_postprocess_flag_are_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    slime_fake.install(monkeypatch)
    slime.postprocess(slime_fake.arguments())
    assert steps(tmp_path, "train") == []


def test_a_custom_loss_is_measured_from_the_rollouts_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model, args = slime_fake.install(monkeypatch), slime_fake.arguments(loss_type="custom_loss")
    slime.postprocess(args, 0, slime_fake.micro_batch())
    model.train_one_step(args, 0, 0, [], [slime_fake.Model()], slime_fake.Optimizer(), None)
    slime.postprocess(args, 1, slime_fake.micro_batch())
    (step,) = steps(tmp_path, "train")
    assert step.values["ratio.rollout_max"] == pytest.approx(math.exp(0.1))
    assert "ratio.max" in step.missing


def test_the_settings_go_to_the_run_without_its_secrets(policy: Path, tmp_path: Path) -> None:
    slime.log_rollout(0, slime_fake.arguments(str(policy)), slime_fake.samples(), None, 1.0)
    manager = next(iter(rollout._MANAGERS.values()))
    config = manager.vitals.reporter.run.config
    assert config["kl_loss_type"] == "low_var_kl"
    assert config["wandb_key"] != "a-secret"
    assert config["kl_coef"] == 0.01, "that of the loss: bounds of commands are factors of it"
    assert config["reward_kl_coef"] == 0.0
    assert (config["epsilon_high"], config["group_size"], config["length_cap"]) == (0.28, 2, 4)


def test_the_table_of_hooks_says_that_slime_is_not_installed() -> None:
    rows = support.hooks().rows()
    assert {row["hook"] for row in rows} >= {support.LOG, support.BEFORE, support.LOSS}
    assert all(row["why"] for row in rows)
