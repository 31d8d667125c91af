"""What was deleted or came of age goes, all of it and nothing else; what must stay stays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta

import pytest
from sqlalchemy import func, insert, select

from rlvitals.contract.command import CommandKind
from rlvitals.contract.report import Event, EventKind, Extreme, Histogram, RunInfo, Text
from rlvitals_monitor import janitor as module
from rlvitals_monitor.control import mailbox
from rlvitals_monitor.janitor import Janitor
from rlvitals_monitor.store import deletion, evaluations, messages, outbox, retention, voices
from rlvitals_monitor.store.audit import audit_lines, verify
from rlvitals_monitor.store.charts import Span, read_series
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import Stored, store_batch
from rlvitals_monitor.store.runs import find_attempt, read_run
from rlvitals_monitor.store.series import every_step, read_metrics
from rlvitals_monitor.store.tables import METADATA, deliveries, points, shares, texts
from tests.monitor.batches import NOW, batch, step
from tests.monitor.planted import ABLE, a_transition, an_alert, plant_transition

MUCH_LATER = NOW + timedelta(days=100)
KINDS = {5: math.nan, 7: math.inf, 9: -math.inf, 11: 1e6}


def value(number: int) -> float:
    return KINDS.get(number, 0.5)


def report(store: Store, first: int, last: int, *, run: str = "r1", at: datetime = NOW, seq: int = 0) -> Stored:
    """Steps of the metric ``m`` with every kind of value, judged; a text and a histogram each."""
    numbers = range(first, last + 1)
    told = batch(
        *(step(seq + n, n, {"m": value(n)}, extremes={"m": Extreme(value=value(n), token_id=n)}) for n in numbers),
        run=run,
        info=RunInfo(id=run, capabilities=ABLE, config={"kl_coef": 0.1}),
        texts=tuple(Text(seq=seq + 10_000 + n, step=n, sample=0, prompt="", completion=f"{n}") for n in numbers),
        histograms=tuple(
            Histogram(seq=seq + 20_000 + n, step=n, metric="m", edges=(0.0, 1.0), counts=(n,)) for n in numbers
        ),
        events=(Event(seq=seq + 30_000 + first, time_s=1.0, kind=EventKind.PHASE, payload={"phase": "update"}),),
    )
    with store.begin() as connection:
        stored = store_batch(connection, told, at)
        evaluations.keep(connection, stored.attempt_number, last, {})
    return stored


def fill(store: Store, run: str) -> None:
    """A run with something in every table that a run fills."""
    report(store, 1, 40, run=run)
    alert = an_alert(run=run, id=f"a-{run}", attempt="a1")
    with store.begin() as connection:
        plant_transition(connection, a_transition(alert, id=f"x-{run}"))
        outbox.add(connection, f"x-{run}", [outbox.Order(channel=name, due=NOW) for name in ("c", "d")])
        told = outbox.delivery_id(f"x-{run}", "c")
        claim = messages.seal(connection, "c", run, [told], "me", NOW, lease_s=60)
        messages.note(connection, claim, "delivered", "ok", NOW)
        messages.record_delivered(connection, claim, "ok", NOW)
        view = mailbox.request(connection, run, CommandKind.CHECKPOINT, None, "ada", "", NOW)
        voices.add_voice(connection, view.id, "ada", named=True, at=NOW)
        connection.execute(
            insert(shares).values(
                id=f"s-{run}", digest=f"d-{run}", run=run, view="", created_at=0, created_by="", expires_at=0
            )
        )


def counts(store: Store) -> dict[str, int]:
    with store.read() as connection:
        return {
            table.name: connection.scalar(select(func.count()).select_from(table)) or 0
            for table in METADATA.sorted_tables
        }


def clean(store: Store, now: datetime, *, janitor: Janitor | None = None) -> list[str]:
    """Until nothing is left to do."""
    made = janitor or Janitor()
    gone = made.look(store, now)
    for _ in range(500):
        if made.is_done:
            return gone
        made.look(store, now)
    raise AssertionError("it does not end")


def test_of_a_deleted_run_everything_goes_in_small_pieces_and_nothing_of_another(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROWS_A_TRANSACTION", 7)
    fill(store, "r2")
    before = counts(store)
    fill(store, "r1")
    filled = counts(store)
    with store.begin() as connection:
        assert deletion.mark(connection, "r1", "ada", NOW)
    clean(store, NOW)
    left = counts(store)
    kept = {"runs": 1, "audit": filled["audit"] - before["audit"]}
    assert left == {name: count + kept.get(name, 0) for name, count in before.items()}
    with store.read() as connection:
        assert verify(connection).fault == ""
        assert read_run(connection, "r2", NOW).id == "r2"
        found = deletion.find(connection, "r1")
    assert found is not None
    assert found.deleted_by == "ada"


def test_a_message_that_is_being_sent_is_waited_for(store: Store) -> None:
    fill(store, "r1")
    with store.begin() as connection:
        told = outbox.delivery_id("x-r1", "d")
        claim = messages.seal(connection, "d", "r1", [told], "me", NOW, lease_s=60)
        deletion.mark(connection, "r1", "ada", NOW)
    janitor = Janitor()
    clean(store, NOW, janitor=janitor)
    assert counts(store)["messages"] == 1
    with store.begin() as connection:
        messages.note(connection, claim, "delivered", "ok", NOW)
        assert messages.record_delivered(connection, claim, "ok", NOW)
    clean(store, NOW + timedelta(seconds=6), janitor=janitor)
    assert counts(store)["messages"] == counts(store)["alerts"] == counts(store)["attempts"] == 0


def test_nothing_that_waited_to_be_told_of_a_deleted_run_is_told(store: Store) -> None:
    fill(store, "r1")
    with store.begin() as connection:
        deletion.mark(connection, "r1", "ada", NOW)
        states = connection.scalars(select(deliveries.c.state).order_by(deliveries.c.state)).all()
    assert states == ["delivered", "dropped"]


def choose(store: Store, days: Mapping[str, float | None], project: str = "") -> None:
    with store.begin() as connection:
        retention.choose(connection, project, days, "ada", NOW)


def test_old_raw_points_go_and_their_chart_keeps_the_spike_and_each_kind_of_value(store: Store) -> None:
    report(store, 1, 100)
    report(store, 101, 120, at=MUCH_LATER, seq=40_000)
    choose(store, {"points_days": 30})
    clean(store, MUCH_LATER)
    with store.read() as connection:
        number, name = find_attempt(connection, "r1")
        kept = connection.scalars(select(points.c.step).order_by(points.c.step)).all()
        (whole,) = read_series(connection, "r1", (number, name), ["m"], Span(), 800)
        (recent,) = read_series(connection, "r1", (number, name), ["m"], Span(first=101), 800)
        (metric,) = read_metrics(connection, number)
        there = connection.scalar(select(func.count()).select_from(texts))
    assert kept == list(range(101, 121))
    assert max(high for high in whole.high if high is not None) == 1e6
    assert (whole.nan, whole.pos_inf, whole.neg_inf) == ((5,), (7,), (9,))
    assert recent.bucket == 1
    assert recent.step == tuple(range(101, 121))
    assert (metric.points, metric.last_step) == (120, 120)
    assert there == 120
    assert [row[0] for row in every_step(store, number)] == list(range(101, 121))


def test_the_last_point_of_a_run_that_ended_long_ago_stays(store: Store) -> None:
    report(store, 1, 100)
    choose(store, {"points_days": 30})
    clean(store, MUCH_LATER)
    with store.read() as connection:
        number, _ = find_attempt(connection, "r1")
        assert connection.scalars(select(points.c.step)).all() == [100]
        (metric,) = read_metrics(connection, number)
    assert (metric.last_value, metric.missing_reason) == (0.5, "")


def test_a_step_whose_points_have_gone_is_refused_and_counted_once(store: Store) -> None:
    report(store, 1, 100)
    choose(store, {"points_days": 30})
    clean(store, MUCH_LATER)
    late = batch(step(1, 50, {"m": 3.0}), step(2, 101, {"m": 4.0}), writer="other")
    with store.begin() as connection:
        stored = store_batch(connection, late, MUCH_LATER)
        number, _ = find_attempt(connection, "r1")
        (metric,) = read_metrics(connection, number)
    assert [(one.line, one.field) for one in stored.refused] == [(1, "step")]
    assert "came of age" in stored.refused[0].reason
    assert metric.points == 101


def test_steps_that_nobody_has_judged_stay_however_old(store: Store) -> None:
    report(store, 1, 20)
    unjudged = batch(*(step(50_000 + n, n, {"m": 1.0}) for n in range(21, 31)))
    with store.begin() as connection:
        store_batch(connection, unjudged, NOW)
    choose(store, {"points_days": 1})
    clean(store, MUCH_LATER)
    with store.read() as connection:
        assert min(connection.scalars(select(points.c.step))) == 21


def test_texts_and_histograms_have_ages_of_their_own_and_a_project_its_own_line(store: Store) -> None:
    report(store, 1, 10)
    choose(store, {"texts_days": 30})
    choose(store, {"histograms_days": 30}, project="default")
    clean(store, MUCH_LATER)
    left = counts(store)
    assert (left["texts"], left["histograms"], left["points"]) == (10, 0, 10)
    choose(store, {"texts_days": 30}, project="default")
    clean(store, MUCH_LATER)
    assert (counts(store)["texts"], counts(store)["events"]) == (0, 1)


def test_a_run_that_was_silent_for_so_long_is_deleted_and_audited_and_one_that_spoke_is_not(store: Store) -> None:
    report(store, 1, 10)
    report(store, 1, 10, run="r2", at=MUCH_LATER)
    choose(store, {"runs_days": 30})
    assert clean(store, MUCH_LATER) == ["r1"]
    with store.read() as connection:
        (line,) = [line for line in audit_lines(connection) if line.what == "run deleted"]
        assert read_run(connection, "r2", MUCH_LATER).last_step == 10
    assert (line.run, line.who) == ("r1", "retention")
    assert counts(store)["attempts"] == 1


def test_with_nothing_chosen_nothing_ever_goes(store: Store) -> None:
    fill(store, "r1")
    before = counts(store)
    clean(store, NOW + timedelta(days=36_000))
    assert counts(store) == before


def test_a_round_ends_when_its_time_is_spent(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS_A_TRANSACTION", 3)
    report(store, 1, 40)
    with store.begin() as connection:
        deletion.mark(connection, "r1", "ada", NOW)
    seconds = iter(range(1_000))
    janitor = Janitor(timer=lambda: float(next(seconds)))
    janitor.look(store, NOW)
    assert not janitor.is_done
    assert counts(store)["points"] == 37


def test_ages_are_told_by_a_clock_that_may_run_anywhere(store: Store) -> None:
    """A clock that was set back looks again, and removes nothing that is younger by it."""
    report(store, 1, 10)
    choose(store, {"points_days": 30})
    janitor = Janitor()
    clean(store, NOW, janitor=janitor)
    clean(store, NOW - timedelta(days=400), janitor=janitor)
    with store.read() as connection:
        assert len(connection.scalars(select(points.c.step)).all()) == 10
