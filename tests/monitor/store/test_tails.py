"""What pages append: the newest points of many metrics in one look, each kind of value as it was reported."""

from __future__ import annotations

import math
from collections.abc import Iterable

from sqlalchemy import event

from rlvitals.contract.view import SeriesView
from rlvitals_monitor.store import horizon
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import store_batch
from rlvitals_monitor.store.runs import find_attempt
from rlvitals_monitor.store.tails import read_tails
from tests.monitor.batches import NOW, batch, step


def put(store: Store, steps: Iterable[tuple[int, dict[str, float]]]) -> None:
    with store.begin() as connection:
        store_batch(connection, batch(*(step(at + 1, at, values) for at, values in steps)), NOW)


def tails(store: Store, metrics: list[str], first: int, limit: int = 400) -> dict[str, SeriesView]:
    with store.read() as connection:
        found = read_tails(connection, "r1", find_attempt(connection, "r1"), metrics, first, limit)
    return {view.metric: view for view in found}


def test_every_kind_of_value_comes_as_it_was_and_a_missing_one_does_not(store: Store) -> None:
    put(store, [(1, {"m": 1.0}), (2, {"m": math.nan, "n": 5.0}), (3, {"m": math.inf}), (4, {"m": -math.inf})])
    found = tails(store, ["n", "m", "never"], 2)
    m = found["m"]
    assert list(found) == ["n", "m"]
    assert (m.bucket, m.step, m.nan, m.pos_inf, m.neg_inf) == (1, (2, 3, 4), (2,), (3,), (4,))
    assert math.isnan(m.value[0])
    assert m.value[1:] == (math.inf, -math.inf)
    assert (found["n"].step, found["n"].value, found["n"].nan) == ((2,), (5.0,), ())


def test_more_than_fits_comes_in_buckets(store: Store) -> None:
    put(store, [(at, {"m": float(at)}) for at in range(50)])
    assert tails(store, ["m"], 30, limit=20)["m"].step == tuple(range(30, 50))
    whole = tails(store, ["m"], 0, limit=20)["m"]
    assert (whole.bucket > 1, whole.step[-1], whole.high[-1]) == (True, 49, 49.0)


def test_where_raw_points_have_come_of_age_the_rollups_tell(store: Store) -> None:
    put(store, [(at, {"m": float(at)}) for at in range(50)])
    with store.begin() as connection:
        horizon.move(connection, find_attempt(connection, "r1")[0], 40)
    assert tails(store, ["m"], 41)["m"].bucket == 1
    assert tails(store, ["m"], 20)["m"].bucket > 1


def test_a_hundred_metrics_cost_as_many_statements_as_one(store: Store) -> None:
    names = [f"m{number}" for number in range(100)]
    put(store, [(at, dict.fromkeys(names, float(at))) for at in range(3)])
    asked: list[str] = []
    event.listen(store.engine, "before_cursor_execute", lambda *told: asked.append(told[2]))
    assert len(tails(store, names, 1)) == 100
    of_many = len(asked)
    asked.clear()
    tails(store, names[:1], 1)
    assert len(asked) == of_many
