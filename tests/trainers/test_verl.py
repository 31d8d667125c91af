"""The real ``main_ppo`` of verl 0.9.1 on a CPU, both trainers: signals, and no harm.

The accelerator and the sampling engine are stand-ins (tests/trainers/verl), all else is verl's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rlvitals.contract.metrics import METRICS, Family
from rlvitals.contract.report import Event, EventKind, StepReport, Text
from rlvitals.follow import Follower
from rlvitals.spool import journals
from tests.trainers.verl.job import JOB_S, RAISING, STEPS, TRAINERS, Job

POISONED = 3
VALIDATING = ("trainer.val_before_train=True", "trainer.test_freq=2", "data.val_max_samples=2")
REGISTERED = {metric.name for metric in METRICS if metric.family is not Family.SELF}


@pytest.fixture(scope="session")
def python(environment: Callable[[str], Path]) -> Path:
    return environment("verl-0.9")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("verl")


@pytest.fixture(scope="session", params=TRAINERS)
def trainer(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@dataclass(slots=True, kw_only=True)
class Run:
    """What a job left behind."""

    code: int
    log: str
    digests: list[str]
    records: list[Any]
    called: set[str] = field(default_factory=set)

    @property
    def steps(self) -> list[StepReport]:
        return [r for r in self.records if isinstance(r, StepReport) and "policy.loss_tokens" in r.values]

    def events(self, kind: EventKind) -> list[Event]:
        return [record for record in self.records if isinstance(record, Event) and record.kind is kind]


@pytest.fixture(scope="session")
def run_job(python: Path, folder: Path) -> Callable[..., Run]:
    """Each job once; ``kind`` is off, watched or raising. The gradient of one step is poisoned in all of them."""
    kept: dict[tuple[str, str], Run] = {}

    def run_job(trainer: str, kind: str) -> Run:
        if (trainer, kind) not in kept:
            kept[trainer, kind] = _run(python, folder, trainer, kind)
        return kept[trainer, kind]

    return run_job


def _run(python: Path, folder: Path, trainer: str, kind: str) -> Run:
    name = f"{trainer}-{kind}"
    spool, called = folder / f"{name}-spool", folder / f"{name}.called"
    env = {
        "RLVITALS_MODE": "disabled" if kind == "off" else "offline",
        "RLVITALS_RAISE": str(int(kind != "raising")),
        "RLVITALS_DIR": str(spool),
        "RLVITALS_RUN_ID": name,
        "CPU_POISON_STEP": str(POISONED),
        "RAISING_CALLED": str(called),
    }
    if kind == "raising":
        env["VERL_USE_EXTERNAL_MODULES"] = RAISING
    job = Job(python=python, folder=folder, v1=trainer == "v1", env=env, name=name, overrides=VALIDATING)
    code = job.run(JOB_S)
    return Run(
        code=code,
        log=job.log.read_text(errors="replace"),
        digests=job.digests.read_text().split("\n") if job.digests.exists() else [],
        records=_records(spool),
        called=set(called.read_text().split()) if called.exists() else set(),
    )


def _records(spool: Path) -> list[Any]:
    found: list[Any] = []
    for folder in journals(spool):
        follower = Follower(folder)
        found += [item.record for item in follower.read(1_000_000)]
        follower.close()
    return found


# -- signals -------------------------------------------------------------------------------------------


def test_each_step_that_ran_is_told_once_and_a_validation_is_none(
    run_job: Callable[..., Run], trainer: str
) -> None:
    run = run_job(trainer, "watched")
    assert run.code == 0, run.log[-3000:]
    assert [step.step for step in run.steps] == list(range(1, STEPS + 1))
    validated = [
        r.step for r in run.records if isinstance(r, StepReport) and any("val-core" in n for n in r.values)
    ]
    assert validated == [0, 2, 4]


def test_every_metric_of_the_registry_is_given_or_missing_with_a_reason(
    run_job: Callable[..., Run], trainer: str
) -> None:
    for step in run_job(trainer, "watched").steps:
        assert not REGISTERED - step.values.keys() - step.missing.keys()
        assert not [name for name, reason in step.missing.items() if not reason]


@pytest.mark.parametrize(
    "metric",
    [
        "kl.k3",
        "kl.grad_norm",
        "kl.coef",
        "kl.pull_ratio",
        "ratio.max",
        "ratio.rollout_max",
        "ratio.reference_max",
        "ratio.approx_kl",
        "policy.entropy",
        "policy.loss",
        "policy.learning_rate",
        "gradient.norm",
        "gradient.top_parameter_share",
        "gradient.update_ratio",
        "gradient.skipped_steps",
        "reward.mean",
        "reward.zero_std_groups",
        "reward.advantage_abs_max",
        "length.mean",
        "length.truncation_rate",
        "text.invalid_utf8_per_1k",
        "numerics.nonfinite",
        "progress.step_time",
        "progress.phase_rollout_s",
        "progress.phase_update_s",
    ],
)
def test_what_verl_can_tell_is_told(run_job: Callable[..., Run], trainer: str, metric: str) -> None:
    told = run_job(trainer, "watched").steps[0]
    assert metric in told.values, told.missing.get(metric)
    assert math.isfinite(told.values[metric])


def test_a_gradient_that_is_nan_is_told_as_nan_at_that_very_step_and_at_no_other(
    run_job: Callable[..., Run], trainer: str
) -> None:
    norms = {step.step: step.values["gradient.norm"] for step in run_job(trainer, "watched").steps}
    assert [step for step, norm in norms.items() if not math.isfinite(norm)] == [POISONED]
    assert math.isnan(norms[POISONED])


def test_verl_skipped_the_poisoned_step_and_we_saw_that(run_job: Callable[..., Run], trainer: str) -> None:
    skipped = {step.step: step.values["gradient.skipped_steps"] for step in run_job(trainer, "watched").steps}
    assert skipped == {step: float(step == POISONED) for step in range(1, STEPS + 1)}


def test_truncation_counts_from_the_configured_limit(run_job: Callable[..., Run], trainer: str) -> None:
    run = run_job(trainer, "watched")
    texts = [record for record in run.records if isinstance(record, Text)]
    assert texts
    assert all(text.truncated == (len(text.token_ids) >= 8 and text.token_ids[-1] != 256) for text in texts)


def test_completions_come_with_text_prompt_and_ids(run_job: Callable[..., Run], trainer: str) -> None:
    texts = [record for record in run_job(trainer, "watched").records if isinstance(record, Text)]
    assert all("say" in text.prompt for text in texts)
    assert all(text.token_ids and text.reward is not None for text in texts)


def test_no_hook_is_blind(run_job: Callable[..., Run], trainer: str) -> None:
    table: Any = run_job(trainer, "watched").events(EventKind.HOOK)[-1].payload["hooks"]
    assert not [row for row in table if row["state"] in ("blind", "failing")]
    assert {"scalars", "batch", "loss", "optimizer"} <= {row["hook"] for row in table if row["state"] == "seen"}


# -- no harm -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["watched", "raising"])
def test_a_whole_jobs_weights_are_those_without_us_to_the_last_bit(
    run_job: Callable[..., Run], trainer: str, kind: str
) -> None:
    """As the engine got them after each step; rows are in one order here (`cpu_rollout.sort_batches`)."""
    off, run = run_job(trainer, "off"), run_job(trainer, kind)
    assert (off.code, run.code) == (0, 0), run.log[-3000:]
    assert run.digests == off.digests
    assert not off.records
    weights = [line.split()[1] for line in off.digests if line]
    assert len(weights) == STEPS + 1
    assert len(set(weights)) == STEPS, "all steps but the poisoned one change them"


def test_every_hook_of_the_raising_job_was_called(run_job: Callable[..., Run], trainer: str) -> None:
    raising = run_job(trainer, "raising")
    expected = {"workers._loss_computed", "workers._step_begins", "v0.find_caller"}
    assert expected <= raising.called
    if trainer == "v1":
        assert {"v1._metrics", "v1._step_ends", "v1._stepped"} <= raising.called
