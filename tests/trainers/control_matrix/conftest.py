"""The table of what became of each command, printed at the end."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from tests.trainers.control_matrix.people import Case
from tests.trainers.control_matrix.plan import MOMENTS, POLICIES, SIZES, VERBS, Slot

_CELLS = pytest.StashKey[dict[tuple[str, str, str, int], str]]()


@pytest.fixture(scope="session")
def tell(request: pytest.FixtureRequest) -> Callable[[Case, str], None]:
    """Keeps what became of a case for the table."""
    cells = request.config.stash.setdefault(_CELLS, {})

    def tell(case: Case, state: str) -> None:
        died = f", service killed when {_when(case.slot)}" if case.was_killed else ""
        at = f" at {case.slot.boundary}" if case.slot.is_obeyed else ""
        cells[_place(case.slot)] = f"{state}{at}{died}"

    return tell


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    cells = config.stash.get(_CELLS, {})
    if not cells:
        return
    terminalreporter.section("what became of each command")
    for verb, moment in itertools.product(VERBS, MOMENTS):
        rows = [(policy.value, size) for size in SIZES for policy in POLICIES]
        found = [(row, cells[key]) for row in rows if (key := (verb.value, moment, *row)) in cells]
        for (policy, size), told in found:
            terminalreporter.write_line(f"{verb.value:12} in {moment:10} {policy:8} {size} rank(s)  {told}")


def _when(slot: Slot) -> str:
    return slot.killed if slot.is_obeyed else "observed"


def _place(slot: Slot) -> tuple[str, str, str, int]:
    return slot.verb.value, slot.moment, slot.policy.value, slot.size
