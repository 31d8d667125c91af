"""The real ``main_ppo`` of verl 0.9.1 on a CPU, both trainers: an alert, its cause, an approval, pause, stop.

The accelerator and the sampling engine are stand-ins (tests/trainers/verl), all else is verl's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.server import Server, serving, wait_until
from tests.trainers.overhead import Overhead
from tests.trainers.verl.job import JOB_S, TRAINERS, Job

RULE, CAUSE = "kl_pull_dominates", "kl_drift"
COEFFICIENT, SANE = 70.0, 7.0


@pytest.fixture(scope="module")
def python(environment: Callable[[str], Path]) -> Path:
    return environment("verl-0.9")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("verl")


@pytest.fixture(scope="module", params=TRAINERS)
def trainer(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@dataclass(slots=True, kw_only=True)
class Story:
    """What a person saw and did, and what the service knew at the end."""

    proposal: Mapping[str, Any]
    incidents: Mapping[str, Mapping[str, Any]]
    paused_at: int
    code: int
    log: str
    run: str
    server: Server
    job: Job


@pytest.fixture(scope="module")
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
            proposal, incidents = _approve(server, name, job)
            paused_at = _pause_and_resume(server, name)
            _ask(server, name, "checkpoint")
            wait_until(lambda: bool(_commands(server, name, "applied", "checkpoint")), "the checkpoint", JOB_S)
            _ask(server, name, "stop")
            code = process.wait(JOB_S)
        yield Story(
            proposal=proposal,
            incidents=incidents,
            paused_at=paused_at,
            code=code,
            log=job.log.read_text(errors="replace"),
            run=name,
            server=server,
            job=job,
        )


def _approve(server: Server, run: str, job: Job) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Waits for the proposal, reads the causes, approves another value, stays until the alert is closed."""
    wait_until(lambda: bool(_proposed(server, run)), f"a proposal ({job.log})", JOB_S)
    proposal = _proposed(server, run)[0]
    incidents = {incident["cause"]: incident for incident in server.ask(f"/runs/{run}/incidents")}
    server.ask(f"/commands/{proposal['id']}/approve", {"argument": SANE})
    wait_until(lambda: bool(_alerts(server, run, "resolved")), "the alert's end", JOB_S)
    return proposal, incidents


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


def test_the_alert_is_explained_before_anything_is_approved(story: Story) -> None:
    (alert,) = _alerts(story.server, story.run, "resolved")
    assert story.incidents[CAUSE]["is_open"]
    assert any(RULE in name for name in story.incidents[CAUSE]["alerts"])
    assert story.proposal["alert_id"] == alert["id"]


def test_the_signal_answers(story: Story) -> None:
    told = story.server.series(story.run, "kl.pull_ratio")
    values = dict(zip(told["step"], told["value"], strict=True))
    assert values[max(values)] < 0.5 < max(values.values())


def test_what_we_cost_is_counted(story: Story, overhead: Callable[[str, Server, str], Overhead]) -> None:
    told = overhead(f"verl, {story.run}", story.server, story.run)
    assert 0 < told.own_s <= told.own_upper_s < told.step_s


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
