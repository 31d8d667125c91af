"""The worker's look at all steered runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from rlvitals.contract.command import CommandState, Policy
from rlvitals_monitor.alerts import engine
from rlvitals_monitor.control import helm, steer
from rlvitals_monitor.control.helm import Helm
from rlvitals_monitor.control.policy import Policies
from rlvitals_monitor.store import steering
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.worker import Worker
from tests.monitor.control.live import LIMITS, PULLED, LiveRun

AUTO = Policies(default=Policy.AUTO)


def test_the_running_worker_steers_what_it_judged(store: Store) -> None:
    live = LiveRun(store=store)
    live.choose()
    worker = Worker(store, rules=(), policies=AUTO, limits=LIMITS)
    for first, count in ((0, 49), (49, 1)):
        with store.begin() as conn:
            live.report(conn, first, *([PULLED] * count))
        worker.tick(live.now(first + count - 1))
    assert [(c.asked_step, c.argument, c.state) for c in live.commands()] == [(49, 0.08, CommandState.PENDING)]
    assert worker.failures == 0


def test_two_workers_on_one_database_make_one_command(store: Store) -> None:
    live = LiveRun(store=store)
    live.choose()
    one, other = (Worker(store, rules=(), policies=AUTO, limits=LIMITS) for _ in range(2))
    for first, count in ((0, 49), (49, 1), (50, 1)):
        with store.begin() as conn:
            live.report(conn, first, *([PULLED] * count))
        for worker in (one, other):
            worker.tick(live.now(first + count - 1))
    assert len(live.commands()) == 1


def test_two_processes_at_the_same_moment_make_one_command(store: Store) -> None:
    live = LiveRun(store=store)
    live.choose()
    live.rest(PULLED, 49)
    with store.begin() as conn:
        live.report(conn, 49, PULLED)
        engine.advance(conn, steering.newest_attempt(conn, "r1") or 0, (), live.now(49))
    together = threading.Barrier(2, timeout=30)

    def look(_: int) -> list[str]:
        together.wait()
        return Helm(AUTO, LIMITS).look(store, live.now(49), guard)

    def guard(what: str, work: Callable[[], None]) -> bool:
        work()
        return True

    with ThreadPoolExecutor(2) as pool:
        commanded = [run for found in pool.map(look, range(2)) for run in found]
    assert commanded == ["r1"]
    assert len(live.commands()) == 1


def test_a_run_that_cannot_be_steered_rests_and_holds_up_no_other(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = LiveRun(store=store, run="good"), LiveRun(store=store, run="bad")
    worker = Worker(store, rules=(), policies=AUTO, limits=LIMITS)
    for live in (bad, good):
        live.choose()
        with store.begin() as conn:
            live.report(conn, 0, PULLED)
    real, tried = steer.advance, list[int]()

    def advance(conn: object, number: int, *others: object) -> object:
        tried.append(number)
        if len(tried) == 1:
            raise RuntimeError("no")
        return real(conn, number, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(helm, "advance", advance)
    worker.tick(good.now(0))
    assert (len(tried), worker.failures) == (2, 1)
    worker.tick(good.now(0) + timedelta(seconds=29))
    assert len(tried) == 2
    worker.tick(good.now(0) + timedelta(seconds=31))
    assert len(tried) == 3


def test_where_no_policy_is_chosen_nothing_is_read_but_that(store: Store) -> None:
    live = LiveRun(store=store)
    with store.begin() as conn:
        live.report(conn, 0, PULLED)
    calls: list[str] = []

    def guard(what: str, work: Callable[[], None]) -> bool:
        calls.append(what)
        return True

    assert Helm(AUTO, LIMITS).look(store, live.now(0), guard) == []
    assert calls == []
