"""One story: a rollout manager and two training ranks, one run; a pull that dominates, approval, pause, stop."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rlvitals.contract.metrics import METRICS, Family
from tests.client.integrations import tiny
from tests.client.integrations.pair import Rank, start_ranks
from tests.end_to_end.server import Server, serving, wait_until
from tests.trainers.overhead import Overhead
from tests.trainers.slime.source import checkout

RUN, RULE, CAUSE = "slime-story", "kl_pull_dominates", "kl_drift"
BETA, SANE_BETA = 20.0, 2.0
DEADLINE_S = 120.0
MODULE = "tests.trainers.slime.story"


@pytest.fixture(scope="module")
def slime() -> Path:
    return checkout()


def test_an_unhealthy_job_of_slimes_processes_is_seen_explained_steered_and_stopped(
    slime: Path,
    environment: Callable[[str], Path],
    tmp_path: Path,
    overhead: Callable[[str, Server, str], Overhead],
) -> None:
    python = environment("slime")
    with serving(tmp_path / "service") as server:
        env = {**server.env, **variables(slime, tmp_path), "RLVITALS_MODE": "", "RLVITALS_INTERVAL_S": "0.05"}
        manager = start_manager(python, tmp_path, env)
        ranks = start_ranks(MODULE, tmp_path, "trainer", python=python, env=env)
        try:
            alert = steer(server, (manager, *ranks))
            paused(server)
            server.ask(f"/runs/{RUN}/commands", {"kind": "stop", "why": "healed"})
            told = [rank.told(DEADLINE_S) for rank in ranks]
            made = manager.told(DEADLINE_S)["rollouts"]
        except AssertionError as error:
            said = [process.err.read_text()[-2500:] for process in (manager, *ranks)]
            raise AssertionError(f"{error}; {said}") from error
        finally:
            for process in (manager, *ranks):
                process.end()
        last = told[0]["steps"] - 1
        wait_until(lambda: server.last_step(RUN) >= last, "the last step to arrive")
        assert_obeyed(server, told, alert, tmp_path)
        assert_seen(server, last, made)
        assert overhead("slime, a rank with toy logits", server, RUN).own_s > 0


def variables(slime: Path, folder: Path) -> dict[str, str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    policy = tiny.save_policy(folder / "policy")
    return {
        "SLIME_CHECKOUT": str(slime), "STORY_PORT": str(port), "STORY_POLICY": str(policy),
        "STORY_FOLDER": str(folder), "RLVITALS_RUN_ID": RUN, "RLVITALS_ATTEMPT": "a1", "TORCHDYNAMO_DISABLE": "1",
    }  # fmt: skip


def start_manager(python: Path, folder: Path, env: dict[str, str]) -> Rank:
    out, err = folder / "manager.out", folder / "manager.err"
    own = {**os.environ, **env, "RLVITALS_DIR": str(folder / "spool-manager"), "HF_HUB_OFFLINE": "1"}
    with out.open("w") as stdout, err.open("w") as stderr:
        process = subprocess.Popen(
            [str(python), "-m", MODULE, "manager"], env=own, stdout=stdout, stderr=stderr, text=True
        )
    return Rank(process=process, out=out, err=err)


def steer(server: Server, processes: Sequence[Rank]) -> dict[str, Any]:
    """What a person does: looks at the alert and its cause, approves, waits for the answer."""

    def proposed() -> bool:
        assert all(process.process.poll() is None for process in processes), "a process has ended"
        return bool(commands(server, "proposed"))

    wait_until(proposed, "the proposal")
    (alert,) = alerts(server, "firing")
    incidents = {incident["cause"]: incident for incident in server.ask(f"/runs/{RUN}/incidents")}
    assert any(RULE in name for name in incidents[CAUSE]["alerts"])
    (proposal,) = commands(server, "proposed")
    server.ask(f"/commands/{proposal['id']}/approve", {"argument": SANE_BETA})
    wait_until(lambda: alert["id"] in [a["id"] for a in alerts(server, "resolved")], "the alert's end")
    return dict(alert)


def paused(server: Server) -> None:
    """The rollout manager holds, and with it the ranks; nobody takes a rank's silence for an end of the pause."""
    server.ask(f"/runs/{RUN}/commands", {"kind": "pause", "why": "a look"})
    wait_until(lambda: server.ask(f"/runs/{RUN}")["phase"] == "paused", "the pause")
    stood: list[int | None] = []

    def stands() -> bool:
        stood.append(server.last_step(RUN))
        return len(stood) > 20 and len(set(stood[-20:])) == 1

    wait_until(stands, "the steps to stand")
    assert server.ask(f"/runs/{RUN}")["phase"] == "paused"
    server.ask(f"/runs/{RUN}/commands", {"kind": "resume", "why": "seen"})
    wait_until(lambda: (server.last_step(RUN) or 0) > (stood[-1] or 0), "a step after the pause")


def assert_obeyed(server: Server, told: list[dict[str, Any]], alert: dict[str, Any], folder: Path) -> None:
    assert told[0] == told[1], "the same coefficient at each step, the same weights, the same end on both ranks"
    applied = {command["kind"]: command for command in commands(server, "applied")}
    assert set(applied) == {"set_kl_coef", "pause", "resume", "stop"}
    steered = applied["set_kl_coef"]
    assert (steered["rule"], steered["alert_id"]) == (RULE, alert["id"])
    assert (steered["before"], steered["after"]) == (BETA, SANE_BETA)
    at, steps = steered["step"], told[0]["steps"]
    assert told[0]["coefficients"] == [BETA] * at + [SANE_BETA] * (steps - at)
    assert at % 2 == 0, "never in the middle of a rollout's steps"
    (saved,) = server.ask(f"/runs/{RUN}/events?kind=checkpoint")
    assert sorted(path.name for path in Path(saved["payload"]["folder"]).iterdir()) == ["0.pt", "1.pt"]


def assert_seen(server: Server, last: int, rollouts: int) -> None:
    for metric in ("policy.loss", "kl.pull_ratio", "gradient.norm", "ratio.max"):
        assert list(server.series(RUN, metric)["step"]) == list(range(last + 1)), "steps seen = steps run"
    pulls = server.series(RUN, "kl.pull_ratio")["value"]
    assert max(pulls) > 1 > pulls[-1], "the signal answers"
    assert list(server.series(RUN, "reward.mean")["step"]) == list(range(0, 2 * rollouts, 2))
    told = {metric["metric"]: metric for metric in server.ask(f"/runs/{RUN}/metrics")}
    registry = {metric.name for metric in METRICS if metric.family not in (Family.SELF, Family.COMPONENT)}
    assert registry <= told.keys(), "each metric of the registry is given, or missing with a reason"
    assert all(told[name]["points"] or told[name]["missing_reason"] for name in registry)
    run = server.ask(f"/runs/{RUN}")
    assert run["config"]["wandb_key"] != "never-told"
    assert run["framework"] == "slime"
    assert len(run["attempts"]) == 1, "one attempt of three processes"


def commands(server: Server, state: str) -> list[dict[str, Any]]:
    return list(server.ask(f"/commands?run={RUN}&state={state}")["items"])


def alerts(server: Server, state: str) -> list[dict[str, Any]]:
    return [a for a in server.ask(f"/alerts?run={RUN}&state={state}")["items"] if a["rule"] == RULE]
