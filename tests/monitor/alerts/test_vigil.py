"""The watch over silent runs on a real store: found, recorded once, healed, and told like any alert."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

import pytest

from rlvitals.contract.alert import Transition
from rlvitals.contract.report import Phase, RunInfo
from rlvitals_monitor.alerts.vigil import Vigil
from rlvitals_monitor.notify.channel_file import load_channels
from rlvitals_monitor.store import alerts
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import store_batch
from rlvitals_monitor.store.tables import deliveries
from rlvitals_monitor.worker import Worker
from tests.monitor.batches import NOW, after, batch, heartbeat, step

MINUTE, HOUR = 60.0, 3600.0


def speak(
    store: Store,
    at_s: float,
    *,
    steps: int = 0,
    phase: Phase = Phase.UPDATE,
    attempt: str = "a1",
    run: str = "r1",
    value: float = 0.1,
) -> None:
    """A word of the trainer; its ``steps``-th step with it, or none."""
    told = [step(steps, steps, {"reward.mean": value})] if steps else []
    with store.begin() as conn:
        sent = batch(*told, run=run, attempt=attempt, info=RunInfo(id=run), heartbeat=heartbeat(phase))
        store_batch(conn, sent, after(at_s))


def watch(store: Store, start_s: float, end_s: float, vigil: Vigil | None = None) -> list[Transition]:
    """Looks every half minute."""
    ours = vigil or Vigil()
    found: list[Transition] = []
    for at in range(int(start_s), int(end_s) + 1, 30):
        found += ours.look(store, after(at))
    return found


def short(found: Sequence[Transition]) -> list[tuple[str, str]]:
    return [(t.alert.rule.removeprefix("rlvitals/"), t.after.value) for t in found]


@pytest.fixture
def running(store: Store) -> Store:
    """Heard last two minutes after `NOW`, between its steps."""
    for n in range(1, 4):
        speak(store, 10.0 * n, steps=n)
    speak(store, 120.0)
    return store


def test_a_run_that_falls_silent_is_late_then_stalled_then_lost_and_heals(running: Store) -> None:
    vigil = Vigil()
    found = watch(running, 120, 70 * MINUTE, vigil)
    assert short(found) == [("late", "firing"), ("stalled", "firing"), ("lost", "firing")]
    assert [int((t.at - after(120)).total_seconds() / 60) for t in found] == [3, 10, 60]
    speak(running, 70 * MINUTE + 5, steps=4)
    healed = watch(running, 70 * MINUTE + 10, 71 * MINUTE, vigil)
    assert sorted(short(healed)) == [("late", "resolved"), ("lost", "resolved"), ("stalled", "resolved")]
    with running.read() as conn:
        assert {a.state.value for a in alerts.page(conn, run="r1")[0]} == {"resolved"}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_a_step_is_a_step_whatever_its_numbers_are(running: Store, value: float | None) -> None:
    vigil = Vigil()
    for n in range(4, 12):
        at = 120.0 + 240 * (n - 3)
        told = {} if value is None else {"reward.mean": value}
        with running.begin() as conn:
            sent = batch(step(n, n, told, missing={"reward.mean": "not told"}), heartbeat=heartbeat(Phase.UPDATE))
            store_batch(conn, sent, after(at))
        assert watch(running, at, at + 150, vigil) == []


def test_a_finished_run_is_never_lost(running: Store) -> None:
    speak(running, 130.0, phase=Phase.FINISHED)
    assert watch(running, 130, 3 * HOUR) == []


def test_a_run_that_finishes_late_is_healed(running: Store) -> None:
    vigil = Vigil()
    watch(running, 120, 20 * MINUTE, vigil)
    speak(running, 21 * MINUTE, phase=Phase.FAILED)
    found = watch(running, 21 * MINUTE, 22 * MINUTE, vigil)
    assert {(t.after.value, t.reason) for t in found} == {("resolved", "the trainer failed")}


def test_a_new_attempt_heals_the_old_one(running: Store) -> None:
    vigil = Vigil()
    watch(running, 120, 20 * MINUTE, vigil)
    speak(running, 21 * MINUTE, phase=Phase.STARTING, attempt="a2")
    found = watch(running, 21 * MINUTE, 22 * MINUTE, vigil)
    assert {(t.alert.attempt, t.after.value) for t in found} == {("a1", "resolved")}
    assert watch(running, 22 * MINUTE, 22 * MINUTE, vigil) == []


def test_what_was_silent_while_the_service_was_away_is_not_told_at_once(running: Store) -> None:
    vigil = Vigil()
    watch(running, 120, 140, vigil)
    assert watch(running, 5 * HOUR, 5 * HOUR + 170, vigil) == []
    assert short(watch(running, 5 * HOUR + 200, 5 * HOUR + 260, vigil)) == [("late", "firing")]


def test_a_store_that_was_away_makes_the_watch_deaf(running: Store) -> None:
    class Away(Store):
        def __init__(self) -> None:
            pass

        def read(self):  # type: ignore[no-untyped-def]
            raise OSError("the disk is away")

    vigil = Vigil()
    watch(running, 120, 140, vigil)
    for at in range(150, int(20 * MINUTE), 60):
        with pytest.raises(OSError, match="away"):
            vigil.look(Away(), after(at))
    assert watch(running, 20 * MINUTE, 22 * MINUTE, vigil) == []


def test_a_worker_whose_clock_runs_a_day_ahead_calls_nobody_silent_whom_another_hears(running: Store) -> None:
    vigil, day = Vigil(), 20 * HOUR
    for minute in range(3, 100):
        speak(running, minute * MINUTE, steps=minute + 1)
        assert watch(running, day + minute * MINUTE, day + minute * MINUTE + 30, vigil) == []


def test_runs_of_long_ago_are_no_news(running: Store) -> None:
    vigil = Vigil()
    later_s = 26 * HOUR
    assert watch(running, later_s, later_s + 2 * HOUR, vigil) == []


def test_a_whole_cluster_that_falls_silent_is_told_a_part_at_each_look(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlvitals_monitor.alerts.vigil.RUNS_A_LOOK", 2)
    for run in ("a", "b", "c", "d", "e"):
        speak(store, 0, steps=1, run=run)
        speak(store, 60, run=run)
    vigil = Vigil()
    watch(store, 0, 240, vigil)
    told = [{t.alert.run for t in watch(store, at, at, vigil)} for at in (270, 300, 330, 360)]
    assert sorted(run for runs in told for run in runs) == ["a", "b", "c", "d", "e"]
    assert max(map(len, told)) == 2


def test_several_workers_record_each_change_once(running: Store) -> None:
    vigils = [Vigil() for _ in range(4)]
    watch(running, 120, 690, vigils[0])
    for vigil in vigils[1:]:
        vigil._looked_at, vigil._listening_since = after(690), NOW
    found: list[Transition] = []
    start = threading.Barrier(len(vigils))

    def look(vigil: Vigil) -> None:
        start.wait()
        found.extend(vigil.look(running, after(730)))

    threads = [threading.Thread(target=look, args=(vigil,)) for vigil in vigils]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert short(found) == [("stalled", "firing")]
    with running.read() as conn:
        assert [a.rule for a in alerts.page(conn, run="r1")[0]].count("rlvitals/stalled") == 1


def test_it_is_routed_to_channels_and_judging_new_steps_leaves_it_alone(running: Store) -> None:
    worker = Worker(running, channels=load_channels(None, webhook_url="https://example.org/hook"))
    for at in range(120, int(13 * MINUTE), 30):
        worker.tick(after(at))
    with running.read() as conn:
        assert len(conn.execute(deliveries.select()).all()) == 1  # stalled; late is information
    speak(running, 13 * MINUTE, steps=5, attempt="a2")
    for at in range(13 * 60, 14 * 60, 30):
        worker.tick(after(at))
    with running.read() as conn:
        found = {(a.rule, a.state.value, a.resolved_at is not None) for a in alerts.page(conn, run="r1")[0]}
        assert len(conn.execute(deliveries.select()).all()) == 2
    assert found == {("rlvitals/late", "resolved", True), ("rlvitals/stalled", "resolved", True)}
    assert worker.failures == 0


def test_a_pause_and_an_evaluation_are_waited_for_and_the_step_after_them_too(running: Store) -> None:
    vigil = Vigil()
    found: list[Transition] = []
    clock: float = 120.0
    for phase, minutes in ((Phase.PAUSED, 40), (Phase.UPDATE, 3), (Phase.EVAL, 40), (Phase.UPDATE, 3)):
        for _ in range(minutes):
            clock += 59.0
            speak(running, clock, phase=phase)
            found += vigil.look(running, after(clock))
    assert found == []
