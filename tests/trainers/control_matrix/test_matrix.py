"""Each verb, under each policy, at each moment, on one rank and on two, the service killed in the middle of it."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rlvitals.contract.command import CommandKind, CommandState
from rlvitals_monitor.rules.loader import load_rules
from tests.client.integrations import tiny
from tests.client.integrations.pair import start_ranks
from tests.end_to_end.server import Server
from tests.trainers.control_matrix import plan, rank
from tests.trainers.control_matrix.people import Case, People
from tests.trainers.control_matrix.plan import MOMENTS, POLICIES, SIZES, STEPS, Slot

END_S = 60.0
Tell = Callable[[Case, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lived:
    """A run at its end: what was done to it, what each rank told, and what the service knows."""

    cases: list[Case]
    ranks: list[dict[str, Any]]
    commands: dict[str, Any]
    audit: list[Any]

    @property
    def slots(self) -> list[Slot]:
        return [case.slot for case in self.cases]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Its own rules for each verb; what the shipped ones propose is only observed."""
    folder = tmp_path_factory.mktemp("service")
    rules = folder / "rules.yaml"
    rules.write_text(plan.rules())
    shipped = sorted({rule.alert for rule in load_rules([]) if rule.action is not None})
    policies = {
        "RLVITALS_RULES": str(rules),
        "RLVITALS_POLICY_PROJECTS": ",".join(f"{policy.value}={policy.value}" for policy in POLICIES),
        "RLVITALS_POLICY_RULES": ",".join(f"{alert}=observe" for alert in shipped),
    }
    with pytest.MonkeyPatch.context() as patched:
        for name, value in policies.items():
            patched.setenv(name, value)
        server = Server(folder)
        server.start()
        yield server
        server.stop()


@pytest.fixture(
    scope="module",
    params=[(policy, size) for size in SIZES for policy in POLICIES],
    ids=lambda told: f"{told[0].value} with {told[1]} rank(s)",
)
def lived(request: pytest.FixtureRequest, server: Server, tmp_path_factory: pytest.TempPathFactory) -> list[Lived]:
    """A run for each moment, in processes that live through them one after the other."""
    (policy, size), folder = request.param, tmp_path_factory.mktemp("ranks")
    rows = [list(plan.slots(policy, moment, size)) for moment in MOMENTS]
    (folder / "matrix.json").write_text(json.dumps(_matrix(tiny.save_policy(folder / "policy"), rows)))
    env = {**server.env, "RLVITALS_MODE": "", "RLVITALS_INTERVAL_S": "0.05", "RLVITALS_EXIT_FLUSH_S": "60"}
    env["RLVITALS_FAIL_OPEN_S"] = "600"  # a busy machine may need long to start the service again
    env |= {name: "" for name in os.environ if name.startswith("RLVITALS_POLICY")}
    ranks = start_ranks(rank.__name__, folder, str(folder), str(folder / "matrix.json"), ranks=size, env=env)
    try:
        people = People(server=server, folder=folder, ranks=ranks)
        return [_live(people, row) for row in rows]
    finally:
        for process in ranks:
            process.end()


def _matrix(policy: Path, rows: list[list[Slot]]) -> dict[str, Any]:
    runs = [
        {
            "id": row[0].run,
            "project": row[0].policy.value,
            "moment": row[0].moment,
            "steps": [slot.step for slot in row],
        }
        for row in rows
    ]
    return {"policy": str(policy), "runs": runs}


def _live(people: People, row: list[Slot]) -> Lived:
    cases, run = people.live(row), row[0].run
    files = [people.folder / f"{run}.rank-{n}.json" for n in range(row[0].size)]
    people.wait(lambda: all(file.exists() for file in files), f"the end of {run}")
    people.wait(lambda: people.server.ask(f"/runs/{run}")["phase"] == "finished", f"{run} to be told as finished")
    return Lived(
        cases=cases,
        ranks=[json.loads(file.read_text()) for file in files],
        commands=people.commands(run),
        audit=people.server.ask(f"/audit?run={run}&limit=100")["items"],
    )


def test_each_command_is_applied_once_at_the_next_boundary_or_told_as_not_applied(
    lived: list[Lived], tell: Tell
) -> None:
    for run in lived:
        journalled = Counter((name, state) for name, state, _ in run.ranks[0]["steered"]["outcomes"])
        audited = Counter((line["command_id"], line["what"]) for line in run.audit)
        for case in run.cases:
            command = run.commands[case.command]
            if case.slot.is_obeyed:
                assert (command["state"], command["step"]) == ("applied", case.slot.boundary), case
                assert journalled[case.command, "applied"] == audited[case.command, "applied"] == 1, case
            else:
                assert command["state"] == CommandState.OBSERVED.value, case
                assert "observed only" in command["reason"], case
                assert not any(name == case.command for name, _ in journalled), case
            tell(case, command["state"])


def test_every_rank_obeys_at_the_same_boundary(lived: list[Lived]) -> None:
    for run in lived:
        diary = run.ranks[0]["steered"]["diary"]
        assert all(told["steered"]["diary"] == diary for told in run.ranks)
        obeyed = {slot.verb: slot for slot in run.slots if slot.is_obeyed}
        betas, rates, knobs = ([line[n] for line in diary] for n in (0, 1, 2))
        assert betas == pytest.approx(_stairs(obeyed.get(CommandKind.SET_KL_COEF), plan.BETA, 0.6, len(diary)))
        assert rates == pytest.approx(_stairs(obeyed.get(CommandKind.SCALE_LR), plan.RATE, 0.7, len(diary)))
        turned = _stairs(obeyed[CommandKind.SET_KNOB], plan.NORM, plan.TURNED, len(diary))
        assert knobs == pytest.approx(turned)
        stopped = obeyed.get(CommandKind.STOP)
        assert len(diary) == (stopped.boundary if stopped else STEPS)


def test_a_checkpoint_is_there_where_one_was_asked_for(lived: list[Lived]) -> None:
    for run in lived:
        asked = {
            f"checkpoint-{slot.boundary}"
            for slot in run.slots
            if slot.is_obeyed and slot.verb in (CommandKind.CHECKPOINT, CommandKind.STOP)
        }
        by_schedule = {f"checkpoint-{slot.step}" for slot in run.slots if slot.moment == "checkpoint"}
        assert set(run.ranks[0]["steered"]["checkpoints"]) == asked | by_schedule


def test_training_ends_with_the_weights_that_the_same_values_give_by_hand(lived: list[Lived]) -> None:
    for run in lived:
        for told in run.ranks:
            assert told["steered"]["weights"] == told["by_hand"]["weights"]
            assert told["steered"]["steps"] == told["by_hand"]["steps"]
            assert told["steered"]["diary"] == told["by_hand"]["diary"]
        assert len({told["steered"]["weights"] for told in run.ranks}) == 1


def test_a_pause_is_ended_by_a_person(lived: list[Lived]) -> None:
    for run in lived:
        obeyed = any(slot.verb is CommandKind.PAUSE and slot.is_obeyed for slot in run.slots)
        assert ({"pause_released_by": "resume"} in run.ranks[0]["steered"]["notes"]) == obeyed


def _stairs(slot: Slot | None, before: float, factor: float, steps: int) -> list[float]:
    at = slot.boundary if slot is not None else steps
    return [before] * at + [before * factor] * (steps - at)
