"""What TRL of this environment would show, trainers that hide it, and what each of them says for a reason."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import rlvitals
from rlvitals.contract.command import CommandKind
from rlvitals.contract.report import Event, EventKind
from rlvitals.integrations.hooks import HookState, HookTable
from rlvitals.integrations.steering import LEAST_COEFFICIENT, Refused
from rlvitals.integrations.trl import facts, places, steering, support
from tests.client.integrations import tiny
from tests.client.integrations.conftest import MakeTrainer

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def states(table: HookTable) -> dict[str, HookState]:
    return {hook.name: hook.state(0) for hook in table}


def test_the_installed_release_would_be_patched_everywhere() -> None:
    table = support.hooks()
    assert table.version == places.release() == support.VERSIONS[-1]
    assert set(states(table).values()) == {HookState.PATCHED}
    assert {hook.target for hook in table} >= {"GRPOTrainer.compute_loss", "Accelerator.clip_grad_norm_"}


def test_without_trl_each_place_is_absent_for_that_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "release", lambda: "")
    table = support.hooks()
    assert {(hook.patched, hook.why) for hook in table} == {(False, support.NOT_INSTALLED)}


def test_a_trl_that_cannot_be_imported_is_told_with_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise ImportError("no module named vllm")

    monkeypatch.setattr(support, "_grpo", broken)
    table = support.hooks()
    assert {hook.why for hook in table} == {"ImportError: no module named vllm"}
    assert set(states(table).values()) == {HookState.ABSENT}


def test_the_support_module_loads_neither_torch_nor_a_trainer() -> None:
    code = (
        "import sys; import rlvitals.integrations.trl.support; "
        "print([name for name in ('torch', 'numpy', 'transformers', 'trl') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("release", "name", "words"),
    [
        ("0.17.0", places.REWARDS, "TRL 0.17.0 has no _calculate_rewards: it came with 0.19"),
        ("0.15.2", places.GENERATION, "it came with 0.16"),
        ("1.99.0", places.LOGPROBS, places.SCALARS),
        ("1.99.0", places.LOSS, "MyTrainer has no compute_loss"),
    ],
)
def test_a_method_that_is_not_there_is_told_by_release_or_by_trainer(release: str, name: str, words: str) -> None:
    place = next(place for place in places.PLACES if place.name == name)
    assert words in places.why_absent(place, "MyTrainer", release)


def test_the_table_of_an_attached_trainer_is_told_at_the_start_and_when_all_is_seen(
    make: MakeTrainer,
) -> None:
    trainer = make(max_steps=2, logging_steps=1)
    reporter = rlvitals.attach(trainer)
    trainer.train()
    tables = [r for r in tiny.records(reporter) if isinstance(r, Event) and r.kind is EventKind.HOOK]
    first, last = tables[0].payload["hooks"], tables[-1].payload["hooks"]
    assert {row["state"] for row in first} == {"patched"}  # type: ignore[union-attr, index, call-overload]
    still = {row["hook"] for row in last if row["state"] != "seen"}  # type: ignore[union-attr, index, call-overload]
    assert still == {places.EVALUATE, places.SAVE}


def test_a_hook_of_ours_that_raises_is_told_as_failing(make: MakeTrainer, monkeypatch: pytest.MonkeyPatch) -> None:
    from rlvitals.integrations.trl.session import Session

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("moved away")

    monkeypatch.setenv("RLVITALS_RAISE", "0")
    monkeypatch.setattr(Session, "rewards_calculated", fail)
    trainer = make(max_steps=2)
    reporter = rlvitals.attach(trainer)
    trainer.train()
    tables = [r for r in tiny.records(reporter) if isinstance(r, Event) and r.kind is EventKind.HOOK]
    rows: Any = tables[-1].payload["hooks"]
    told = {row["hook"]: row for row in rows}
    assert told[places.REWARDS]["state"] == "failing"
    assert told[places.REWARDS]["why"] == "RuntimeError: moved away"
    assert told[places.LOSS]["state"] == "seen"


class Fused:
    """Stands in for Liger's loss object, which is not installed here."""

    beta = 0.05


@pytest.mark.parametrize("name", ["liger_grpo_loss", "liger_loss"])
def test_ligers_loss_hides_log_probs_and_gets_the_coefficient_too(make: MakeTrainer, name: str) -> None:
    """As TRL before 1.14 has it: compute_loss goes past the method that shows log-probs."""
    trainer = make(max_steps=2)
    fused = Fused()
    setattr(trainer, name, fused)
    shown, hidden = trainer._get_per_token_logps_and_entropies, "_get_per_token_logps_and_entropies"
    original = trainer.compute_loss

    def past_the_method(*args: Any, **kwargs: Any) -> Any:
        wrapped = getattr(trainer, hidden)
        setattr(trainer, hidden, shown)
        try:
            return original(*args, **kwargs)
        finally:
            setattr(trainer, hidden, wrapped)

    trainer.compute_loss = past_the_method
    reporter = rlvitals.attach(trainer)
    trainer.train()
    last = tiny.steps(reporter)[-1]
    assert last.missing["kl.k3"] == last.missing["ratio.max"] == places.LIGER
    assert "policy.loss" in last.values
    assert "text.top_id_share" in last.values
    tables = [r for r in tiny.records(reporter) if isinstance(r, Event) and r.kind is EventKind.HOOK]
    rows: Any = tables[-1].payload["hooks"]
    assert {row["hook"]: (row["state"], row["why"]) for row in rows}[places.LOGPROBS] == ("absent", places.LIGER)
    assert steering.set_kl_coef(trainer, 0.01) == (0.05, 0.01)
    assert (trainer.beta, fused.beta) == (0.01, 0.01)


def test_a_subclass_that_overrides_the_loss_is_seen_as_grpo_is(make: MakeTrainer) -> None:
    trainer = make(max_steps=2)

    class Own(type(trainer)):  # type: ignore[misc]
        def _compute_loss(self, model: Any, inputs: Any) -> Any:
            return 2 * super()._compute_loss(model, inputs)

    trainer.__class__ = Own
    reporter = rlvitals.attach(trainer)
    trainer.train()
    assert {"kl.k3", "policy.loss", "reward.mean"} <= set(tiny.steps(reporter)[-1].values)


def test_asynchronous_grpo_is_watched_by_what_it_logs_for_a_reason(make: MakeTrainer) -> None:
    trainer = make(max_steps=1)
    fake: Any = SimpleNamespace(compute_loss=lambda: None, accelerator=trainer.accelerator)
    assert not places.shows_tensors(fake)
    place = next(place for place in places.PLACES if place.name == places.LOGPROBS)
    assert places.why_absent(place, "AsyncGRPOTrainer", "1.16.0") == places.ASYNC


# -- where a trainer keeps its coefficient -------------------------------------------------------


class PPOTrainer:
    def __init__(self, value: Any) -> None:
        self.args = SimpleNamespace(kl_coef=value, num_ppo_epochs=4)
        self.ref_model = object()


class OnlineDPOTrainer:
    def __init__(self, value: Any) -> None:
        self._beta, self.ref_model, self.args = value, object(), SimpleNamespace()

    @property
    def beta(self) -> Any:
        return self._beta


@pytest.mark.parametrize("kind", [PPOTrainer, OnlineDPOTrainer])
def test_the_coefficient_is_set_where_the_trainer_reads_it(kind: Any) -> None:
    trainer = kind(0.05)
    assert facts.kl_coef(trainer) == 0.05
    assert steering.set_kl_coef(trainer, 0.2) == (0.05, 0.2)
    assert facts.kl_coef(trainer) == 0.2
    assert steering.set_kl_coef(trainer, 0.0) == (0.2, LEAST_COEFFICIENT), "never 0"


def test_a_schedule_of_coefficients_is_no_coefficient() -> None:
    trainer = OnlineDPOTrainer([0.1, 0.2])
    assert facts.kl_coef(trainer) is None
    with pytest.raises(Refused, match="schedule"):
        steering.set_kl_coef(trainer, 0.1)


@pytest.mark.parametrize(("value", "reason"), [(0.0, facts.BETA_IS_ZERO), (None, facts.NO_COEFFICIENT)])
def test_a_coefficient_is_never_set_from_zero_or_from_nothing(value: Any, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        steering.set_kl_coef(PPOTrainer(value), 0.1)


def test_the_beta_of_a_distillation_is_no_kl_coefficient() -> None:
    distillation = SimpleNamespace(beta=0.5, args=SimpleNamespace(), teacher_model=object())
    assert facts.kl_coef(distillation) is None
    assert facts.no_kl_control(distillation) == facts.NO_COEFFICIENT


def test_only_a_loop_of_ppos_own_never_stops() -> None:
    stop = CommandKind.STOP.value
    assert facts.loop_capabilities(PPOTrainer(0.1).args)[stop] == facts.NEVER_STOPS
    renamed = SimpleNamespace(num_ppo_epochs=None, num_iterations=1)  # RLOO kept the old name for a while
    assert facts.loop_capabilities(renamed)[stop] == ""


@pytest.mark.parametrize(
    ("told", "divisor"),
    [
        ({"loss_is_scaled_for_ga": True}, 1.0),
        ({"loss_is_scaled_for_ga": False}, 4.0),
        ({"model_accepts_loss_kwargs": False, "compute_loss_func": None}, 4.0),
        ({"model_accepts_loss_kwargs": False, "compute_loss_func": "set"}, 1.0),
        ({"model_accepts_loss_kwargs": True, "compute_loss_func": None}, 1.0),
    ],
)
def test_a_loss_that_is_divided_later_is_told_divided(told: dict[str, Any], divisor: float) -> None:
    trainer = SimpleNamespace(args=SimpleNamespace(gradient_accumulation_steps=4), **told)
    assert facts.divided_later(trainer) == divisor


@pytest.mark.parametrize(
    ("release", "rescales"), [("1.9.0", False), ("1.9.1", True), ("0.29.1", False), ("", True)]
)
def test_the_release_says_whether_a_generations_tokens_are_those_of_one_accumulation(
    release: str, rescales: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "release", lambda: release)
    assert places.rescales_generation() is rescales
