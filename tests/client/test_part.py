"""Several processes that write one attempt of a run together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from rlvitals.contract.command import Command, CommandKind
from rlvitals.contract.report import Phase, RunInfo
from rlvitals.part import Part
from rlvitals.reporter import Reporter
from rlvitals.settings import Settings
from rlvitals.spool import journals
from tests.client.service import Service

MakePart = Callable[..., Reporter]


@pytest.fixture
def make(service: Service, tmp_path: Path) -> Iterator[MakePart]:
    made: list[Reporter] = []

    def start(part: Part) -> Reporter:
        chosen = Settings(url=service.url, spool=tmp_path / "spool", interval_s=0.02, exit_flush_s=1.0)
        made.append(Reporter(chosen, RunInfo(id="r"), part=part))
        return made[-1]

    yield start
    for reporter in made:
        reporter.close()


def _command(name: str, kind: CommandKind) -> Command:
    later = datetime.now(timezone.utc) + timedelta(hours=1)
    return Command(id=name, kind=kind, expires_at=later)


def test_two_writers_of_one_attempt_lose_nothing_to_each_other(
    service: Service, make: MakePart, tmp_path: Path
) -> None:
    first, second = make(Part.of("rollout", "a1")), make(Part.of("train", "a1", leads=False))
    first.report(0, {"reward.mean": 1.0})
    second.report(0, {"policy.loss": 2.0})
    assert first.flush()
    assert second.flush()
    assert {key[0] for key in service.rows} == {"a1"}
    assert len({key[1] for key in service.rows}) == 2
    merged = {name: value for step in service.steps() for name, value in step.values.items()}
    assert (merged["reward.mean"], merged["policy.loss"]) == (1.0, 2.0)
    assert len(list(journals(tmp_path / "spool"))) == 2


def test_only_the_leader_says_what_the_run_is_doing(service: Service, make: MakePart) -> None:
    second = make(Part.of("train", "a1", leads=False))
    second.report(0, {"policy.loss": 2.0})
    assert second.flush()
    second.close(Phase.FINISHED)
    assert all(batch.heartbeat is None for batch in service.batches)
    first = make(Part.of("rollout", "a1"))
    first.report(0, {"reward.mean": 1.0})
    assert first.flush()
    assert any(batch.heartbeat is not None for batch in service.batches)


def test_each_part_takes_its_own_commands_only(make: MakePart) -> None:
    pausing = make(Part.of("rollout", "a1", obeys=(CommandKind.PAUSE, CommandKind.RESUME)))
    stopping = make(Part.of("train", "a1", leads=False, obeys=(CommandKind.STOP,)))
    commands = [_command("1", CommandKind.PAUSE), _command("2", CommandKind.STOP)]
    for reporter in (pausing, stopping):
        reporter.control.offer(commands[:1])
    assert [c.kind for c in pausing.control.take(1)] == [CommandKind.PAUSE]
    assert stopping.control.take(1) == ()
    assert pausing.control.holding()
    for reporter in (pausing, stopping):
        reporter.control.offer(commands)
    assert [c.kind for c in stopping.control.take(1)] == [CommandKind.STOP]
    assert not pausing.control.holding(), "a stop that another process carries out ends the pause all the same"
    assert pausing.control.released_by == "stop"
