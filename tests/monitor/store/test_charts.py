from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import event, insert

from rlvitals.contract.view import SeriesView
from rlvitals_dashboard import figures
from rlvitals_dashboard.smoothing import find_smoothing
from rlvitals_dashboard.theme import LIGHT
from rlvitals_monitor.store import horizon
from rlvitals_monitor.store import rollups as rolling
from rlvitals_monitor.store.charts import Span, read_series
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import store_batch
from rlvitals_monitor.store.numbers import split
from rlvitals_monitor.store.points import _points
from rlvitals_monitor.store.runs import find_attempt
from rlvitals_monitor.store.series import read_metrics
from rlvitals_monitor.store.tables import attempts, runs, series
from tests.monitor.batches import NOW, batch, step

LIMIT = 800
MILLION = 1_000_000
SPIKE, NAN, UP, DOWN = 123_457, 314_159, 577_215, 999_983


def put(store: Store, values: Iterable[tuple[int, float]], writer: str = "main", seq: int = 1) -> None:
    reports = [step(seq + i, number, {"m": value}) for i, (number, value) in enumerate(values)]
    with store.begin() as connection:
        store_batch(connection, batch(*reports, writer=writer), NOW)


def chart(store: Store, first: int | None = None, last: int | None = None, limit: int = LIMIT) -> SeriesView:
    with store.read() as connection:
        found = find_attempt(connection, "r1")
        return read_series(connection, "r1", found, ["m"], Span(first=first, last=last), limit)[0]


def test_a_short_series_comes_raw_with_every_kind_of_value(store: Store) -> None:
    put(store, [(1, 0.5), (3, math.nan), (4, math.inf), (7, -math.inf)])
    view = chart(store)
    assert (view.bucket, view.step) == (1, (1, 3, 4, 7))
    assert view.value[0] == 0.5
    assert math.isnan(view.value[1])
    assert view.value[2:] == (math.inf, -math.inf)
    assert (view.nan, view.pos_inf, view.neg_inf) == ((3,), (4,), (7,))


def test_a_metric_that_was_never_there_is_an_empty_chart(store: Store) -> None:
    put(store, [(1, 0.5)])
    with store.read() as connection:
        found = find_attempt(connection, "r1")
        (view,) = read_series(connection, "r1", found, ["other"], Span(), LIMIT)
    assert (view.metric, view.step, view.value) == ("other", (), ())


def test_a_cut_out_span_has_just_its_steps(store: Store) -> None:
    put(store, [(number, float(number)) for number in range(-200, 200)])
    view = chart(store, -7, 5)
    assert view.step == tuple(range(-7, 6))


def test_a_bucket_without_a_finite_value_says_which_kind_its_last_one_is(store: Store) -> None:
    """Of points, and of the rollups that tell of them once these have come of age."""
    kinds = [math.nan] * 64 + [math.inf] * 64 + [-math.inf] * 64
    put(store, enumerate(kinds))
    for kept_from in (0, 200):
        with store.begin() as connection:
            horizon.move(connection, find_attempt(connection, "r1")[0], kept_from)
        view = chart(store, 64, 191, limit=2)
        assert (view.bucket, view.value, view.low, view.high) == (
            64,
            (math.inf, -math.inf),
            (None, None),
            (None, None),
        )
        assert (view.nan, view.pos_inf, view.neg_inf) == ((), (127,), (191,))


def test_no_mark_stands_outside_the_steps_that_are_asked_for(long_store: Store) -> None:
    assert (chart(long_store, NAN + 5, 900_000).nan, chart(long_store, 0, NAN - 5).nan) == ((), ())


def test_ten_metrics_cost_as_many_statements_as_one(store: Store) -> None:
    names = [f"m{number}" for number in range(10)]
    with store.begin() as connection:
        told = batch(*(step(at + 1, at, dict.fromkeys(names, float(at))) for at in range(40)))
        store_batch(connection, told, NOW)
    asked: list[str] = []
    event.listen(store.engine, "before_cursor_execute", lambda *told: asked.append(told[2]))
    counts = []
    for metrics in (names[:1], names):
        with store.read() as connection:
            found = find_attempt(connection, "r1")
            asked.clear()
            views = read_series(connection, "r1", found, metrics, Span(), 30)
            counts.append(len(asked))
        assert [(v.metric, v.bucket, v.step[-1], v.high[-1]) for v in views] == [(m, 2, 39, 39.0) for m in metrics]
    assert counts[0] == counts[1]


@pytest.fixture(scope="module")
def long_store(sqlite_template: object, tmp_path_factory: pytest.TempPathFactory) -> Iterable[Store]:
    """A million steps of a flat line with one spike and one value of each non-finite kind."""
    store = Store(f"sqlite:///{tmp_path_factory.mktemp('million') / 'rlvitals.db'}")
    store.migrate()
    planted = {SPIKE: 1e9, NAN: math.nan, UP: math.inf, DOWN: -math.inf}
    with store.begin() as connection:
        row = {"id": "r1", "project": "p", "name": "", "framework": "", "model": "", "config": {}, "tags": []}
        clocks = {"created_at": 0, "seen_at": 0, "phase": "update", "capabilities": {}}
        connection.execute(insert(runs), row | clocks)
        connection.execute(insert(attempts), {"number": 1, "run": "r1", "id": "a1", "ordinal": 1, "started_at": 0})
        connection.execute(insert(series), {"number": 1, "attempt": 1, "metric": "m", "missing_reason": ""})
        for first in range(0, MILLION, 65_536):
            values = {(1, n): planted.get(n, (n % 7) / 7) for n in range(first, min(first + 65_536, MILLION))}
            _points.write(connection, [(s, n, *split(value)) for (s, n), value in values.items()])
            rolling.add(connection, values)
    yield store
    store.close()


ZOOMS = [
    (None, None),
    (0, MILLION),
    (100_000, 999_999),
    (123_000, 600_000),
    (300_000, 330_000),
    (314_000, 320_000),
    (314_100, 314_200),
    (577_215, 577_215),
    (999_000, None),
    (None, 130_000),
]


@pytest.mark.parametrize(("first", "last"), ZOOMS)
@pytest.mark.parametrize("limit", [100, LIMIT])
def test_a_spike_and_every_non_finite_value_survive_every_zoom_of_a_million_steps(
    long_store: Store, first: int | None, last: int | None, limit: int
) -> None:
    view = chart(long_store, first, last, limit)
    inside = [n for n in (SPIKE, NAN, UP, DOWN) if (first or 0) <= n <= (MILLION if last is None else last)]
    assert 0 < len(view.step) <= limit
    assert (1e9 in (view.high or view.value)) == (SPIKE in inside)
    assert [NAN in view.nan, UP in view.pos_inf, DOWN in view.neg_inf] == [n in inside for n in (NAN, UP, DOWN)]
    assert all(n in inside for n in (*view.nan, *view.pos_inf, *view.neg_inf))


@pytest.mark.parametrize("wish", ["", "linear", "log"])
@pytest.mark.parametrize(("first", "last"), ZOOMS)
def test_what_is_seen_of_a_million_steps_at_every_zoom(
    long_store: Store, first: int | None, last: int | None, wish: str
) -> None:
    view = chart(long_store, first, last, 400)
    span = figures.Span(first=first or 0, last=MILLION if last is None else last)
    drawing = figures.Drawing(theme=LIGHT, span=span, wish=wish, smoothing=find_smoothing("median-21"))
    traces, scale = figures.chart(view, None, drawing)["data"], figures.scale_of(view, drawing)
    inside = [n for n in (SPIKE, NAN, UP, DOWN) if span.first <= n <= span.last]
    drawn = [y for i in (figures.HIGH, figures.VALUE) for y in traces[i]["y"]]
    assert (scale.place(1e9) in drawn) == (SPIKE in inside)
    marked = [traces[i]["x"] for i in (figures.NANS, figures.POS_INFS, figures.NEG_INFS)]
    assert marked == [[n] if n in inside else [] for n in (NAN, UP, DOWN)]


def test_a_chart_of_a_million_steps_reads_rollups_and_never_the_points(long_store: Store) -> None:
    asked: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        asked.append(statement)

    event.listen(long_store.engine, "before_cursor_execute", note)
    try:
        view = chart(long_store)
    finally:
        event.remove(long_store.engine, "before_cursor_execute", note)
    assert len(view.step) > LIMIT / 4
    assert any("FROM rollups" in statement for statement in asked)
    assert [statement for statement in asked if "points.value" in statement] == []


def test_the_default_chart_has_the_last_value_and_the_range_of_each_bucket(long_store: Store) -> None:
    view = chart(long_store)
    assert view.bucket % rolling.FINE == 0
    assert view.step[-1] == MILLION - 1
    assert set(view.low) == {0.0}
    assert all(h is not None and h >= 6 / 7 for h in view.high)


kinds = st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 1.5, -2.0, 1e308, -1e308])
runs_of_values = st.lists(
    st.tuples(st.integers(-300, 9_000), st.one_of(kinds, st.floats(allow_nan=False, allow_infinity=False))),
    min_size=1,
    max_size=60,
    unique_by=lambda pair: pair[0],
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(values=[(1, math.nan), (0, math.nan)], cuts=[1])
@given(values=runs_of_values, cuts=st.lists(st.integers(1, 59), max_size=3))
def test_rollups_say_the_same_as_the_points_however_they_came_in(
    tmp_path_factory: pytest.TempPathFactory,
    sqlite_template: object,
    values: Sequence[tuple[int, float]],
    cuts: Sequence[int],
) -> None:
    store = Store(f"sqlite:///{tmp_path_factory.mktemp('rollups') / 'rlvitals.db'}")
    store.migrate()
    bounds = sorted({0, *[c for c in cuts if c < len(values)], len(values)})
    seq = 1
    for start, end in pairwise(bounds):
        put(store, values[start:end], seq=seq)
        seq += end - start
    for width in rolling.WIDTHS:
        assert kept_buckets(store, width) == expected_buckets(values, width)
    store.close()


def test_rollups_follow_when_writers_are_merged_and_when_one_corrects_itself(store: Store) -> None:
    name = "ratio.max"
    for seq, (writer, value) in enumerate([("a", 1.0), ("b", 9.0), ("b", 5.0), ("a", math.nan)], start=1):
        with store.begin() as connection:
            store_batch(connection, batch(step(seq, 10, {name: value}), writer=writer), NOW)
    for width in rolling.WIDTHS:
        assert kept_buckets(store, width) == expected_buckets([(10, math.nan)], width)
    with store.read() as connection:
        number, _ = find_attempt(connection, "r1")
        assert [m.points for m in read_metrics(connection, number)] == [1]


def test_sums_too_large_for_a_double_do_not_stop_the_ingest(store: Store) -> None:
    for seq in range(1, 5):
        put(store, [(seq, 1.7e308)], seq=seq)
        put(store, [(10_000 + seq, -1.7e308)], seq=100 + seq, writer="other")
    assert chart(store).value == (1.7e308,) * 4 + (-1.7e308,) * 4


def kept_buckets(store: Store, width: int) -> dict[int, tuple[object, ...]]:
    columns = ("low", "high", "count", "nan", "pos_inf", "neg_inf", "nan_step", "pos_inf_step", "neg_inf_step")
    with store.read() as connection:
        rows = connection.execute(rolling.rollups.select().where(rolling.rollups.c.width == width))
        return {row.bucket: tuple(getattr(row, name) for name in columns) for row in rows}


def expected_buckets(values: Sequence[tuple[int, float]], width: int) -> dict[int, tuple[object, ...]]:
    buckets: dict[int, list[tuple[int, float]]] = {}
    for number, value in values:
        buckets.setdefault(number // width, []).append((number, value))
    return {key: _bucket(members) for key, members in buckets.items()}


def _bucket(members: Sequence[tuple[int, float]]) -> tuple[object, ...]:
    finite = [v for _, v in members if math.isfinite(v)]
    kinds_of = [
        [n for n, v in members if math.isnan(v)],
        [n for n, v in members if v == math.inf],
        [n for n, v in members if v == -math.inf],
    ]
    return (
        min(finite, default=None),
        max(finite, default=None),
        len(finite),
        *(len(k) for k in kinds_of),
        *(max(k, default=None) for k in kinds_of),
    )
