"""What the board of all rules needs of the store: the runs, and what was last said of each by every rule."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection

from rlvitals.contract.rulebook import BoardRun
from rlvitals.contract.view import RunState, RunView
from rlvitals_monitor.alerts.board import Judged
from rlvitals_monitor.alerts.memory import said_of
from rlvitals_monitor.store import evaluations, run_list, runs
from rlvitals_monitor.store.series import missing_reasons

RUNS_MAX = 24
LOOKED_AT = 200
"""The newest runs, among which those that are going on are looked for."""
_OVER = (RunState.FINISHED, RunState.FAILED, RunState.STOPPED)


def read_board(connection: Connection, run: str, now: datetime) -> tuple[list[Judged], int]:
    """Of one run, or of those that are going on, and how many of these are left out. Raises `NotFound`."""
    chosen, left_out = _chosen(connection, run, now)
    numbers = {view.id: runs.find_attempt(connection, view.id)[0] for view in chosen if view.attempts}
    words = evaluations.last_words(connection, numbers.values())
    judged: list[Judged] = []
    for view in chosen:
        number = numbers.get(view.id)
        verdicts, seen = said_of(*words[number]) if number in words else ({}, frozenset())
        reasons = {} if number is None else missing_reasons(connection, number)
        about = BoardRun(id=view.id, name=view.name, project=view.project)
        judged.append(Judged(run=about, verdicts=verdicts, seen=seen, reasons=reasons))
    return judged, left_out


def _chosen(connection: Connection, run: str, now: datetime) -> tuple[Sequence[RunView], int]:
    if run:
        return [runs.read_run(connection, run, now)], 0
    newest, _ = run_list.list_runs(connection, now, limit=LOOKED_AT, whole=True)
    live = [view for view in newest if view.state not in _OVER]
    return live[:RUNS_MAX], max(0, len(live) - RUNS_MAX)
