"""Evaluation metrics at their own cadence: stored and drawn, but no steps, no progress, nothing for rules."""

from __future__ import annotations

import math

from rlvitals.contract.report import Phase
from rlvitals.contract.view import Light, RunState
from rlvitals_monitor.store.charts import Span, read_series
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.evaluations import behind
from rlvitals_monitor.store.ingest import store_batch
from rlvitals_monitor.store.runs import find_attempt, read_run
from rlvitals_monitor.store.series import read_metrics
from tests.monitor.batches import NOW, after, batch, heartbeat, step

EVALUATION = {"eval_reward": 0.5, "epoch": 1.0, "rlvitals.overhead": 0.001}


def tell(store: Store, *steps: object, at: float = 0.0, phase: Phase | None = None) -> None:
    beat = {} if phase is None else {"heartbeat": heartbeat(phase)}
    with store.begin() as connection:
        store_batch(connection, batch(*steps, **beat), after(at))  # type: ignore[arg-type]


def drawn(store: Store, metric: str) -> list[tuple[int, float]]:
    with store.read() as connection:
        found = find_attempt(connection, "r1")
        (series,) = read_series(connection, "r1", found, [metric], Span(first=None, last=None), 100)
    return list(zip(series.step, series.value, strict=True))


def test_an_evaluation_before_training_is_no_first_step(store: Store) -> None:
    tell(store, step(1, 0, EVALUATION), phase=Phase.EVAL)
    with store.read() as connection:
        run = read_run(connection, "r1", NOW)
        assert behind(connection, 10) == []
    assert (run.state, run.last_step, run.last_progress_at) == (RunState.CREATED, None, None)
    assert drawn(store, "eval_reward") == [(0, 0.5)]


def test_an_evaluation_is_no_progress_of_a_run_that_hangs(store: Store) -> None:
    tell(store, step(1, 1, {"m": 1.0}), step(2, 2, {"m": 1.0}), phase=Phase.UPDATE)
    tell(store, step(3, 9, EVALUATION), at=31 * 60, phase=Phase.UPDATE)
    with store.read() as connection:
        run = read_run(connection, "r1", after(31 * 60))
    assert (run.state, run.last_step) == (RunState.STALLED, 2)
    with store.read() as connection:
        assert read_run(connection, "r1", after(60)).light is Light.GREEN


def test_metrics_of_training_are_not_missing_because_an_evaluation_has_none(store: Store) -> None:
    tell(store, step(1, 1, {"reward.mean": 1.0}), step(2, 1, EVALUATION), step(3, 2, {"reward.mean": 2.0}))
    with store.read() as connection:
        number, _ = find_attempt(connection, "r1")
        known = {m.metric: m for m in read_metrics(connection, number)}
    assert (known["reward.mean"].points, known["reward.mean"].missing_reason) == (2, "")
    assert drawn(store, "reward.mean") == [(1, 1.0), (2, 2.0)]
    assert "epoch" not in known or known["epoch"].points == 0


def test_an_evaluation_told_twice_corrects_itself_and_nan_and_infinities_stay_what_they_are(store: Store) -> None:
    for seq, value in enumerate((0.25, math.inf, -math.inf, math.nan), start=1):
        tell(store, step(seq, 50, {"eval_loss": value}))
        ((at, last),) = drawn(store, "eval_loss")
        assert at == 50
        assert last == value or (math.isnan(last) and math.isnan(value))
    tell(store, step(9, 50, {"eval_reward": 1.0}))
    assert len(drawn(store, "eval_loss")) == 1


def test_values_of_an_evaluation_that_stand_in_a_training_step_are_part_of_it(store: Store) -> None:
    tell(store, step(1, 1, {"m": 1.0, "val-core/acc": 0.5}))
    with store.read() as connection:
        assert read_run(connection, "r1", NOW).last_step == 1
    assert drawn(store, "val-core/acc") == [(1, 0.5)]
