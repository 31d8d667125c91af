"""Who looks after an alert, while others judge its run, on both databases."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from sqlalchemy import select

from rlvitals.contract.alert import AlertState
from rlvitals_monitor.alerts import attention
from rlvitals_monitor.errors import NotFound
from rlvitals_monitor.store import alerts, evaluations, tables
from rlvitals_monitor.store.engine import Store
from tests.monitor.planted import NOW, a_transition, plant


def test_the_first_name_stays_until_it_is_taken_back(store: Store) -> None:
    plant(store, a_transition())
    with store.begin() as conn:
        assert attention.acknowledge(conn, "a1", "ann", NOW).acknowledged_by == "ann"
        assert attention.acknowledge(conn, "a1", "bob", NOW).acknowledged_by == "ann"
        assert attention.unacknowledge(conn, "a1", "bob", NOW).acknowledged_by == ""
        assert attention.acknowledge(conn, "a1", "bob", NOW, name="night shift").acknowledged_by == "night shift"
        with pytest.raises(NotFound):
            attention.acknowledge(conn, "a2", "ann", NOW)


def test_a_name_that_comes_while_the_run_is_judged_is_not_written_over(store: Store) -> None:
    plant(store, a_transition())
    with store.read() as conn:
        number = conn.scalar(select(tables.attempts.c.number)) or 0
    began = threading.Event()

    def acknowledge() -> None:
        began.set()
        with store.begin() as conn:
            attention.acknowledge(conn, "a1", "ann", NOW)

    person = threading.Thread(target=acknowledge)
    with store.begin() as conn:
        evaluations.lock_subject(conn, number)
        known = alerts.find(conn, "a1")
        assert known is not None
        person.start()
        began.wait(10)
        person.join(0.2)
        alerts.save(conn, number, replace(known, state=AlertState.RESOLVED))
    person.join(10)
    with store.read() as conn:
        found = alerts.find(conn, "a1")
    assert found is not None
    assert (found.state, found.acknowledged_by) == (AlertState.RESOLVED, "ann")
