"""The worker proposes for many runs while their trainers report: nobody waits for each other in a circle."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from rlvitals.contract.command import CommandKind, CommandState
from rlvitals_monitor.control import handover, mailbox
from rlvitals_monitor.store import commands
from rlvitals_monitor.store.audit import verify
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.worker import Worker
from tests.monitor.planted import NOW, a_transition, an_alert, later, plant_run, plant_transition

RUNS = [f"r{number}" for number in range(6)]


def test_proposals_and_receipts_at_once_all_come_through_and_the_audit_holds(store: Store) -> None:
    with store.begin() as conn:
        for run in RUNS:
            plant_run(conn, run)
            plant_transition(conn, a_transition(an_alert(run=run, id=f"a-{run}"), id=f"x-{run}"))
    for run in RUNS:
        with store.begin() as conn:
            mailbox.request(conn, run, CommandKind.CHECKPOINT, None, "ada", "", NOW)
    gate, worker = threading.Barrier(3), Worker(store, rules=())

    def report(order: list[str]) -> None:
        gate.wait(10)
        for run in order:
            with store.begin() as conn:
                assert commands.read_subject(conn, run, lock=True)
                handover.pending_for(conn, run, later(1))

    def judge() -> None:
        gate.wait(10)
        worker.tick(later(2))

    with ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(report, RUNS), pool.submit(report, RUNS[::-1]), pool.submit(judge)]
        for job in jobs:
            job.result(30)
    assert worker.failures == 0
    with store.read() as conn:
        made = [commands.history(conn, run, CommandKind.SET_KL_COEF) for run in RUNS]
        assert verify(conn).fault == ""
    assert [[command.state for command in found] for found in made] == [[CommandState.PROPOSED]] * len(RUNS)
