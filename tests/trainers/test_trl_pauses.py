"""TRL's ranks wait together: longer than any time-out, until the service is dead, until one of them is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.client.integrations import tiny
from tests.client.integrations.pair import Rank, start_ranks
from tests.end_to_end.server import Server, serving, wait_until
from tests.trainers.ranks import goodbye
from tests.trainers.ranks import job as job_module
from tests.trainers.ranks.job import Job

TIMEOUT_S, PAUSE_S, BEAT_S = 10.0, 25.0, 0.5
"""Of a collective of the training, and how long its ranks are kept from their next one."""
DEADLINE_S = 240.0
FAIL_OPEN_S = 2.0
RUN = "paused"
GOODBYES = 10
PAUSE = [("step_end", 2, "k", "set_kl_coef", 0.1), ("step_end", 2, "p", "pause")]
Start = Callable[..., list[Rank]]


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save_policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture
def start(policy: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts the two ranks of a `Job` whose collectives time out after `TIMEOUT_S`."""
    started: list[Rank] = []

    def start(env: dict[str, str] | None = None, **given: Any) -> list[Rank]:
        job = Job(
            policy=str(policy), output=str(tmp_path / "output"), runs=("steered",), timeout_s=TIMEOUT_S, **given
        )
        started.extend(start_ranks(job_module.__name__, tmp_path, str(job.write(tmp_path / "job.json")), env=env))
        return started

    yield start
    for rank in started:
        rank.end()


def test_a_pause_of_25_s_outlives_a_time_out_of_10_s(start: Start) -> None:
    ranks = [rank.told(DEADLINE_S) for rank in start(beats=int(PAUSE_S / BEAT_S), beat_s=BEAT_S, commands=PAUSE)]
    first, second = (rank["steered"] for rank in ranks)
    assert first["pause_s"] >= PAUSE_S
    assert second["pause_s"] >= PAUSE_S - 2 * BEAT_S
    assert (first["steps"], second["steps"]) == (4, 4)
    assert (first["beta"], second["beta"]) == (0.1, 0.1)
    assert first["weights"] == second["weights"]
    assert len(first["kl"]) == 4
    assert first["kl"] == second["kl"], "the trainer's own log of it, to the last digit"
    assert [values["kl.coef"] for _, values, _ in first["reports"]] == [0.5, 0.5, 0.1, 0.1]


def test_a_pause_ends_when_the_service_is_killed_in_it(start: Start, tmp_path: Path) -> None:
    with serving(tmp_path / "service") as server:
        env = {**server.env, "RLVITALS_MODE": "", "RLVITALS_INTERVAL_S": "0.05", "RLVITALS_EXIT_FLUSH_S": "0.2"}
        ranks = start(env, commands=PAUSE, beat_s=0.1, limits={"fail_open_s": FAIL_OPEN_S}, attach={"run": RUN})
        with until_dead(ranks):
            wait_until(lambda: phase(server) == "paused", "the pause")
        server.kill()
        told = [rank.told(DEADLINE_S)["steered"] for rank in ranks]
    assert [rank["steps"] for rank in told] == [4, 4]
    assert [rank["beta"] for rank in told] == [0.1, 0.1]
    assert {"pause_released_by": "service silent"} in told[0]["notes"]


@pytest.mark.parametrize("dead", [0, 1])
def test_a_rank_that_is_killed_in_a_pause_does_not_hold_up_the_other(start: Start, dead: int) -> None:
    ranks = start({"RLVITALS_RAISE": "0"}, commands=PAUSE, dies=(dead, 5), beat_s=0.1)
    ranks[dead].process.wait(DEADLINE_S)
    died = monotonic()
    ranks[1 - dead].process.wait(DEADLINE_S)
    assert monotonic() - died < 6 * TIMEOUT_S, "it ends as it would without us: in the training's next collective"
    assert ranks[1 - dead].process.returncode > 0, "and by an error, not by an abort"


def test_no_rank_aborts_when_it_says_goodbye(tmp_path: Path) -> None:
    for time in range(GOODBYES):
        for rank in start_ranks(goodbye.__name__, tmp_path, goodbye.WAYS[time % len(goodbye.WAYS)]):
            assert rank.told(DEADLINE_S) == {"gathered": 2}


def phase(server: Server) -> str:
    try:
        return str(server.ask(f"/runs/{RUN}")["phase"])
    except OSError:
        return ""


@contextmanager
def until_dead(ranks: list[Rank]) -> Iterator[None]:
    """What goes wrong inside is told with what a dead rank has said."""
    try:
        yield
    except AssertionError as error:
        said = [rank.err.read_text()[-1500:] for rank in ranks]
        raise AssertionError(f"{error}; {said}") from error
