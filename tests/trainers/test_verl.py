"""The real ``main_ppo`` of verl 0.9.1 on a CPU, both trainers: signals, the story of an alert, and no harm.

The accelerator and the sampling engine are stand-ins (tests/trainers/verl), all else is verl's own.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rlvitals.contract.metrics import METRICS, Family
from rlvitals.contract.report import Event, EventKind, StepReport, Text
from rlvitals.follow import Follower
from rlvitals.spool import journals
from tests.end_to_end.server import Server, serving, wait_until
from tests.trainers.verl.job import HERE, STEPS, Job

RULE = "kl_pull_dominates"
COEFFICIENT, SANE = 200.0, 2.0
JOB_S = 420.0
POISONED = 3
RAISING = "cpu_platform,rlvitals.integrations.verl,raising"
VALIDATING = ("trainer.val_before_train=True", "trainer.test_freq=2", "data.val_max_samples=2")
TRAINERS = ("v1", "v0")
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
    """Each job once; ``kind`` is watched or raising. The gradient of one step is poisoned in all of them."""
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
        "RLVITALS_MODE": "offline",
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


def test_a_job_whose_hooks_all_raise_ends_well(run_job: Callable[..., Run], trainer: str) -> None:
    watched, raising = run_job(trainer, "watched"), run_job(trainer, "raising")
    assert raising.code == 0, raising.log[-3000:]
    # V1 takes rows in the order in which they are done, so two jobs round differently, with us or without: that
    # the bits are the same is shown on one worker, below
    assert len(raising.digests) == len(watched.digests) > STEPS
    assert raising.digests[0] == watched.digests[0]
    assert raising.digests[POISONED].split()[1] == raising.digests[POISONED - 1].split()[1]
    expected = {"workers._loss_computed", "workers._step_begins", "v0.find_caller"}
    assert expected <= raising.called
    if trainer == "v1":
        assert {"v1._metrics", "v1._step_ends", "v1._stepped"} <= raising.called


@pytest.fixture(scope="session")
def work(python: Path, folder: Path) -> Callable[[str], Mapping[str, Any]]:
    """One engine worker without Ray, by what is done to it: off, watched or raising."""
    kept: dict[str, Mapping[str, Any]] = {}

    def work(kind: str) -> Mapping[str, Any]:
        if kind not in kept:
            env = {
                "RLVITALS_MODE": "disabled" if kind == "off" else "offline",
                "RLVITALS_RAISE": str(int(kind != "raising")),
                "RLVITALS_DIR": str(folder / f"worker-{kind}-spool"),
                "RAISING_CALLED": str(folder / f"worker-{kind}.called"),
            }
            if kind == "raising":
                env["VERL_USE_EXTERNAL_MODULES"] = RAISING
            job = Job(python=python, folder=folder, env=env, name=f"worker-{kind}")
            job.prepare()
            done = subprocess.run(
                [str(python), str(HERE / "worker.py"), str(folder), kind],
                env=job.environment(),
                capture_output=True,
                text=True,
                timeout=JOB_S,
                check=False,
            )
            assert done.returncode == 0, done.stderr[-3000:]
            kept[kind] = json.loads(done.stdout.splitlines()[-1])
        return kept[kind]

    return work


@pytest.mark.parametrize("kind", ["watched", "raising"])
def test_a_workers_weights_are_the_same_with_us_and_without(
    work: Callable[[str], Mapping[str, Any]], kind: str, folder: Path
) -> None:
    assert work(kind)["digests"] == work("off")["digests"]
    assert len(set(work("off")["digests"])) == 3
    if kind == "raising":
        called = set((folder / "worker-raising.called").read_text().split())
        assert {"workers._loss_computed", "workers._step_begins", "workers._step_done"} <= called


def test_a_worker_tells_each_update_once_with_token_ids(work: Callable[[str], Mapping[str, Any]]) -> None:
    for told in work("watched")["told"]:
        assert told["hooks"] == {"loss": 2, "optimizer": 1}
        assert told["values"]["ratio.max"] > told["values"]["ratio.min"]
        assert told["values"]["gradient.skipped_steps"] == 0
        assert isinstance(told["token"], int)


def test_a_worker_takes_a_coefficient_and_a_rate_and_finds_poison(
    work: Callable[[str], Mapping[str, Any]],
) -> None:
    told = work("watched")["steered"]
    # what it says it has, and what the loss of its next update logs
    assert told["kl"] == [0.5, 0.5]
    assert told["rate"] == [0.01, 0.005]
    assert told["poisoned"] == [0, 1]


# -- the story -----------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class Story:
    """What a person saw and did, and what the service knew at the end."""

    proposal: Mapping[str, Any]
    paused_at: int
    code: int
    log: str
    run: str
    server: Server
    job: Job


@pytest.fixture(scope="session")
def story(python: Path, folder: Path, trainer: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with serving(tmp_path_factory.mktemp(f"service-{trainer}")) as server:
        name = f"{trainer}-story"
        job = Job(
            python=python,
            folder=folder,
            v1=trainer == "v1",
            name=name,
            env={
                **server.env,
                "RLVITALS_RAISE": "0",
                "RLVITALS_RUN_ID": name,
                "RLVITALS_DIR": str(folder / f"{name}-spool"),
            },
            overrides=(
                "trainer.total_training_steps=500",
                f"actor_rollout_ref.actor.kl_loss_coef={COEFFICIENT}",
                "actor_rollout_ref.actor.optim.lr=1e-3",
            ),
        )
        with job.running() as process:
            proposal = _approve(server, name, job)
            paused_at = _pause_and_resume(server, name)
            _ask(server, name, "checkpoint")
            wait_until(lambda: bool(_commands(server, name, "applied", "checkpoint")), "the checkpoint", JOB_S)
            _ask(server, name, "stop")
            code = process.wait(JOB_S)
        yield Story(
            proposal=proposal,
            paused_at=paused_at,
            code=code,
            log=job.log.read_text(errors="replace"),
            run=name,
            server=server,
            job=job,
        )


def _approve(server: Server, run: str, job: Job) -> Mapping[str, Any]:
    """Waits for the proposal, approves another value, stays until the alert is closed."""
    wait_until(lambda: bool(_proposed(server, run)), f"a proposal ({job.log})", JOB_S)
    proposal = _proposed(server, run)[0]
    server.ask(f"/commands/{proposal['id']}/approve", {"argument": SANE})
    wait_until(lambda: bool(_alerts(server, run, "resolved")), "the alert's end", JOB_S)
    return proposal


def _pause_and_resume(server: Server, run: str) -> int:
    _ask(server, run, "pause", 300.0)
    wait_until(lambda: bool(_commands(server, run, "applied", "pause")), "the pause", JOB_S)
    wait_until(lambda: _phase(server, run) == "paused", "the run to stand", JOB_S)
    step = server.last_step(run)
    assert step is not None
    _ask(server, run, "resume")
    wait_until(lambda: (server.last_step(run) or 0) > step + 1, "steps after the pause", JOB_S)
    return step


def _ask(server: Server, run: str, kind: str, argument: float | None = None) -> None:
    server.ask(f"/runs/{run}/commands", {"kind": kind, "argument": argument, "why": "test"})


def _proposed(server: Server, run: str) -> list[Mapping[str, Any]]:
    try:
        found = server.ask(f"/commands?run={run}&state=proposed")["items"]
    except OSError:
        return []
    return [command for command in found if command["rule"] == RULE]


def _commands(server: Server, run: str, state: str, kind: str) -> list[Mapping[str, Any]]:
    return [c for c in server.ask(f"/commands?run={run}&state={state}")["items"] if c["kind"] == kind]


def _alerts(server: Server, run: str, state: str) -> list[Mapping[str, Any]]:
    return [a for a in server.ask(f"/alerts?run={run}&state={state}")["items"] if a["rule"] == RULE]


def _phase(server: Server, run: str) -> str:
    return str(server.ask(f"/runs/{run}").get("phase"))


def test_an_approved_coefficient_holds_on_the_workers_from_the_next_step_on(story: Story) -> None:
    (command,) = [c for c in _commands(story.server, story.run, "applied", "set_kl_coef") if c["rule"] == RULE]
    assert story.proposal["argument"] < COEFFICIENT
    assert (command["before"], command["after"], command["argument"]) == (COEFFICIENT, SANE, SANE)
    wait_until(lambda: f"step:{command['step'] + 1} " in story.log, "the log", 1)
    told = story.server.series(story.run, "kl.coef")
    values = dict(zip(told["step"], told["value"], strict=True))
    assert {values[step] for step in values if step <= command["step"]} == {COEFFICIENT}
    assert {values[step] for step in values if step > command["step"]} == {SANE}


def test_the_signal_answers_and_the_alert_is_diagnosed(story: Story) -> None:
    (alert,) = _alerts(story.server, story.run, "resolved")
    told = story.server.series(story.run, "kl.pull_ratio")
    values = dict(zip(told["step"], told["value"], strict=True))
    assert values[max(values)] < 0.5 < max(values.values())
    incidents = story.server.ask(f"/runs/{story.run}/incidents")
    assert alert["id"]
    assert incidents


def test_the_pause_held_the_job_between_two_steps(story: Story) -> None:
    told = story.server.series(story.run, "kl.coef")["step"]
    assert story.paused_at in told
    assert _commands(story.server, story.run, "applied", "resume")
    assert told == list(range(1, max(told) + 1))


def test_checkpoint_and_stop_end_the_job_well(story: Story) -> None:
    assert story.code == 0, story.log[-3000:]
    last = story.server.last_step(story.run)
    assert last is not None
    assert last < 500
    saved = {int(path.name.rpartition("_")[2]) for path in story.job.checkpoints.glob("global_step_*")}
    events = story.server.ask(f"/runs/{story.run}/events?kind=checkpoint")
    told = {event["step"] for event in events}
    assert len(saved) >= 2
    assert max(saved) == last
    assert told == saved
    latest = (story.job.checkpoints / "latest_checkpointed_iteration.txt").read_text()
    assert int(latest) == last


def test_the_run_is_told_as_finished(story: Story) -> None:
    wait_until(lambda: _phase(story.server, story.run) == "finished", "the run's end", 30)
