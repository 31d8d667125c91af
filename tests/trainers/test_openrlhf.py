"""OpenRLHF 0.11.2: its own command line with Ray, DeepSpeed and two actor ranks on a CPU, watched and steered.

vLLM and flash-attn are stand-ins (``openrlhf/standins``); all else is the real thing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rlvitals.contract.metrics import METRICS, Family
from rlvitals.contract.report import Event, EventKind
from tests.client.integrations.tiny import save_policy
from tests.end_to_end.server import Server, serving, wait_until
from tests.trainers.extensions import compiled
from tests.trainers.openrlhf.job import JOB_S, PPO, REINFORCE, Job, cluster
from tests.trainers.overhead import Overhead

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
REGISTERED = {metric.name for metric in METRICS if metric.family is not Family.SELF}
RULE, CAUSE = "kl_pull_dominates", "kl_drift"
COEFFICIENT, SANE = 20.0, 2.0
FOREVER = ("--train.num_episodes", "400")

MakeJob = Callable[..., Job]


@pytest.fixture(scope="module")
def make(environment_of: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeJob]:
    """Jobs on one cluster, each in a folder of its own unless told one."""
    home = tmp_path_factory.mktemp("openrlhf")
    policy = save_policy(home / "policy")
    with cluster(environment_of) as address:

        def job(run: str, **told: Any) -> Job:
            settings = {"folder": home / run, "told": {"RLVITALS_MODE": "offline"}, **told}
            return Job(python=environment_of, address=address, policy=policy, run=run, **settings)

        yield job


@pytest.fixture(scope="module")
def environment_of(environment: Callable[[str], Path]) -> Path:
    python = environment("openrlhf-0.11")
    compiled(python, "FusedAdamBuilder")
    return python


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("service")) as running:
        yield running


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    job: Job
    proposal: Mapping[str, Any]
    incidents: Mapping[str, Mapping[str, Any]]
    paused_at: int
    code: int


@pytest.fixture(scope="module")
def story(make: MakeJob, server: Server) -> Story:
    """A pull that dominates, its alert, an approval, a pause, a stop: one job."""
    job = make("story", told=server.env)
    with job.running((*FOREVER, "--algo.kl.init_coef", str(COEFFICIENT))) as process:
        proposal, incidents = approve(server, job)
        paused_at = pause_and_resume(server, job)
        ask(server, job, "stop")
        code = process.wait(JOB_S)
    wait_until(lambda: server.last_step(job.run) == job.steps_run[-1], "the last step to arrive")
    return Story(job=job, proposal=proposal, incidents=incidents, paused_at=paused_at, code=code)


def test_an_approved_coefficient_holds_on_all_ranks_from_the_next_step_on(story: Story, server: Server) -> None:
    (command,) = [c for c in commands(server, story.job, "applied", "set_kl_coef") if c["rule"] == RULE]
    assert story.proposal["argument"] < COEFFICIENT
    assert (command["before"], command["after"]) == (COEFFICIENT, SANE)
    coefficients, applied = server.series(story.job.run, "kl.coef"), command["step"]
    last = story.job.steps_run[-1]
    assert coefficients["value"] == [COEFFICIENT] * applied + [SANE] * (last - applied)
    assert story.job.notes("kl_coef_on_ranks") == [{"0": [SANE], "1": [SANE]}]


def test_the_alert_is_explained_before_anything_is_approved_and_the_signal_answers(
    story: Story, server: Server
) -> None:
    (alert,) = alerts(server, story.job, "resolved")
    assert story.incidents[CAUSE]["is_open"]
    assert any(RULE in name for name in story.incidents[CAUSE]["alerts"])
    assert story.proposal["alert_id"] == alert["id"]
    pulls = server.series(story.job.run, "kl.pull_ratio")["value"]
    assert max(pulls) > 0.5 > pulls[-1]


def test_what_we_cost_is_counted(
    story: Story, server: Server, overhead: Callable[[str, Server, str], Overhead]
) -> None:
    told = overhead("OpenRLHF", server, story.job.run)
    assert 0 < told.own_s <= told.own_upper_s < told.step_s


def test_every_step_that_openrlhf_ran_was_seen_with_every_metric_or_its_reason(story: Story) -> None:
    seen = story.job.steps()
    assert [step.step for step in seen] == story.job.steps_run == list(range(1, len(seen) + 1))
    assert all(set(step.values) | set(step.missing) >= REGISTERED for step in seen)
    assert all(reason for step in seen for reason in step.missing.values())
    given = {"kl.grad_norm", "kl.pull_ratio", "ratio.max", "reward.group_std", "text.invalid_utf8_count"}
    assert given <= set(seen[-1].values)
    assert seen[-1].values["length.truncation_rate"] > 0.5
    assert seen[-1].values["openrlhf/response_clip_ratio"] == 0.0


def test_every_hook_has_seen_something(story: Story) -> None:
    tables = [r for r in story.job.records() if isinstance(r, Event) and r.kind is EventKind.HOOK]
    rows: Any = tables[-1].payload["hooks"]
    assert {row["hook"]: row["state"] for row in rows if not row["optional"]} == dict.fromkeys(
        ("controller", "step boundary", "experiences", "actor ranks"), "seen"
    )


def test_a_stop_saves_and_the_job_ends_as_it_ends_by_itself(story: Story) -> None:
    last = story.job.steps_run[-1]
    assert story.code == 0, story.job.words()
    assert (story.job.folder / "checkpoints" / "_actor" / f"global_step{last}").is_dir()
    assert (story.job.folder / "model" / "config.json").is_file()
    assert story.paused_at < last


def test_after_a_resume_the_coefficient_of_the_checkpoint_is_in_force(
    story: Story, make: MakeJob, server: Server
) -> None:
    last = story.job.steps_run[-1]
    job = make("resumed", told=server.env, folder=story.job.folder)
    with job.running((*FOREVER, "--algo.kl.init_coef", str(COEFFICIENT), "--ckpt.load_enable")) as process:
        wait_until(lambda: server.last_step(job.run) is not None, f"a step ({job.log})", JOB_S)
        ask(server, job, "stop")
        assert process.wait(JOB_S) == 0, job.words()
    assert job.steps_run[0] == last + 1
    assert {step.values["kl.coef"] for step in job.steps()} == {SANE}
    assert job.notes("kl_coef_restored") == [SANE]
    assert job.notes("kl_coef_on_ranks") == [{"0": [SANE], "1": [SANE]}]


def test_asynchronous_training_is_seen_steered_and_stopped(make: MakeJob, server: Server) -> None:
    job = make("asynchronous", told=server.env)
    with job.running((*FOREVER, "--train.async_enable")) as process:
        wait_until(lambda: server.last_step(job.run) is not None, f"a step ({job.log})", JOB_S)
        ask(server, job, "set_kl_coef", 0.02)
        wait_until(lambda: bool(commands(server, job, "applied", "set_kl_coef")), "the coefficient", JOB_S)
        applied = commands(server, job, "applied", "set_kl_coef")[0]["step"]
        wait_until(lambda: (server.last_step(job.run) or 0) > applied, "another step", JOB_S)
        ask(server, job, "stop")
        assert process.wait(JOB_S) == 0, job.words()
    assert [step.step for step in job.steps()] == job.steps_run
    assert job.notes("kl_coef_on_ranks") == [{"0": [0.02], "1": [0.02]}]
    assert (job.folder / "checkpoints" / "_actor" / f"global_step{job.steps_run[-1]}").is_dir()


# One prompt a step: with several, Ray hands on whichever is done first.
SAME = (
    *("--rollout.batch_size", "1", "--rollout.n_samples_per_prompt", "8", "--data.max_samples", "4"),
    "--train.full_determinism_enable",
)


# Runs without us differ from each other in the norm and the entropy of their first step, by half a hundredth at
# most: DeepSpeed's update on two ranks has several outcomes with one seed. What comes before it has one.
SAMPLED = ("return", "reward", "response_length", "total_length")


@pytest.fixture(scope="module")
def plain(make: MakeJob) -> Mapping[str, float]:
    """The first step of REINFORCE++ when we never saw it."""
    job = make("plain", algorithm=REINFORCE, told={"WATCH": ""})
    job.finish(*SAME)
    assert job.steps_run == [1, 2, 3, 4]
    return job.logged(1)


def assert_begins_alike(job: Job, plain: Mapping[str, float]) -> None:
    """What was sampled to the last digit, and what follows from the update within the distance of its outcomes."""
    begun = job.logged(1)
    assert {name: begun[name] for name in SAMPLED} == {name: plain[name] for name in SAMPLED}
    assert begun == pytest.approx(plain, rel=2e-2, abs=1e-6)


def test_reinforce_plus_plus_is_watched_and_begins_as_without_us(
    make: MakeJob, plain: Mapping[str, float]
) -> None:
    job = make("reinforce", algorithm=REINFORCE)
    job.finish(*SAME)
    assert_begins_alike(job, plain)
    assert {"actor_grad_norm", "policy_loss", "entropy_loss", "return"} <= set(plain)
    seen = job.steps()
    assert [step.step for step in seen] == job.steps_run == [1, 2, 3, 4]
    assert {"kl.k1", "ratio.reference_max", "ratio.max", "reward.mean"} <= set(seen[-1].values)
    assert "part of the reward" in seen[-1].missing["kl.grad_norm"]
    assert all(set(step.values) | set(step.missing) >= REGISTERED for step in seen)


def test_with_every_hook_raising_training_begins_the_same_and_ends(
    make: MakeJob, plain: Mapping[str, float]
) -> None:
    """And a setup hook that is the user's own goes on working beside us."""
    job = make("raising", algorithm=REINFORCE)
    called = job.folder / "called.txt"
    runtime = {"worker_process_setup_hook": "raising.install", "env_vars": {"RAISING_CALLED": str(called)}}
    job.told = {**job.told, "RAY_JOB_CONFIG_JSON_ENV_VAR": json.dumps({"runtime_env": runtime})}
    job.finish(*SAME)
    assert_begins_alike(job, plain)
    assert job.steps_run == [1, 2, 3, 4]
    # a rank is asked by the controller's own hook, which is over before it asks
    assert {"rank._ends", "controller._step_ends", "controller._after_advantages"} <= set(
        called.read_text().split()
    )


def test_ppo_is_watched_with_its_critic(make: MakeJob) -> None:
    job = make("ppo", algorithm=PPO)
    job.finish()
    seen = job.steps()
    assert [step.step for step in seen] == job.steps_run == [1, 2, 3, 4]
    assert {"critic.value_loss", "critic.gradient_norm", "critic.explained_variance"} <= set(seen[-1].values)
    assert {"kl.k1", "ratio.max"} <= set(seen[-1].values)


def test_a_release_with_flat_arguments_is_watched(make: MakeJob) -> None:
    """Its source on the packages of 0.11.2, which are newer than those that it asks for."""
    job = make("flat", release="0.10.1")
    job.finish()
    seen = job.steps()
    assert [step.step for step in seen] == job.steps_run == [1, 2, 3, 4]
    assert all(set(step.values) | set(step.missing) >= REGISTERED for step in seen)
    assert {"kl.grad_norm", "kl.pull_ratio", "ratio.max", "reward.group_std"} <= set(seen[-1].values)
    assert seen[-1].values["kl.coef"] == 0.01


def approve(server: Server, job: Job) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Reads the causes, approves another value than the proposed one, and waits until the alert is closed."""
    wait_until(lambda: bool(proposed(server, job)), f"a proposal ({job.log})", JOB_S)
    proposal = proposed(server, job)[0]
    incidents = {incident["cause"]: incident for incident in server.ask(f"/runs/{job.run}/incidents")}
    server.ask(f"/commands/{proposal['id']}/approve", {"argument": SANE})
    wait_until(lambda: bool(alerts(server, job, "resolved")), "the alert's end", JOB_S)
    return proposal, incidents


def pause_and_resume(server: Server, job: Job) -> int:
    ask(server, job, "pause", 300.0)
    wait_until(lambda: bool(commands(server, job, "applied", "pause")), "the pause", JOB_S)
    wait_until(lambda: server.ask(f"/runs/{job.run}")["phase"] == "paused", "the run to stand", JOB_S)
    step = commands(server, job, "applied", "pause")[0]["step"]
    assert job.steps_run[-1] == step
    ask(server, job, "resume")
    wait_until(lambda: (server.last_step(job.run) or 0) > step, "the run to go on", JOB_S)
    return int(step)


def ask(server: Server, job: Job, kind: str, argument: float | None = None) -> None:
    server.ask(f"/runs/{job.run}/commands", {"kind": kind, "argument": argument, "why": "test"})


def proposed(server: Server, job: Job) -> list[Mapping[str, Any]]:
    if server.last_step(job.run) is None:
        return []
    found = server.ask(f"/commands?run={job.run}&state=proposed")["items"]
    return [command for command in found if command["rule"] == RULE]


def commands(server: Server, job: Job, state: str, kind: str) -> list[Mapping[str, Any]]:
    return [c for c in server.ask(f"/commands?run={job.run}&state={state}")["items"] if c["kind"] == kind]


def alerts(server: Server, job: Job, state: str) -> list[Mapping[str, Any]]:
    found = server.ask(f"/alerts?run={job.run}&state={state}")["items"]
    return [alert for alert in found if alert["rule"] == RULE]
