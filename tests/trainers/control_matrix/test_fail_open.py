"""Nobody holds a training for ever: a pause has an end, a client may die, a service may stay away."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.client.integrations import tiny
from tests.client.integrations.pair import Rank, start_ranks
from tests.end_to_end.server import Server, serving, wait_until
from tests.trainers.control_matrix.plan import SIZES
from tests.trainers.ranks import job as job_module
from tests.trainers.ranks.job import Job

RUN, BETA, SANE = "fail-open", 0.5, 0.3
LONGEST_S = 2.0
STEPS = 40
DEADLINE_S = 120.0
Start = Callable[..., list[Rank]]


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save_policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture(params=SIZES, ids=lambda size: f"{size} rank(s)")
def size(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path / "service") as running:
        yield running


@pytest.fixture
def start(policy: Path, tmp_path: Path, server: Server, size: int) -> Iterator[Start]:
    """Starts a training's ranks, which report to the service; a second start is a restart of the same run."""
    started: list[Rank] = []
    env = {**server.env, "RLVITALS_MODE": "", "RLVITALS_INTERVAL_S": "0.05", "RLVITALS_EXIT_FLUSH_S": "0.2"}

    def start(steps: int = 100_000) -> list[Rank]:
        settings = {"beta": BETA, "max_steps": steps, "per_device_train_batch_size": 8 // size}
        job = Job(
            policy=str(policy),
            output=str(tmp_path / "output"),
            runs=("steered",),
            trainer={**settings, "logging_steps": 1000},
            attach={"run": RUN},
        )
        path = str(job.write(tmp_path / "job.json"))
        started[:] = start_ranks(job_module.__name__, tmp_path, path, ranks=size, env=env)
        return started

    yield start
    for rank in started:
        rank.end()


def test_a_pause_ends_at_its_longest_though_nobody_says_so(server: Server, start: Start) -> None:
    ranks = start()
    goes_on(server)
    pause = ask(server, "pause", LONGEST_S)
    wait_until(lambda: state(server, pause)["state"] == "applied", "the pause", DEADLINE_S)
    stood = state(server, pause)["step"]
    wait_until(lambda: (server.last_step(RUN) or 0) > stood, "the training to go on", DEADLINE_S)
    assert "longest pause" in released(server)
    assert end(server, ranks)["steps"] > stood


def test_a_client_that_dies_in_a_pause_trains_when_it_is_started_again(
    server: Server, start: Start, size: int
) -> None:
    ranks = start()
    goes_on(server)
    pause = ask(server, "pause", 600.0)
    wait_until(lambda: phase(server) == "paused", "the run to stand", DEADLINE_S)
    for rank in ranks:
        rank.end()
    ranks = start()
    wait_until(lambda: attempts(server) == 2, "the second attempt", DEADLINE_S)
    wait_until(lambda: phase(server) not in ("paused", "starting"), "the run to train", DEADLINE_S)
    assert state(server, pause)["state"] == "applied", "by the first attempt, and by no other"
    assert [line["what"] for line in audit(server, pause)].count("applied") == 1
    # the new attempt obeys, on all of its ranks
    changed = ask(server, "set_kl_coef", SANE)
    wait_until(lambda: state(server, changed)["state"] == "applied", "the coefficient", DEADLINE_S)
    told = end(server, ranks)
    assert told["beta"] == SANE
    assert {rank.told(DEADLINE_S)["steered"]["beta"] for rank in ranks} == {SANE}
    assert len(ranks) == size


def test_a_training_whose_service_stays_away_ends_and_its_steps_are_sent_later(
    server: Server, start: Start, tmp_path: Path
) -> None:
    ranks = start(STEPS)
    goes_on(server)
    server.kill()
    told = [rank.told(DEADLINE_S)["steered"] for rank in ranks]
    assert {rank["steps"] for rank in told} == {STEPS}
    assert len({rank["weights"] for rank in told}) == 1
    server.start()
    sync(server, tmp_path)
    wait_until(lambda: server.last_step(RUN) == STEPS, "the last step", DEADLINE_S)
    assert list(server.series(RUN, "policy.loss")["step"]) == list(range(1, STEPS + 1))


def sync(server: Server, folder: Path) -> None:
    command = [str(Path(sys.executable).parent / "rlvitals"), "sync"]
    env = {**os.environ, **server.env, "RLVITALS_DIR": str(folder / "spool-0")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def goes_on(server: Server) -> None:
    wait_until(lambda: (server.last_step(RUN) or 0) >= 3, "the first steps", DEADLINE_S)


def end(server: Server, ranks: list[Rank]) -> Mapping[str, Any]:
    ask(server, "stop")
    told: Mapping[str, Any] = ranks[0].told(DEADLINE_S)["steered"]
    return told


def ask(server: Server, kind: str, argument: float | None = None) -> str:
    body = {"kind": kind, "argument": argument, "why": "test"}
    return str(server.ask(f"/runs/{RUN}/commands", body)["id"])


def state(server: Server, command: str) -> Mapping[str, Any]:
    found = server.ask(f"/commands?run={RUN}&limit=100")["items"]
    return next(dict(item) for item in found if item["id"] == command)


def audit(server: Server, command: str) -> list[Mapping[str, Any]]:
    lines = server.ask(f"/audit?run={RUN}&limit=100")["items"]
    return [line for line in lines if line["command_id"] == command]


def released(server: Server) -> list[str]:
    events = server.ask(f"/runs/{RUN}/events?kind=note")
    return [event["payload"].get("pause_released_by", "") for event in events]


def phase(server: Server) -> str:
    return str(server.ask(f"/runs/{RUN}")["phase"])


def attempts(server: Server) -> int:
    return len(server.ask(f"/runs/{RUN}")["attempts"])
