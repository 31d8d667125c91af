"""A run in the store whose steps are judged and steered one by one, and whose trainer obeys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection

from rlvitals.contract.command import CommandKind, CommandState, Outcome, Policy
from rlvitals.contract.report import RunInfo
from rlvitals.contract.view import CommandView
from rlvitals_monitor.alerts import engine
from rlvitals_monitor.control import handover, steer
from rlvitals_monitor.control.bounds import Limits
from rlvitals_monitor.control.kl_decision import KlDecision
from rlvitals_monitor.control.policy import Policies
from rlvitals_monitor.rules.rule import Rule
from rlvitals_monitor.store import commands, steering
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import store_batch
from tests.monitor.batches import after, batch, step

CALM = {"kl.capped": 0.2, "kl.pull_ratio": 0.3, "kl.grad_max": 1.0, "reward.mean": 0.5}
PULLED = {**CALM, "kl.pull_ratio": 2.0}
LIMITS = Limits(cool_down_s=0.0)
STEP_S = 60.0


@dataclass(slots=True, kw_only=True)
class LiveRun:
    """A step a minute. Its trainer ``obeys`` at the next step, and the KL pull goes with the coefficient.

    ``tells``: it reports the coefficient in force.
    """

    store: Store
    run: str = "r1"
    project: str = "p1"
    attempt: str = "a1"
    coefficient: float = 0.1
    users: float = 0.1
    target: float | None = 0.2
    capable: bool = True
    obeys: bool = True
    tells: bool = True
    rules: Sequence[Rule] = ()
    cache: engine.Cache = field(default_factory=engine.Cache)
    policies: Policies = field(default_factory=lambda: Policies(default=Policy.AUTO))
    limits: Limits = LIMITS
    seq: int = 0
    made: list[KlDecision] = field(default_factory=list)

    def choose(
        self, policy: str = "guarded", scope: str = "run", at: datetime | None = None, **own: object
    ) -> None:
        name = self.run if scope == "run" else self.project
        with self.store.begin() as conn:
            steering.choose(conn, scope, name, policy, own, "ann", at or after(0))

    def report(self, conn: Connection, number: int, *rows: Mapping[str, float]) -> None:
        """Sends steps from ``number`` on, the coefficient in force with them; nothing looks at them yet."""
        told = [step(self.seq + n + 1, number + n, self._values(row)) for n, row in enumerate(rows)]
        self.seq += len(rows)
        config = {"kl_coef": self.users} | ({} if self.target is None else {"kl_target": self.target})
        can = {kind.value: "" if self.capable else "no" for kind in CommandKind}
        info = RunInfo(id=self.run, project=self.project, config=config, capabilities=can)
        sent = batch(*told, run=self.run, attempt=self.attempt, info=info)
        store_batch(conn, sent, self.now(number + len(rows) - 1))

    def _values(self, row: Mapping[str, float]) -> dict[str, float]:
        told = {**row, "kl.coef": self.coefficient} if self.tells else dict(row)
        if "kl.pull_ratio" in row:
            told["kl.pull_ratio"] = row["kl.pull_ratio"] * (self.coefficient / self.users)
        return told

    def look(self, conn: Connection, number: int) -> list[tuple[int, str]]:
        """The service judges and steers what there is; which attempts were behind."""
        attempt = steering.newest_attempt(conn, self.run)
        assert attempt is not None
        engine.advance(conn, attempt, self.rules, self.now(number), cache=self.cache)
        found = steering.behind(conn, 10)
        for behind, _ in found:
            steered = steer.advance(conn, behind, self.policies, self.limits, self.now(number))
            if steered.decision is not None:
                self.made.append(steered.decision)
        return found

    def train(self, values: Mapping[str, float], steps: int, first: int = 0) -> None:
        """The service looks after each step, and the trainer obeys before the next."""
        for number in range(first, first + steps):
            with self.store.begin() as conn:
                self.report(conn, number, values)
                self.look(conn, number)
                if self.obeys:
                    self.obey(conn, number)

    def rest(self, values: Mapping[str, float], steps: int, first: int = 0) -> None:
        """The same where nothing is decided: one look at all of them, and ``made`` has the last decision only."""
        with self.store.begin() as conn:
            self.report(conn, first, *([values] * steps))
            self.look(conn, first + steps - 1)

    def obey(self, conn: Connection, number: int) -> None:
        """What rides on a receipt is applied and answered."""
        for command in handover.pending_for(conn, self.run, self.now(number)):
            before, self.coefficient = self.coefficient, float(command.argument or 0.0)
            outcome = Outcome(
                seq=self.seq,
                command_id=command.id,
                state=CommandState.APPLIED,
                step=number + 1,
                before=before,
                after=self.coefficient,
            )
            handover.record_outcome(conn, self.run, outcome, self.now(number))

    def commands(self) -> list[CommandView]:
        with self.store.read() as conn:
            return list(commands.history(conn, self.run, CommandKind.SET_KL_COEF))

    def set_by(self) -> list[tuple[int, str, float]]:
        return [(d.step, d.why.value, d.value) for d in self.made if d.value is not None]

    @staticmethod
    def now(number: int) -> datetime:
        return after(STEP_S * number)
