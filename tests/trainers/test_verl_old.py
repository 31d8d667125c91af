"""verl 0.4 to 0.8 and Agent-R1: their own drivers, objects and losses, with stand-ins for workers on GPUs.

What is real: ``RayPPOTrainer.fit`` (or ``RayAgentTrainer.fit``), DataProto, advantages, policy losses, metrics of
the data, validation, Tracking. What stands in: generation, log-probs and updates of a policy that is a table.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlvitals.contract.metrics import METRICS
from tests.end_to_end.server import serving, wait_until
from tests.trainers.environments import CACHE, HOUSE

RELEASES = ("verl-0.4", "verl-0.5", "verl-0.6", "verl-0.7", "verl-0.8")
BY_RAY = ("verl-0.4", "verl-0.5")
"""Before there were plug-ins: what Ray's hook calls in a worker is called by the test."""
WAITS = ("verl-0.7", "verl-0.8")
"""Whose rollout engine is awake when a step is logged: a checkpoint comes with the next step."""
STEPS = 5
DEADLINE_S = 180
COMMANDS = [
    [2, "set_kl_coef", 0.05],
    [2, "pause", None],
    [3, "scale_lr", 0.5],
    [4, "checkpoint", None],
    [6, "stop", None],
]
SOURCE = "https://github.com/AgentR1/Agent-R1"
Python = Callable[[str], Path]


class Job:
    """Runs a release's driver in its environment, each job with a folder of its own."""

    def __init__(self, python: Python, folder: Path) -> None:
        self._python, self._folder, self._number = python, folder, 0

    def run(self, name: str, *, module: str = "drive", path: str = "", **settings: Any) -> dict[str, Any]:
        self._number += 1
        folder = self._folder / str(self._number)
        told = {"folder": str(folder), "steps": STEPS, "vitals": True, **settings}
        env = {k: v for k, v in os.environ.items() if not k.startswith(("RLVITALS_", "VERL_"))}
        env |= {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "RLVITALS_DIR": str(folder / "spool")}
        env |= {"RLVITALS_MODE": "offline"} | settings.get("env", {})
        if told["vitals"] and name not in BY_RAY:
            env["VERL_USE_EXTERNAL_MODULES"] = "rlvitals.integrations.verl"
        if not told.get("fails"):
            env["RLVITALS_RAISE"] = "1"
        command = [str(self._python(name)), "-m", f"tests.trainers.verl_old.{module}", json.dumps(told)]
        done = subprocess.run(
            command, cwd=HOUSE, env=env, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found


@pytest.fixture
def job(environment: Python, tmp_path: Path) -> Job:
    return Job(environment, tmp_path)


def numbers(told: dict[str, Any]) -> list[dict[str, float]]:
    """What the trainer logged, without names that hold times."""
    return [dict(sorted(step.items())) for step in told["logged"]]


def unsaid(step: dict[str, Any]) -> set[str]:
    """Metrics of the registry that are neither given nor missing with a reason."""
    wanted = {metric.name for metric in METRICS if not metric.name.startswith("rlvitals.")}
    return {name for name in wanted if name not in step["values"] and not step["missing"].get(name)}


@pytest.mark.parametrize("release", RELEASES)
def test_each_step_that_is_run_is_seen_whole_and_the_run_is_bit_for_bit_the_same(job: Job, release: str) -> None:
    alone = job.run(release, vitals=False)
    watched = job.run(release)
    assert watched["digests"] == alone["digests"]
    assert numbers(watched) == numbers(alone)
    steps = watched["journal"]["steps"]
    assert [step["step"] for step in steps] == list(range(1, STEPS + 1))
    assert watched["steps"] == STEPS
    for step in steps:
        assert not unsaid(step)
        for name in ("kl.k3", "reward.group_std", "text.top_id_share", "length.mean", "ratio.rollout_max"):
            assert math.isfinite(step["values"][name]), name
        assert step["values"]["reward.group_size"] == 4
        assert step["values"]["policy.forced_loss_tokens"] == 0
        # the second epoch's ratios, from the loss on the workers
        assert step["values"]["ratio.max"] > 1 > step["values"]["ratio.min"] > 0
        assert step["extremes"]["ratio.max"]["token_id"] is not None
    given = [step["values"]["length.truncation_rate"] for step in steps]
    assert given == pytest.approx(watched["cut"]), "what ended at the limit by itself was not cut"
    own = [step["response_length/clip_ratio"] for step in watched["logged"]]
    assert all(ours <= theirs for ours, theirs in zip(given, own, strict=True))


@pytest.mark.parametrize("release", RELEASES)
def test_commands_are_carried_out_between_two_steps_and_read_back_from_every_rank(job: Job, release: str) -> None:
    told = job.run(release, steps=20, commands=COMMANDS, validate_first=True)
    outcomes = {one["command"].partition("-")[0]: one for one in told["journal"]["outcomes"]}
    assert {one["state"] for one in outcomes.values()} == {"applied"}
    assert (outcomes["set_kl_coef"]["before"], outcomes["set_kl_coef"]["after"]) == (0.01, 0.05)
    assert (outcomes["scale_lr"]["before"], outcomes["scale_lr"]["after"]) == (0.05, 0.025)
    assert told["kl"] == [0.05, 0.05]
    assert told["rates"] == [0.025, 0.025]
    # what the losses of the workers used, by verl's own log
    own = {step["step"]: step["actor/kl_coef"] for step in told["logged"] if step["step"]}
    assert (own[2], own[3]) == (0.01, 0.05)
    assert told["steps"] == 7
    assert [step["step"] for step in told["journal"]["steps"]] == list(range(8)), "0 is the validation before"
    first = told["journal"]["steps"][0]["values"]
    assert "val-core/toy/reward/mean@1" in first
    assert "reward.mean" not in first
    assert told["saved"] == ([5, 7] if release in WAITS else [4, 6])
    assert told["save_freq"] == -1
    events = told["journal"]["events"]
    assert [e["step"] for e in events if e["kind"] == "checkpoint"] == told["saved"]
    assert [e["payload"]["phase"] for e in events if e["kind"] == "phase"] == ["paused", "update", "finished"]


@pytest.mark.parametrize("release", ["verl-0.4", "verl-0.8"])
def test_a_gradient_norm_that_is_nan_is_told_as_nan_at_that_very_step(job: Job, release: str) -> None:
    steps = job.run(release, poison=3)["journal"]["steps"]
    norms = [step["values"]["gradient.norm"] for step in steps]
    assert [math.isnan(norm) for norm in norms] == [False, False, True, False, False]
    assert [step["values"]["numerics.nonfinite_gradient"] for step in steps] == [0, 0, 1, 0, 0]


@pytest.mark.parametrize(
    ("release", "fails"),
    [
        ("verl-0.4", ["v0.columns"]),
        ("verl-0.5", ["v0.find_caller"]),
        ("verl-0.6", ["session.step_ends"]),
        ("verl-0.7", ["v0.columns", "session.logged"]),
        ("verl-0.8", ["session.batch", "v0.is_step"]),
    ],
)
def test_a_hook_that_fails_on_purpose_changes_no_number_of_the_training(
    job: Job, release: str, fails: list[str]
) -> None:
    alone, broken = job.run(release, vitals=False), job.run(release, fails=fails)
    assert broken["digests"] == alone["digests"]
    assert numbers(broken) == numbers(alone)
    if fails == ["v0.columns"]:
        rows = [row for e in broken["journal"]["events"] if e["kind"] == "hook" for row in e["payload"]["hooks"]]
        batch = [row for row in rows if row["hook"] == "batch"][-1]
        assert (batch["state"], "on purpose" in batch["why"]) == ("failing", True)


@pytest.mark.parametrize("release", ["verl-0.4", "verl-0.7"])
def test_a_kl_in_the_reward_is_set_in_the_controller(job: Job, release: str) -> None:
    overrides = {"algorithm.use_kl_in_reward": True, "actor_rollout_ref.actor.use_kl_loss": False}
    told = job.run(release, overrides=overrides, commands=[[2, "set_kl_coef", 0.004]])
    (outcome,) = told["journal"]["outcomes"]
    assert (outcome["state"], outcome["before"], outcome["after"]) == ("applied", 0.001, 0.004)
    own = {step["step"]: step["actor/reward_kl_penalty_coeff"] for step in told["logged"]}
    assert (own[2], own[3]) == (0.001, 0.004)
    assert told["journal"]["steps"][2]["values"]["kl.coef"] == 0.004


@pytest.mark.parametrize("release", ["verl-0.4", "verl-0.7"])
def test_rays_hook_loads_us_in_workers_after_the_users_own_and_ranks_answer(
    environment: Python, release: str
) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("RLVITALS_", "VERL_", "RAY_"))}
    env |= {"PYTHONPATH": str(HOUSE), "RLVITALS_TOKEN": "secret", "RLVITALS_MODE": "offline"}
    done = subprocess.run(
        [str(environment(release)), "-m", "tests.trainers.verl_old.ray_drive"],
        cwd=HOUSE,
        env=env,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["finder"], "our finder is in Ray's worker"
    assert found["tapped"], "and it taps verl's logger when that is imported"
    assert found["users"] == "called"
    assert found["url"] == "http://127.0.0.1:9"
    ranks = found["ranks"]
    assert (ranks["before"], ranks["set"], ranks["after"]) == ([0.01] * 2, [0.25] * 2, [0.25] * 2)
    assert ranks["rates"] == [0.25, 0.25]


# -- Agent-R1 --------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def agent_r1() -> str:
    """A checkout of Agent-R1, which no registry has: ``AGENT_R1_SOURCE``, else what was cloned before."""
    found = Path(os.environ.get("AGENT_R1_SOURCE", CACHE / "Agent-R1"))
    if not (found / "agent_r1").is_dir():
        command = ["git", "clone", "--quiet", "--depth", "1", SOURCE, str(found)]
        if subprocess.run(command, capture_output=True, timeout=120, check=False).returncode:
            pytest.skip(f"AGENT-R1 NOT TRIED: {SOURCE} CANNOT BE CLONED, and AGENT_R1_SOURCE names no checkout")
    return str(found)


def agent(job: Job, source: str, **settings: Any) -> dict[str, Any]:
    return job.run("agent-r1", module="agent_drive", path=source, **settings)


def test_rows_that_fill_a_batch_up_are_no_completions_and_each_row_has_its_trajectorys_score(
    job: Job, agent_r1: str
) -> None:
    told = agent(job, agent_r1, covered=True)
    steps = told["journal"]["steps"]
    assert [step["values"]["length.completions"] for step in steps] == told["rows"]
    assert any(rows % 2 for rows in told["rows"]), "none of the batches was filled up"
    assert [step["step"] for step in steps] == list(range(1, STEPS + 1))
    assert not any(unsaid(step) for step in steps)
    assert all(step["values"]["policy.forced_loss_tokens"] == 0 for step in steps)
    assert all(step["values"]["ratio.max"] > 1 for step in steps), "of Agent-R1's own loss"
    assert all(math.isfinite(step["values"]["kl.k3"]) for step in steps)


def test_the_run_of_an_agent_is_bit_for_bit_the_same(job: Job, agent_r1: str) -> None:
    alone, watched = agent(job, agent_r1, vitals=False), agent(job, agent_r1)
    assert watched["digests"] == alone["digests"]
    assert numbers(watched) == numbers(alone)


def test_a_forced_end_of_turn_left_in_the_loss_is_named_on_the_page_from_the_first_step(
    job: Job, agent_r1: str, tmp_path: Path
) -> None:
    with serving(tmp_path / "service") as server:
        online = {**server.env, "RLVITALS_MODE": "online", "RLVITALS_RUN_ID": "forced"}
        told = agent(job, agent_r1, env=online)
        wait_until(lambda: server.last_step("forced") == STEPS, "all steps")
        wait_until(lambda: bool(server.ask("/runs/forced/incidents")), "a diagnosis")
        incidents = server.ask("/runs/forced/incidents")
    found = [one for one in incidents if one["cause"] == "special_token_fault"]
    assert len(found) == 1, [(one["cause"], one["evidence"]) for one in incidents]
    incident = found[0]
    first = told["journal"]["steps"][0]["extremes"]["policy.forced_loss_tokens"]
    assert first["token_id"] == told["end"]
    assert (incident["cause"], incident["onset_step"]) == ("special_token_fault", 1)
    assert "response_mask" in incident["change"]["verl"]
    assert f"token id {told['end']} '<|im_end|>'" in " ".join(incident["evidence"])


def test_without_the_samplers_log_probs_nobody_says_who_wrote_a_token_and_the_reason_is_given(
    job: Job, agent_r1: str
) -> None:
    for step in agent(job, agent_r1, silent=True)["journal"]["steps"]:
        assert "policy.forced_loss_tokens" not in step["values"]
        assert "nobody says" in step["missing"]["policy.forced_loss_tokens"]


def test_an_agents_coefficient_is_set_on_all_ranks(job: Job, agent_r1: str) -> None:
    asked = [[2, "set_kl_coef", 0.05], [2, "pause", None], [2, "scale_lr", 0.5], [3, "stop", None]]
    told = agent(job, agent_r1, commands=asked, steps=20)
    outcomes = {one["command"].partition("-")[0]: one["state"] for one in told["journal"]["outcomes"]}
    wanted = ("set_kl_coef", "pause", "resume", "scale_lr", "stop")
    assert outcomes == dict.fromkeys(wanted, "applied")
    assert told["kl"] == [0.05, 0.05]
    assert told["steps"] == 4
    assert told["saved"] == [3]


def test_the_example_is_a_job_that_agent_r1_understands(
    environment: Python, agent_r1: str, tmp_path: Path
) -> None:
    shim = tmp_path / "python"
    shim.write_text(
        f'#!/bin/sh\nshift 2\nexec {environment("agent-r1")} -m tests.trainers.verl_old.compose "$@"\n'
    )
    shim.chmod(0o755)
    env = {**os.environ, "PYTHON": str(shim), "PYTHONPATH": agent_r1, "HOME": str(tmp_path)}
    script = str(HOUSE / "examples" / "agent_r1_gsm8k_tool.sh")
    done = subprocess.run([script], cwd=HOUSE, env=env, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "calculate_log_probs: true" in done.stdout
    assert "default_agent_flow: agent_env_loop" in done.stdout
