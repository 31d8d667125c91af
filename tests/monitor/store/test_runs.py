from __future__ import annotations

from typing import Any

from sqlalchemy import insert

from rlvitals.contract.report import Phase, RunInfo
from rlvitals.contract.view import Light, RunState
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import store_batch
from rlvitals_monitor.store.numbers import to_micros
from rlvitals_monitor.store.run_list import list_runs
from rlvitals_monitor.store.runs import find_attempt, read_run
from rlvitals_monitor.store.tables import alerts, commands
from tests.monitor.batches import NOW, after, batch, heartbeat, step


def put(store: Store, attempt: str = "a1", **other: Any) -> None:
    with store.begin() as connection:
        store_batch(connection, batch(step(1, 1, {"m": 1.0}), attempt=attempt, **other), NOW)


def alert(store: Store, number: int, rule: str, severity: str, state: str) -> None:
    row = {"run": "r1", "since_step": 1, "since_time": 0, "body": {}, "rule": rule, "severity": severity}
    with store.begin() as connection:
        connection.execute(insert(alerts), row | {"id": rule, "attempt": number, "state": state})


def test_a_log_that_was_read_has_no_rate_of_steps(store: Store) -> None:
    for framework in ("trl", "tail", "import"):
        told = batch(
            step(1, 1, {"m": 1.0}),
            step(2, 2, {"m": 1.0}),
            run=framework,
            info=RunInfo(id=framework, framework=framework),
            attempt=framework,
        )
        with store.begin() as connection:
            store_batch(connection, told, NOW)
    with store.read() as connection:
        rates = {name: read_run(connection, name, NOW).steps_per_minute for name in ("trl", "tail", "import")}
    assert rates == {"trl": 60.0, "tail": None, "import": None}


def test_the_light_shows_what_fires_on_the_newest_attempt_only(store: Store) -> None:
    put(store)
    with store.read() as connection:
        first, _ = find_attempt(connection, "r1")
    for rule, severity, state in [
        ("a", "warning", "firing"),
        ("b", "critical", "resolved"),
        ("c", "info", "firing"),
    ]:
        alert(store, first, rule, severity, state)
    with store.read() as connection:
        run = read_run(connection, "r1", NOW)
        (listed,), more = list_runs(connection, NOW, whole=True)
    assert (run.light, run.firing, run.reason) == (Light.AMBER, 2, "2 alerts firing: a is warning")
    assert (listed, more) == (run, None)
    put(store, attempt="a2")
    with store.read() as connection:
        run = read_run(connection, "r1", NOW)
    assert (run.light, run.firing) == (Light.GREEN, 0)


def test_a_run_that_ended_by_an_applied_stop_was_stopped_and_its_next_attempt_was_not(store: Store) -> None:
    put(store)
    row = {"id": "c", "run": "r1", "kind": "stop", "expires_at": 0, "body": {}, "created_at": to_micros(after(1))}
    with store.begin() as connection:
        connection.execute(insert(commands), row | {"state": "applied"})
        store_batch(connection, batch(heartbeat=heartbeat(Phase.FINISHED)), after(2))
        assert read_run(connection, "r1", after(3)).state is RunState.STOPPED
        store_batch(connection, batch(attempt="a2", heartbeat=heartbeat(Phase.FINISHED)), after(4))
        assert read_run(connection, "r1", after(5)).state is RunState.FINISHED
