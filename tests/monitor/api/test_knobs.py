"""A knob's way: registered in the loop, shown, asked for, handed out on a receipt, turned, and answered."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import rlvitals
from rlvitals.contract import codec
from rlvitals.contract.command import Command
from rlvitals.contract.report import Heartbeat, Receipt, ReportBatch
from rlvitals.contract.wire import to_wire
from rlvitals.follow import Follower
from rlvitals.spool import journal_folder

V1 = "/api/v1"


@pytest.fixture
def reporter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> rlvitals.Reporter:
    monkeypatch.setenv("RLVITALS_MODE", "offline")
    return rlvitals.init(project="demo", run="r1", spool=tmp_path / "spool")


def send(client: TestClient, reporter: rlvitals.Reporter) -> tuple[Command, ...]:
    """All that the journal holds, as the sender would; the commands that came back."""
    follower = Follower(journal_folder(reporter.settings.spool, "r1", reporter.attempt))
    records = [item.record for item in follower.read(1000)]
    follower.close()
    kinds = {"StepReport": "steps", "Event": "events", "Outcome": "outcomes"}
    by: dict[str, list[object]] = {name: [] for name in kinds.values()}
    for record in records:
        if type(record).__name__ in kinds:
            by[kinds[type(record).__name__]].append(record)
    told = {name: tuple(found) for name, found in by.items()}
    beat = Heartbeat(time_s=0.0, last_step=reporter.last_step)
    batch = ReportBatch(run=reporter.run, attempt=reporter.attempt, heartbeat=beat, **told)  # type: ignore[arg-type]
    answer = client.post(f"{V1}/reports", json=to_wire(batch))
    assert answer.status_code == 200, answer.text
    return codec.decode(Receipt, answer.json()).commands


def test_a_knob_is_turned_from_the_service_by_a_trainer_whose_clock_is_decades_behind(
    client: TestClient, reporter: rlvitals.Reporter
) -> None:
    got: list[float] = []
    reporter.knob("temperature", got.append, low=0.2, high=2.0, value=1.0, max_change=0.5)
    reporter.report(1, {"loss": 1.0})
    assert send(client, reporter) == ()
    shown = client.get(f"{V1}/runs/r1").json()["knobs"]["temperature"]
    assert (shown["low"], shown["high"], shown["value"]) == (0.2, 2.0, 1.0)
    ask = {"kind": "set_knob", "knob": "temperature"}
    far = client.post(f"{V1}/runs/r1/commands", json={**ask, "argument": 1.9})
    assert (far.status_code, "too large a change" in far.text) == (422, True)
    made = client.post(f"{V1}/runs/r1/commands", json={**ask, "argument": 1.4}).json()
    reporter.control.offer(send(client, reporter))
    (command,) = reporter.control.take(2)
    turned = reporter.control.knobs.turn(command.knob, command.argument or 0.0)
    reporter.control.applied(command, step=2, before=turned.before, after=turned.after)
    assert got == [1.4]
    assert send(client, reporter) == ()
    (done,) = client.get(f"{V1}/commands", params={"run": "r1"}).json()["items"]
    assert (done["id"], done["state"], done["before"], done["after"]) == (made["id"], "applied", 1.0, 1.4)
