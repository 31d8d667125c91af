"""What people and the machine do to one run while it stands in a moment: approve, ask, kill the service, look."""

from __future__ import annotations

import urllib.error
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rlvitals.contract.command import CommandKind, CommandState, Policy
from tests.client.integrations.pair import Rank
from tests.end_to_end.server import Server, wait_until
from tests.trainers.control_matrix.gate import Gate
from tests.trainers.control_matrix.plan import KNOB, OF_PEOPLE, TURNED, Slot

DEADLINE_S = 120.0
DELIVERED = (CommandState.DELIVERED.value, CommandState.APPLIED.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A slot that was lived through: its command's id, and whether the service died in it."""

    slot: Slot
    command: str
    was_killed: bool


@dataclass(slots=True, kw_only=True)
class People:
    server: Server
    folder: Path
    ranks: Sequence[Rank]

    def live(self, slots: Sequence[Slot]) -> list[Case]:
        """One run from its first moment to its last step; fails, and does not hang, if a rank is gone."""
        return [self._meet(slot, slots[place + 1 : place + 2]) for place, slot in enumerate(slots)]

    def commands(self, run: str) -> dict[str, Mapping[str, Any]]:
        try:
            found = self.server.ask(f"/commands?run={run}&limit=100")["items"]
        except urllib.error.HTTPError:  # not a step of it has come yet
            return {}
        return {command["id"]: command for command in found}

    def wait(self, condition: Any, what: str) -> None:
        def met() -> bool:
            gone = [rank for rank in self.ranks if rank.process.poll() not in (None, 0)]
            assert not gone, [rank.err.read_text()[-2500:] for rank in gone]
            return bool(condition())

        wait_until(met, what, DEADLINE_S)

    def _meet(self, slot: Slot, following: Sequence[Slot]) -> Case:
        gate = Gate(folder=self.folder, run=slot.run, step=slot.step)
        self.wait(lambda: gate.is_reached(slot.size), f"{slot.run} to reach {slot.moment} after step {slot.step}")
        command = self._decide(slot)
        if not slot.is_obeyed:
            dies = slot.verb is CommandKind.PAUSE  # once a run: nothing is under way in the others
            if dies:
                self._die()
            self._refuse(command)
            gate.open()
            return Case(slot=slot, command=command, was_killed=dies)
        if slot.killed == "asked":
            self._die()
        self._reach(slot, command, DELIVERED)
        if slot.killed == "delivered":
            self._die()
        if slot.killed == "applied":
            self.server.kill()
        gate.open()
        if slot.killed == "applied":
            if slot.verb not in (CommandKind.PAUSE, CommandKind.STOP):  # the training goes on without a service
                after = Gate(folder=self.folder, run=slot.run, step=following[0].step)
                self.wait(lambda: after.is_reached(slot.size), f"{slot.run} to go on without the service")
            self.server.start()
        self._reach(slot, command, DELIVERED[1:])
        if slot.verb is CommandKind.PAUSE:
            self._resume(slot)
        return Case(slot=slot, command=command, was_killed=True)

    def _decide(self, slot: Slot) -> str:
        """Makes the command of a slot, or waits for the rule that makes it; approves where that is asked for."""
        if slot.verb in OF_PEOPLE:
            return self.ask(slot.run, slot.verb, TURNED if slot.verb is CommandKind.SET_KNOB else None)
        found: list[Mapping[str, Any]] = []

        def proposed() -> bool:
            found[:] = [c for c in self.commands(slot.run).values() if c["rule"] == slot.rule]
            return bool(found)

        self.wait(proposed, f"the rule {slot.rule} to speak in {slot.run}")
        (command,) = found
        if slot.policy is Policy.APPROVE:
            assert command["state"] == CommandState.PROPOSED.value
            self.server.ask(f"/commands/{command['id']}/approve", {})
        return str(command["id"])

    def ask(self, run: str, verb: CommandKind, argument: float | None = None) -> str:
        knob = KNOB if verb is CommandKind.SET_KNOB else ""
        body = {"kind": verb.value, "argument": argument, "why": "asked by a person", "knob": knob}
        return str(self.server.ask(f"/runs/{run}/commands", body)["id"])

    def _refuse(self, command: str) -> None:
        """What is only observed cannot be approved either, and the answer says why."""
        with pytest.raises(urllib.error.HTTPError) as refused:
            self.server.ask(f"/commands/{command}/approve", {})
        assert refused.value.code == 409
        assert "observed" in refused.value.read().decode()

    def _reach(self, slot: Slot, command: str, states: Sequence[str]) -> None:
        self.wait(
            lambda: self.commands(slot.run).get(command, {}).get("state") in states,
            f"{slot.verb.value} in {slot.moment} of {slot.run} to be {' or '.join(states)}",
        )

    def _resume(self, slot: Slot) -> None:
        """The service dies in the pause as well, and the run stands until a person says so."""
        self.wait(lambda: self.server.ask(f"/runs/{slot.run}")["phase"] == "paused", f"{slot.run} to stand")
        self._die()
        self.wait(lambda: self.server.ask(f"/runs/{slot.run}")["phase"] == "paused", f"{slot.run} to stand still")
        self._reach(slot, self.ask(slot.run, CommandKind.RESUME), DELIVERED[1:])

    def _die(self) -> None:
        self.server.kill()
        self.server.start()
