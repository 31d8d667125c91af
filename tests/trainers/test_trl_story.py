"""One story on one rank and on two: a pull that dominates, its alert, its cause, an approval, the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.client.integrations import tiny
from tests.client.integrations.pair import Rank, start_ranks
from tests.end_to_end.server import Server, serving, wait_until
from tests.trainers.overhead import Overhead
from tests.trainers.ranks import job as job_module
from tests.trainers.ranks.job import Job

RUN, RULE, CAUSE = "steered", "kl_pull_dominates", "kl_drift"
BETA, SANE_BETA = 20.0, 2.0
DEADLINE_S = 120.0


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save_policy(tmp_path_factory.mktemp("policy"))


@pytest.mark.parametrize("size", [1, 2])
def test_an_unhealthy_run_is_seen_explained_steered_and_heals(
    policy: Path, tmp_path: Path, size: int, overhead: Callable[[str, Server, str], Overhead]
) -> None:
    job = Job(
        policy=str(policy),
        output=str(tmp_path / "output"),
        runs=("steered",),
        trainer={
            "beta": BETA,
            "learning_rate": 1e-3,
            "max_steps": 100_000,
            "per_device_train_batch_size": 8 // size,
            "logging_steps": 1000,
        },
        attach={"run": RUN},
    )
    with serving(tmp_path / "service") as server:
        env = {**server.env, "RLVITALS_MODE": "", "RLVITALS_INTERVAL_S": "0.05"}
        arguments = (job_module.__name__, tmp_path, str(job.write(tmp_path / "job.json")))
        with started(*arguments, ranks=size, env=env) as ranks:
            alert = steer(server)
            told = [rank.told(DEADLINE_S)["steered"] for rank in ranks]
        last = told[0]["steps"]
        wait_until(lambda: server.last_step(RUN) == last, "the last step to arrive")
        assert_obeyed(server, told, alert)
        assert_seen(server, last)
        assert overhead(f"TRL, toy policy, {size} rank(s)", server, RUN).own_s > 0


def steer(server: Server) -> dict[str, Any]:
    """What a person does: looks at the alert and its cause, approves, waits for the answer, ends the run."""
    wait_until(lambda: bool(commands(server, "proposed")), "the proposal")
    (alert,) = alerts(server, "firing")
    incidents = {incident["cause"]: incident for incident in server.ask(f"/runs/{RUN}/incidents")}
    assert incidents[CAUSE]["is_open"]
    assert any(RULE in name for name in incidents[CAUSE]["alerts"])
    (proposal,) = commands(server, "proposed")
    assert proposal["alert_id"] == alert["id"]
    assert proposal["argument"] < BETA
    server.ask(f"/commands/{proposal['id']}/approve", {"argument": SANE_BETA})
    wait_until(lambda: alert["id"] in [a["id"] for a in alerts(server, "resolved")], "the alert's end")
    server.ask(f"/runs/{RUN}/commands", {"kind": "stop", "why": "healed"})
    return dict(alert)


def assert_obeyed(server: Server, told: list[dict[str, Any]], alert: dict[str, Any]) -> None:
    assert {rank["beta"] for rank in told} == {SANE_BETA}, "read back from every rank"
    assert len({rank["weights"] for rank in told}) == 1
    assert len({rank["steps"] for rank in told}) == 1
    assert f"checkpoint-{told[0]['steps']}" in told[0]["checkpoints"]
    steered = next(command for command in commands(server, "applied") if command["kind"] == "set_kl_coef")
    assert (steered["rule"], steered["alert_id"]) == (RULE, alert["id"])
    assert (steered["before"], steered["after"]) == (BETA, SANE_BETA)
    coefficients = server.series(RUN, "kl.coef")
    applied, last = steered["step"], told[0]["steps"]
    assert coefficients["value"] == [BETA] * applied + [SANE_BETA] * (last - applied)


def assert_seen(server: Server, last: int) -> None:
    for metric in ("policy.loss", "kl.pull_ratio", "gradient.norm"):
        assert list(server.series(RUN, metric)["step"]) == list(range(1, last + 1)), "steps seen = steps run"
    pulls = server.series(RUN, "kl.pull_ratio")["value"]
    assert max(pulls) > 1 > pulls[-1], "the signal answers"


def commands(server: Server, state: str) -> list[dict[str, Any]]:
    return list(server.ask(f"/commands?run={RUN}&state={state}")["items"])


def alerts(server: Server, state: str) -> list[dict[str, Any]]:
    return [a for a in server.ask(f"/alerts?run={RUN}&state={state}")["items"] if a["rule"] == RULE]


@contextmanager
def started(*arguments: Any, **how: Any) -> Iterator[list[Rank]]:
    ranks = start_ranks(*arguments, **how)
    try:
        yield ranks
    except AssertionError as error:
        said = [rank.err.read_text()[-1500:] for rank in ranks]
        raise AssertionError(f"{error}; {said}") from error
    finally:
        for rank in ranks:
            rank.end()
