"""The background loop: it judges, routes and expires, and nothing that fails in one piece stops another."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, func, select, update

from rlvitals.contract.command import CommandKind, CommandState, Policy
from rlvitals.contract.report import RunInfo
from rlvitals_monitor import worker as module
from rlvitals_monitor.alerts import engine
from rlvitals_monitor.control import mailbox
from rlvitals_monitor.control.policy import Policies
from rlvitals_monitor.live import Live
from rlvitals_monitor.notify.channel import Channels
from rlvitals_monitor.notify.channel_file import load_channels
from rlvitals_monitor.store import alerts, commands, evaluations, links, series, tables
from rlvitals_monitor.store.deliveries import standings
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import store_batch
from rlvitals_monitor.store.tables import transitions
from rlvitals_monitor.worker import Worker
from tests.monitor.batches import NOW, after, batch, step

ABLE = {kind.value: "" for kind in CommandKind}
PULL, QUIET = {"kl.pull_ratio": 4.0, "kl.coef": 0.4}, {"kl.pull_ratio": 0.1, "kl.coef": 0.4}
SICK = [QUIET] * 6 + [PULL] * 3
LATER = after(60)


def send(store: Store, rows: list[dict[str, float]], *, run: str = "r1", first: int = 1) -> None:
    reports = [step(first + place, first + place, row) for place, row in enumerate(rows)]
    with store.begin() as connection:
        info = RunInfo(id=run, config={"kl_coef": 0.4}, capabilities=ABLE)
        store_batch(connection, batch(*reports, run=run, info=info), NOW)


def channels() -> Channels:
    return load_channels(None, webhook_url="https://example.org/hook")


def states(store: Store, run: str = "r1", kind: CommandKind = CommandKind.SET_KL_COEF) -> list[CommandState]:
    with store.read() as connection:
        return [c.state for c in commands.history(connection, run, kind)]


def deliveries(store: Store) -> int:
    with store.read() as connection:
        return sum(s.waiting for s in standings(connection).values())


def unrouted(store: Store) -> int:
    with store.read() as connection:
        query = select(func.count()).select_from(transitions).where(transitions.c.routed.is_(False))
        return connection.scalar(query) or 0


def fired(store: Store, run: str = "r1") -> list[tuple[str, str]]:
    with store.read() as connection:
        return [(t.alert.rule, t.after.value) for t in alerts.transitions_of(connection, run, 100)]


def test_one_tick_judges_routes_and_proposes(store: Store) -> None:
    send(store, SICK)
    told = threading.Event()
    worker = Worker(store, channels=channels(), told=told.set)
    assert worker.tick(LATER) == 1
    assert fired(store) == [("kl_pull_dominates", "firing")]
    assert states(store) == [CommandState.PROPOSED]
    assert (deliveries(store), unrouted(store), worker.failures) == (1, 0, 0)
    assert told.is_set()


def test_a_second_tick_does_nothing_twice(store: Store) -> None:
    send(store, SICK)
    for worker in (Worker(store, channels=channels()), Worker(store, channels=channels())):
        worker.tick(LATER)
    assert (len(fired(store)), len(states(store)), deliveries(store)) == (1, 1, 1)


@pytest.mark.parametrize(
    ("policy", "state"),
    [
        (Policy.OBSERVE, CommandState.OBSERVED),
        (Policy.APPROVE, CommandState.PROPOSED),
        (Policy.AUTO, CommandState.PENDING),
    ],
)
def test_the_policy_decides_what_becomes_of_a_proposal(store: Store, policy: Policy, state: CommandState) -> None:
    send(store, [{"policy.loss": math.nan}])
    Worker(store, policies=Policies(default=policy)).tick(LATER)
    assert states(store, kind=CommandKind.PAUSE) == [state]


def test_a_remedy_of_more_than_a_factor_of_two_waits_for_a_person_even_under_auto(store: Store) -> None:
    send(store, SICK)
    Worker(store, policies=Policies(default=Policy.AUTO)).tick(LATER)
    assert states(store) == [CommandState.PROPOSED]


def test_a_proposal_that_nobody_decides_expires(store: Store) -> None:
    send(store, SICK)
    worker = Worker(store)
    worker.tick(LATER)
    worker.tick(LATER + timedelta(days=30))
    assert states(store) == [CommandState.EXPIRED]


def test_links_that_expired_long_ago_are_forgotten_once_an_hour(store: Store) -> None:
    worker, at = Worker(store), NOW + links.LASTS + links.KEPT
    worker.tick(NOW)
    with store.begin() as connection:
        path = links.make(connection, links.LinkAct.SILENCE, "a1", "0" * 64, "team", NOW)
    worker.tick(NOW + timedelta(minutes=59))
    worker.tick(at)
    with store.begin() as connection:
        assert links.find(connection, path.removeprefix(links.PATH)) is None
        links.make(connection, links.LinkAct.SILENCE, "a1", "0" * 64, "team", NOW)
    worker.tick(at + timedelta(minutes=59))
    with store.read() as connection:
        assert connection.scalar(select(func.count()).select_from(tables.links)) == 1


def test_a_run_that_cannot_be_judged_stops_neither_the_others_nor_the_loop(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    send(store, SICK, run="bad")
    send(store, SICK, run="good")
    poison(monkeypatch, "bad")
    worker = Worker(store)
    worker.tick(LATER)
    assert (fired(store, "bad"), fired(store, "good")) == ([], [("kl_pull_dominates", "firing")])
    assert worker.failures == 1
    assert "judging run bad failed" in caplog.text


def test_a_run_that_could_not_be_judged_rests_and_is_tried_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(store, SICK, run="bad")
    undo = poison(monkeypatch, "bad")
    worker = Worker(store)
    worker.tick(LATER)
    undo()
    worker.tick(LATER + timedelta(seconds=1))
    assert fired(store, "bad") == []
    worker.tick(LATER + module.REST_AFTER_FAILURE + timedelta(seconds=1))
    assert fired(store, "bad") == [("kl_pull_dominates", "firing")]
    assert worker.failures == 1


def test_a_memory_that_cannot_be_read_is_a_failure_of_that_run_alone(store: Store) -> None:
    send(store, SICK, run="bad")
    send(store, SICK, run="good")
    Worker(store).tick(LATER)
    with store.begin() as connection:
        connection.execute(update(tables.evaluations).values(memory={"format": 0}, step=3))
    worker = Worker(store)
    worker.tick(LATER)
    assert worker.failures == 2
    assert len(fired(store, "bad")) == len(fired(store, "good")) == 1


def test_a_command_that_cannot_be_proposed_holds_up_neither_the_news_nor_another_run(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(store, SICK, run="bad")
    send(store, SICK, run="good")
    propose = mailbox.propose

    def refuse(connection: Connection, transition: Any, *rest: Any) -> Any:
        if transition.alert.run == "bad":
            raise RuntimeError("planted")
        return propose(connection, transition, *rest)

    monkeypatch.setattr(mailbox, "propose", refuse)
    worker = Worker(store, channels=channels())
    worker.tick(LATER)
    assert (states(store, "bad"), states(store, "good")) == ([], [CommandState.PROPOSED])
    assert (deliveries(store), worker.failures) == (2, 1)


def test_old_news_is_recorded_and_told_to_nobody(store: Store) -> None:
    send(store, SICK)
    Worker(store, channels=channels()).tick(NOW + module.NEWS_FOR + timedelta(minutes=5))
    assert len(fired(store)) == 1
    assert (deliveries(store), states(store), unrouted(store)) == (0, [], 0)


def test_a_long_backlog_is_judged_in_bounded_batches(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STEPS_A_CALL", 4)
    monkeypatch.setattr(module, "ROUNDS_A_TICK", 2)
    judged: list[int] = []
    advance = engine.advance

    def small(connection: Connection, *rest: Any, **more: Any) -> Any:
        done = advance(connection, *rest, **more, limit=4)
        judged.append(done.steps)
        return done

    monkeypatch.setattr(module, "advance", small)
    send(store, SICK * 2)
    worker = Worker(store)
    worker.tick(LATER)
    assert judged == [4, 4]
    worker.tick(LATER)
    worker.tick(LATER)
    assert judged == [4, 4, 4, 4, 2]


def test_a_database_that_is_away_ends_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker(store)
    send(store, SICK)

    def away(*_: object) -> Any:
        raise OSError("the database is away")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "begin", away)
        patch.setattr(Store, "read", away)
        worker.tick(LATER)
        assert len(worker.failing) == worker.failures > 3
    assert worker.tick(LATER) == 1
    assert not worker.failing


def test_the_run_s_readers_are_woken(store: Store) -> None:
    live = Live()
    before = live.version("r1")
    send(store, SICK)
    Worker(store, live=live).tick(LATER)
    assert live.version("r1") > before


@pytest.fixture
def running(store: Store) -> Iterator[tuple[Worker, threading.Event]]:
    """A started worker, and an event that its first routing sets."""
    routed = threading.Event()
    worker = Worker(store, channels=channels(), told=routed.set, clock=lambda: LATER)
    worker.start()
    yield worker, routed
    worker.stop()


def test_a_woken_worker_judges_at_once(store: Store, running: tuple[Worker, threading.Event]) -> None:
    worker, routed = running
    send(store, SICK)
    worker.wake("r1")
    assert routed.wait(20)
    assert fired(store) == [("kl_pull_dominates", "firing")]


def test_a_worker_finds_by_itself_what_another_process_left(
    store: Store, running: tuple[Worker, threading.Event]
) -> None:
    _, routed = running
    send(store, SICK)
    assert routed.wait(20)


def test_stopping_is_safe_twice_and_without_a_start(store: Store) -> None:
    worker = Worker(store)
    worker.stop()
    worker.stop()
    worker.start()
    worker.stop()


def test_a_loss_that_is_nan_is_critical_within_one_tick(store: Store) -> None:
    send(store, [{"policy.loss": 0.1}, {"policy.loss": math.nan}])
    Worker(store).tick(LATER)
    assert fired(store) == [("nonfinite", "firing")]


def poison(monkeypatch: pytest.MonkeyPatch, run: str) -> Callable[[], None]:
    """Makes judging one run raise; the answer undoes it."""
    read_steps = series.read_steps
    on = [True]

    def broken(connection: Connection, number: int, after_step: int | None, limit: int, now: datetime) -> Any:
        with_run = evaluations.lock_subject(connection, number)
        if on[0] and with_run is not None and with_run.run == run:
            raise RuntimeError("planted")
        return read_steps(connection, number, after_step, limit, now)

    monkeypatch.setattr(engine, "read_steps", broken)
    return lambda: on.__setitem__(0, False)
