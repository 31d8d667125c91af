"""All steered runs, one after the other: each in its own transaction, and a fault in one holds up no other."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from rlvitals_monitor.control.bounds import Limits
from rlvitals_monitor.control.policy import Policies
from rlvitals_monitor.control.steer import STEPS_A_CALL, advance
from rlvitals_monitor.store import steering
from rlvitals_monitor.store.engine import Store

ATTEMPTS_A_LOOK = 64
ROUNDS_A_LOOK = 20
REST_AFTER_FAILURE = timedelta(seconds=30)

Guard = Callable[[str, Callable[[], None]], bool]
"""Does what it is given, by name; False where that failed, which it has logged."""


class Helm:
    """Shows new steps to the policies of the runs that have one. Not for use from several threads."""

    def __init__(self, policies: Policies, limits: Limits) -> None:
        self._policies, self._limits = policies, limits
        self._resting: dict[int, datetime] = {}

    def look(self, store: Store, now: datetime, guard: Guard) -> list[str]:
        """The runs for which a command began."""
        self._resting = {number: until for number, until in self._resting.items() if until > now}
        with store.read() as conn:
            found = steering.behind(conn, ATTEMPTS_A_LOOK + len(self._resting))
        commanded: list[str] = []
        for number, run in found:
            if number not in self._resting:
                self._steer(store, number, run, now, guard, commanded)
        return commanded

    def _steer(
        self, store: Store, number: int, run: str, now: datetime, guard: Guard, commanded: list[str]
    ) -> None:
        def rounds() -> None:
            for _ in range(ROUNDS_A_LOOK):
                with store.begin() as conn:
                    steered = advance(conn, number, self._policies, self._limits, now)
                if steered.commanded:
                    commanded.append(run)
                if steered.steps < STEPS_A_CALL:
                    return

        if not guard(f"steering run {run}", rounds):
            self._resting[number] = now + REST_AFTER_FAILURE
