"""verl's V1 trainer, by objects of its shape: the batch, the scalars, what is asked of it, and what goes wrong."""

from __future__ import annotations

import math
import sys
import weakref
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from rlvitals.contract.command import Command, CommandKind, CommandState, Outcome
from rlvitals.contract.metrics import METRICS, Family
from rlvitals.contract.report import Event, EventKind, Phase, StepReport, Text
from rlvitals.integrations.hooks import HookTable
from rlvitals.integrations.verl import places, session, v1, workers
from rlvitals.verdict import ControlLimits
from tests.client.integrations import tiny, verl_shaped
from tests.client.integrations.verl_shaped import PPOTrainerSync, columns, jagged

Make = Callable[..., PPOTrainerSync]
SOON = timedelta(minutes=5)


@pytest.fixture(autouse=True)
def shaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[verl_shaped.Queue]:
    """Offline, with verl's modules as they are shaped, patched as in a process of a job."""
    monkeypatch.setenv("RLVITALS_MODE", "offline")
    monkeypatch.setenv("RLVITALS_DIR", str(tmp_path / "spool"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    queue, verl = verl_shaped.Queue(), ModuleType("verl")
    verl.DataProto = verl_shaped.DataProto  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "verl", verl)
    monkeypatch.setitem(sys.modules, "transfer_queue", queue)
    monkeypatch.setattr(places, "_HOOKS", HookTable("verl"))
    monkeypatch.setattr(session, "_SESSIONS", weakref.WeakKeyDictionary())
    monkeypatch.setattr(workers, "LEDGER", workers.Ledger())
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield queue
    torch.set_num_threads(threads)


@pytest.fixture
def make(shaped: verl_shaped.Queue) -> Make:
    """Trainers whose class is this test's own, since wrapping changes it."""

    def make(tokenizer: Any = None, **changes: Any) -> PPOTrainerSync:
        base = type("PPOTrainer", (verl_shaped.PPOTrainer,), {"fit": verl_shaped.PPOTrainer.fit})
        mode = type("PPOTrainerSync", (base,), {"on_step_end": PPOTrainerSync.on_step_end})
        module = ModuleType("trainer_base")
        module.PPOTrainer = base  # type: ignore[attr-defined]
        v1.patch_trainer(module)
        made: PPOTrainerSync = mode(shaped, verl_shaped.config(**changes), tokenizer)
        return made

    return make


def train(trainer: PPOTrainerSync) -> list[Any]:
    """All that was journalled."""
    trainer.fit()
    return tiny.records(session.session_of(trainer).reporter)


def steps(found: list[Any]) -> list[StepReport]:
    return tiny.steps_of(found)


def events(found: list[Any], kind: EventKind) -> list[Event]:
    return [record for record in found if isinstance(record, Event) and record.kind is kind]


def ask(trainer: PPOTrainerSync, at: int, *kinds: CommandKind, argument: float | None = None) -> None:
    """Commands that arrive when a step has been logged, as over the wire."""

    def arrive(step: int) -> None:
        if step == at:
            control = session.session_of(trainer).reporter.control
            control.limits = ControlLimits(cooldown_steps=0)
            expires = datetime.now(timezone.utc) + SOON
            given = dict.fromkeys((CommandKind.SET_KL_COEF, CommandKind.SCALE_LR), argument)
            control.offer([Command(id=k.value, kind=k, expires_at=expires, argument=given.get(k)) for k in kinds])

    trainer.at_step = arrive


def outcomes(found: list[Any]) -> dict[str, Outcome]:
    return {o.command_id: o for o in found if isinstance(o, Outcome) and o.state is not CommandState.DELIVERED}


# -- signals -------------------------------------------------------------------------------------------


def test_each_step_that_ran_is_told_once(make: Make) -> None:
    trainer = make()
    found = steps(train(trainer))
    assert [step.step for step in found] == trainer.ran == [1, 2, 3]


def test_every_metric_of_the_registry_is_given_or_missing_with_a_reason(make: Make) -> None:
    told = steps(train(make()))[-1]
    registered = {metric.name for metric in METRICS if metric.family is not Family.SELF}
    assert not registered - told.values.keys() - told.missing.keys()
    assert all(told.missing.values())
    assert not told.values.keys() & told.missing.keys()


def test_truncation_is_that_of_the_configured_limit_and_never_verls_own_share(make: Make) -> None:
    told = steps(train(make()))[-1]
    # without stop ids (no tokenizer here) a cut cannot be told from a stop, and verl's 0.5 does not stand in
    assert "length.truncation_rate" not in told.values
    assert not [name for name in told.values if "clip_ratio" in name]


def test_rows_that_fill_the_batch_up_are_left_out(make: Make) -> None:
    told = steps(train(make()))[-1]
    lengths = [len(row) for row in verl_shaped.completions()]
    assert told.values["length.mean"] == pytest.approx(np.mean(lengths))
    assert told.values["policy.loss_tokens"] == sum(lengths)


def test_rewards_are_grouped_by_uid(make: Make) -> None:
    trainer = make()
    scores = [1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0]
    lengths = [len(row) for row in [*verl_shaped.completions(), [1]]]
    told_scores = jagged([[0.0] * (n - 1) + [s] for n, s in zip(lengths, scores, strict=True)])
    trainer.columns_of = lambda step: columns(rm_scores=told_scores)
    told = steps(train(trainer))[-1]
    assert told.values["reward.mean"] == pytest.approx(np.mean(scores[:-1]))
    assert told.values["reward.zero_std_groups"] == pytest.approx(2 / 3)


def test_the_sampler_and_the_reference_are_compared_token_by_token(make: Make) -> None:
    trainer = make()
    old = columns()["old_log_probs"]
    rows = [row.tolist() for row in old.unbind()]
    rows[3][2] -= 5.0
    trainer.columns_of = lambda step: columns(rollout_log_probs=old, old_log_probs=jagged(rows))
    told = steps(train(trainer))[-1]
    assert told.values["ratio.rollout_min"] == pytest.approx(math.exp(-5.0), rel=1e-5)
    worst = told.extremes["ratio.rollout_min"]
    assert (worst.token_id, worst.position, worst.sample) == (9, 2, 3)


def test_kl_and_its_gradient_are_those_of_verls_estimator_and_aggregation(make: Make) -> None:
    told = steps(train(make()))[-1]
    tokens, d = sum(len(row) for row in verl_shaped.completions()), 0.1
    assert told.values["kl.k3"] == pytest.approx(math.exp(d) - 1 - d, rel=1e-4)
    assert told.values["kl.coef"] == pytest.approx(0.01)
    # token-mean over one mini-batch: each token pulls with c (1 - e^d) / N
    pull = 0.01 * (math.exp(d) - 1) / tokens
    assert told.values["kl.grad_norm"] == pytest.approx(pull * math.sqrt(tokens), rel=1e-4)


def test_kl_in_the_reward_has_no_gradient_and_says_so(make: Make) -> None:
    trainer = make(
        actor_rollout_ref__actor__use_kl_loss=False,
        algorithm__use_kl_in_reward=True,
        algorithm__kl_penalty="kl",
        algorithm__kl_ctrl={"type": "fixed", "kl_coef": 0.2},
    )
    trainer.kl_ctrl_in_reward = type("FixedKLController", (), {"value": 0.2})()  # type: ignore[attr-defined]
    told = steps(train(trainer))[-1]
    assert told.values["kl.coef"] == 0.2
    assert "reward" in told.missing["kl.grad_norm"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_gradient_norm_that_is_not_finite_is_told_as_it_is_at_that_very_step(make: Make, value: float) -> None:
    trainer = make()
    trainer.metrics_of = lambda step: trainer.usual(step) | ({"actor/grad_norm": value} if step == 2 else {})
    found = {step.step: step for step in steps(train(trainer))}
    assert found[1].values["gradient.norm"] == 1.5
    assert repr(found[2].values["gradient.norm"]) == repr(value)
    assert found[2].values["numerics.nonfinite_gradient"] == 1
    assert found[3].values["numerics.nonfinite_gradient"] == 0


def test_a_norm_that_verl_did_not_log_is_missing(make: Make) -> None:
    trainer = make()
    trainer.metrics_of = lambda step: {"actor/pg_loss": 0.1}
    told = steps(train(trainer))[-1]
    assert "gradient.norm" not in told.values
    assert told.missing["gradient.norm"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_log_probs_that_are_not_finite_are_counted_and_named(make: Make, value: float) -> None:
    trainer = make()
    rows = [row.tolist() for row in columns()["old_log_probs"].unbind()]
    rows[0][1] = value
    trainer.columns_of = lambda step: columns(old_log_probs=jagged(rows))
    told = steps(train(trainer))[-1]
    assert told.values["numerics.nonfinite_policy"] == 1
    assert math.isfinite(told.values["kl.k3"])


def test_columns_that_nobody_wrote_leave_reasons_behind(make: Make) -> None:
    trainer = make()
    trainer.columns_of = lambda step: columns(rollout_log_probs=None, ref_log_prob=None, entropy=None)
    told = steps(train(trainer))[-1]
    assert (
        "calculate_log_probs" in told.missing["ratio.rollout_max"]
        or "sampling" in told.missing["ratio.rollout_max"]
    )
    assert "kl.k3" not in told.values
    assert told.missing["kl.k3"]


def test_new_over_old_is_not_taken_for_one_where_no_worker_has_seen_it(make: Make) -> None:
    told = steps(train(make()))[-1]
    assert "ratio.max" not in told.values
    assert told.missing["ratio.max"]


def test_an_end_of_turn_that_nobody_chose_and_the_loss_trains_on_is_named(make: Make) -> None:
    trainer = make()
    old = [row.tolist() for row in columns()["old_log_probs"].unbind()]
    sampled = [[x - 0.05 for x in row] for row in old]
    # the agent loop appends it: the sampler has no log-prob for it, the policy finds it unlikely
    old[0][2], sampled[0][2] = -9.0, 0.0
    trainer.columns_of = lambda step: columns(old_log_probs=jagged(old), rollout_log_probs=jagged(sampled))
    told = steps(train(trainer))[-1]
    assert told.values["policy.forced_loss_tokens"] == 1
    assert told.extremes["policy.forced_loss_tokens"].token_id == 1


def test_tools_tokens_count_against_the_limit_and_are_not_the_policys(make: Make) -> None:
    trainer = make()
    masks = [[1] * len(row) for row in verl_shaped.completions()] + [[0]]
    masks[1] = [1, 1, 0, 0, 1, 1]
    trainer.columns_of = lambda step: columns(response_mask=jagged(masks, torch.long))
    told = steps(train(trainer))[-1]
    assert told.values["length.max"] == 6
    assert told.values["policy.loss_tokens"] == sum(map(sum, masks))


def test_verls_own_scalars_come_along_and_phases_have_the_registrys_names(make: Make) -> None:
    told = steps(train(make()))[-1]
    assert told.values["policy.loss"] == 0.25
    assert told.values["policy.learning_rate"] == pytest.approx(0.01)
    assert told.values["progress.phase_rollout_s"] == 2.0
    assert told.values["progress.phase_update_s"] == 1.0


def test_the_peak_of_the_workers_memory_is_told_in_bytes_and_a_cpus_is_none(make: Make) -> None:
    trainer = make()
    gib = {1: 0.0, 2: 1.5, 3: 2.0}
    trainer.metrics_of = lambda step: trainer.usual(step) | {"actor/perf/max_memory_allocated_gb": gib[step]}
    found = steps(train(trainer))
    assert "progress.gpu_memory_peak_bytes" in found[0].missing
    assert [step.values["progress.gpu_memory_peak_bytes"] for step in found[1:]] == [1.5 * 2**30, 2.0 * 2**30]


def test_a_validation_is_told_at_its_step_and_is_none_itself(make: Make) -> None:
    trainer = make()
    key = "val-core/letters/reward/mean@1"
    trainer.metrics_of = lambda step: trainer.usual(step) | ({key: 0.5} if step == 2 else {})
    found = train(trainer)
    told = [record for record in found if isinstance(record, StepReport) and key in record.values]
    assert [record.step for record in told] == [2]
    assert "reward.mean" not in told[0].values
    assert [step.step for step in steps(found) if "reward.mean" in step.values] == [1, 2, 3]


def test_a_validation_before_the_training_is_no_step(make: Make) -> None:
    trainer = make()
    told = session.session_of(trainer)
    told.logged(0, {"val-core/letters/reward/mean@1": 0.25, "val-aux/num_turns/mean": np.int32(2)})
    found = train(trainer)
    assert [step.step for step in steps(found) if "reward.mean" in step.values] == [1, 2, 3]
    assert steps(found)[0].values["val-core/letters/reward/mean@1"] == 0.25


def test_completions_are_kept_with_token_ids_and_rewards(make: Make) -> None:
    texts = [record for record in train(make()) if isinstance(record, Text)]
    assert texts
    known = [tuple(row) for row in verl_shaped.completions()]
    assert all(text.token_ids in known for text in texts)


def test_the_configuration_is_told_whole_and_without_secrets(make: Make) -> None:
    trainer = make()
    train(trainer)
    told: Any = session.session_of(trainer).reporter.run.config
    assert (told["group_size"], told["length_cap"], told["kl_coef"]) == (2, 6, 0.01)
    assert told["loss_type"] == "token-mean"
    assert told["skips_nonfinite_updates"] == 1
    assert told["trainer"]["data"]["api_key"] == "(removed)"
    assert told["trainer"]["actor_rollout_ref"]["rollout"]["name"] == "vllm"


# -- control -------------------------------------------------------------------------------------------


def test_the_coefficient_is_set_on_all_ranks_and_read_back(make: Make) -> None:
    trainer = make()
    ask(trainer, 1, CommandKind.SET_KL_COEF, argument=0.02)
    found = train(trainer)
    told = outcomes(found)["set_kl_coef"]
    assert (told.state, told.step, told.before, told.after) == (CommandState.APPLIED, 2, 0.01, 0.02)
    assert [rank.actor.config.kl_loss_coef for rank in trainer.actor_rollout_wg.ranks] == [0.02, 0.02]
    # it is carried out when step 2 has been made: that one is told, and measured, with what it was made with
    assert [step.values["kl.coef"] for step in steps(found)] == [0.01, 0.01, 0.02]
    norms = [step.values["kl.grad_norm"] for step in steps(found)]
    assert norms == pytest.approx([norms[0], norms[0], 2 * norms[0]])


def test_a_rank_that_kept_another_coefficient_refuses_the_command(make: Make) -> None:
    trainer = make()
    stubborn = trainer.actor_rollout_wg.ranks[1].actor
    stubborn.loss_fn = None
    stubborn.config = None
    ask(trainer, 1, CommandKind.SET_KL_COEF, argument=0.02)
    told = outcomes(train(trainer))["set_kl_coef"]
    assert told.state is CommandState.REFUSED
    assert told.reason


def test_a_run_without_kl_says_why_its_coefficient_cannot_be_set(make: Make) -> None:
    trainer = make(actor_rollout_ref__actor__use_kl_loss=False)
    train(trainer)
    told = session.session_of(trainer).reporter.run.capabilities
    assert "use_kl_loss" in told["set_kl_coef"]
    assert told["pause"] == told["stop"] == told["checkpoint"] == told["scale_lr"] == ""


def test_distillation_has_a_loss_of_its_own_and_says_so(make: Make) -> None:
    trainer = make(distillation__enabled=True)
    train(trainer)
    assert "distillation" in session.session_of(trainer).reporter.run.capabilities["set_kl_coef"]


def test_the_learning_rate_is_scaled_on_all_ranks(make: Make) -> None:
    trainer = make()
    ask(trainer, 1, CommandKind.SCALE_LR, argument=0.5)
    told = outcomes(train(trainer))["scale_lr"]
    assert (told.state, told.before, told.after) == (CommandState.APPLIED, 0.1, 0.05)
    rates = [rank.actor.engine.optimizer.param_groups[0]["lr"] for rank in trainer.actor_rollout_wg.ranks]
    assert rates == [0.05, 0.05]


def test_a_checkpoint_comes_before_the_weights_go_to_the_engine(make: Make) -> None:
    trainer = make()
    ask(trainer, 1, CommandKind.CHECKPOINT)
    found = train(trainer)
    assert trainer.saved == [2]
    told = events(found, EventKind.CHECKPOINT)
    assert [(event.step, event.payload["folder"]) for event in told] == [(2, "/checkpoints/global_step_2")]


def test_stop_writes_a_checkpoint_and_ends_with_the_step_in_which_it_arrived(make: Make) -> None:
    trainer = make(trainer__total_training_steps=9)
    ask(trainer, 1, CommandKind.STOP)
    found = train(trainer)
    assert outcomes(found)["stop"].state is CommandState.APPLIED
    assert (trainer.saved, trainer.ran) == ([2], [1, 2])
    assert [event.payload["phase"] for event in events(found, EventKind.PHASE)][-1] == Phase.FINISHED.value


def test_weights_that_are_not_finite_are_not_saved_and_the_last_finite_step_is_named(make: Make) -> None:
    trainer = make(trainer__total_training_steps=9)
    trainer.metrics_of = lambda step: trainer.usual(step) | ({"actor/grad_norm": math.nan} if step > 1 else {})
    ask(trainer, 1, CommandKind.STOP)
    with torch.no_grad():
        trainer.actor_rollout_wg.ranks[1].actor.engine.module.weight[0, 0] = math.nan
    found = train(trainer)
    assert trainer.saved == []
    assert trainer.ran == [1, 2]
    notes = [event.payload.get("stopped_without_checkpoint", "") for event in events(found, EventKind.NOTE)]
    assert any("finite gradient is 1" in str(note) for note in notes)


def test_a_checkpoint_that_verl_has_just_written_is_not_written_twice(make: Make) -> None:
    trainer = make()

    def stepped(step: int) -> dict[str, Any]:
        if step == 2:
            trainer._save_checkpoint()
        return trainer.usual(step)

    trainer.metrics_of = stepped
    ask(trainer, 1, CommandKind.CHECKPOINT)
    found = train(trainer)
    assert trainer.saved == [2]
    assert {event.step for event in events(found, EventKind.CHECKPOINT)} == {2}


def test_a_pause_holds_between_two_steps_until_it_is_released(make: Make) -> None:
    trainer = make()
    beats: list[int] = []

    def beat(seconds: float) -> None:
        beats.append(trainer.global_steps)
        if len(beats) == 2:
            control = session.session_of(trainer).reporter.control
            control.offer([Command(id="r", kind=CommandKind.RESUME, expires_at=datetime.now(timezone.utc) + SOON)])

    ask(trainer, 1, CommandKind.PAUSE)
    arrive = trainer.at_step

    def at_step(step: int) -> None:
        session.session_of(trainer).vitals._commands.wait = beat
        arrive(step)

    trainer.at_step = at_step
    found = train(trainer)
    assert beats == [2, 2]
    assert trainer.ran == [1, 2, 3]
    assert trainer.synced == [1, 2, 3]
    assert outcomes(found)["pause"].state is CommandState.APPLIED


# -- what goes wrong -----------------------------------------------------------------------------------


def test_a_job_that_breaks_off_is_told_as_failed_and_raises_its_own_error(make: Make) -> None:
    trainer = make()

    def breaks(step: int) -> None:
        raise MemoryError("out of memory")

    trainer.at_step = breaks
    with pytest.raises(MemoryError, match="out of memory"):
        trainer.fit()
    found = tiny.records(session.session_of(trainer).reporter)
    assert events(found, EventKind.PHASE)[-1].payload["phase"] == Phase.FAILED.value


def test_hooks_that_raise_leave_the_training_as_it_is(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLVITALS_RAISE", "0")

    def broken(*_: Any, **__: Any) -> None:
        raise ValueError("on purpose")

    for name in ("columns", "session_of"):
        monkeypatch.setattr(v1, name, broken)
    monkeypatch.setattr(session.Session, "step_ends", broken)
    trainer = make()
    trainer.fit()
    assert trainer.ran == trainer.synced == [1, 2, 3]


def test_a_batch_that_cannot_be_read_is_told_by_its_hook_and_steps_go_on(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLVITALS_RAISE", "0")
    trainer = make()
    trainer.columns_of = lambda step: {"uid": ["a"]}
    found = train(trainer)
    assert [step.step for step in steps(found)] == [1, 2, 3]
    table: Any = events(found, EventKind.HOOK)[-1].payload["hooks"]
    row = next(row for row in table if row["hook"] == "batch")
    assert row["state"] == "failing"
    assert "responses" in row["why"]


def test_workers_that_have_died_are_not_asked_for_ever(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLVITALS_RAISE", "0")
    trainer = make(trainer__total_training_steps=6)
    asked: list[int] = []
    ask_workers = trainer.actor_rollout_wg.execute_with_func_generator

    def counted(*arguments: Any) -> Any:
        asked.append(trainer.global_steps)
        return ask_workers(*arguments)

    monkeypatch.setattr(trainer.actor_rollout_wg, "execute_with_func_generator", counted)
    trainer.actor_rollout_wg.broken = True
    assert len(steps(train(trainer))) == 6
    assert asked == [1, 2, 3]
