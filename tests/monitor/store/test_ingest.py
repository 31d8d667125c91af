from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import func, select

from rlvitals.contract.codec import DecodeError
from rlvitals.contract.command import CommandState, Outcome
from rlvitals.contract.report import Event, EventKind, Extreme, Histogram, Phase, ReportBatch, RunInfo, Text
from rlvitals_monitor.store import points as points_module
from rlvitals_monitor.store import series as reading
from rlvitals_monitor.store import texts as texts_reading
from rlvitals_monitor.store.bulk import COPIED_FROM
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import Stored, store_batch
from rlvitals_monitor.store.runs import find_attempt, read_run
from rlvitals_monitor.store.tables import attempts, events, points, texts
from tests.monitor.batches import NOW, NOW_S, after, batch, heartbeat, step

NON_FINITE = {"a": math.nan, "b": math.inf, "c": -math.inf, "d": 1.5}


def put(store: Store, sent: ReportBatch, at: float = 0.0, **other: Any) -> Stored:
    with store.begin() as connection:
        return store_batch(connection, sent, after(at), **other)


def seen(store: Store, run: str = "r1", attempt: str | None = None) -> dict[int, dict[str, float]]:
    """step → values, as the rules see them."""
    with store.read() as connection:
        number, _ = find_attempt(connection, run, attempt)
        return {
            row.step: dict(row.values) for row in reading.read_steps(connection, number, None, 1_000, after(3600))
        }


def test_nan_both_infinities_and_missing_stay_four_different_things(store: Store) -> None:
    put(store, batch(step(1, 7, NON_FINITE, missing={"e": "not computed"})))
    values = seen(store)[7]
    assert math.isnan(values["a"])
    assert (values["b"], values["c"], values["d"]) == (math.inf, -math.inf, 1.5)
    assert "e" not in values
    with store.read() as connection:
        number, _ = find_attempt(connection, "r1")
        assert reading.missing_reasons(connection, number) == {"e": "not computed"}


def test_a_batch_that_comes_twice_is_stored_once(store: Store) -> None:
    sent = batch(
        step(1, 1, {"numerics.nonfinite": 2.0}),
        texts=(Text(seq=2, step=1, sample=0, completion="x"),),
        events=(Event(seq=3, time_s=NOW_S, kind=EventKind.NOTE),),
        outcomes=(Outcome(seq=4, command_id="c", state=CommandState.APPLIED),),
    )
    first, second = put(store, sent), put(store, sent)
    assert (first.stored, first.duplicates, first.stored_through, len(first.outcomes)) == (4, 0, 4, 1)
    assert (second.stored, second.duplicates, second.stored_through, second.outcomes) == (0, 4, 4, ())
    assert seen(store) == {1: {"numerics.nonfinite": 2.0}}
    with store.read() as connection:
        assert [connection.scalar(select(func.count()).select_from(t)) for t in (texts, events)] == [1, 1]


def test_an_overlapping_resend_stores_only_what_is_new(store: Store) -> None:
    put(store, batch(step(1, 1, {"a": 1.0}), step(2, 2, {"a": 2.0})))
    stored = put(store, batch(step(2, 2, {"a": 99.0}), step(3, 3, {"a": 3.0})))
    assert (stored.stored, stored.duplicates, stored.stored_through) == (1, 1, 3)
    assert seen(store) == {1: {"a": 1.0}, 2: {"a": 2.0}, 3: {"a": 3.0}}


def test_the_same_seq_twice_in_one_batch_counts_once(store: Store) -> None:
    stored = put(store, batch(step(1, 1, {"a": 1.0}), step(1, 2, {"a": 2.0})))
    assert (stored.stored, stored.duplicates) == (1, 1)
    assert seen(store) == {1: {"a": 1.0}}


def test_one_writer_corrects_itself_and_two_writers_are_merged_by_the_registry(store: Store) -> None:
    names = {"numerics.nonfinite": 2.0, "ratio.min": 0.5, "ratio.max": 2.0, "kl.k3": 0.1, "mine": 1.0}
    put(store, batch(step(1, 1, dict.fromkeys(names, 7.0))))
    put(store, batch(step(2, 1, names)))
    assert seen(store)[1] == names
    put(store, batch(step(1, 1, dict.fromkeys(names, 1.0)), writer="rank1"))
    assert seen(store)[1] == {
        "numerics.nonfinite": 3.0,
        "ratio.min": 0.5,
        "ratio.max": 2.0,
        "kl.k3": 1.0,
        "mine": 1.0,
    }


@pytest.mark.parametrize("metric", ["numerics.nonfinite", "ratio.min", "ratio.max"])
def test_a_nan_of_one_writer_is_not_merged_away_by_another(store: Store, metric: str) -> None:
    put(store, batch(step(1, 1, {metric: math.nan})))
    put(store, batch(step(1, 1, {metric: 1.0}), writer="rank1"))
    assert math.isnan(seen(store)[1][metric])


def test_each_writer_has_its_own_sequence(store: Store) -> None:
    put(store, batch(step(5, 1, {"a": 1.0})))
    stored = put(store, batch(step(1, 1, {"b": 2.0}), writer="rank1"))
    assert (stored.stored, stored.stored_through) == (1, 1)
    assert seen(store)[1] == {"a": 1.0, "b": 2.0}


def test_a_step_waits_for_a_writer_that_advances_but_not_for_one_that_is_gone(store: Store) -> None:
    put(store, batch(step(1, 1, {"a": 1.0})))
    put(store, batch(step(1, 1, {"b": 1.0}), writer="rank1"))
    put(store, batch(step(2, 2, {"a": 1.0}), step(3, 3, {"a": 1.0})), at=10)
    with store.read() as connection:
        number, _ = find_attempt(connection, "r1")
        waiting = reading.read_steps(connection, number, None, 10, after(20))
        patience_over = reading.read_steps(connection, number, None, 10, after(31))
    assert [row.step for row in waiting] == [1]
    assert [row.step for row in patience_over] == [1, 2, 3]


def test_a_rewind_is_a_new_attempt_and_both_are_kept(store: Store) -> None:
    put(store, batch(step(1, 1, {"a": 1.0}), step(2, 2, {"a": 2.0})))
    put(store, batch(step(1, 1, {"a": 9.0}), attempt="a2"), at=5)
    assert seen(store, attempt="a1") == {1: {"a": 1.0}, 2: {"a": 2.0}}
    assert seen(store) == {1: {"a": 9.0}}
    with store.read() as connection:
        run = read_run(connection, "r1", after(6))
    assert [(a.id, a.ordinal, a.first_step, a.last_step) for a in run.attempts] == [
        ("a1", 1, 1, 2),
        ("a2", 2, 1, 1),
    ]
    assert run.last_step == 1


def test_a_late_upload_of_an_earlier_attempt_does_not_touch_what_the_run_is_now(store: Store) -> None:
    put(store, batch(info=RunInfo(id="r1", name="old")))
    put(store, batch(step(1, 50, {"a": 1.0}), attempt="a2", info=RunInfo(id="r1", name="new")))
    late = batch(step(9, 900, {"a": 1.0}), info=RunInfo(id="r1", name="old"), heartbeat=heartbeat(Phase.FAILED))
    put(store, late)
    with store.read() as connection:
        run = read_run(connection, "r1", NOW)
    assert (run.name, run.last_step, run.phase) == ("new", 50, "update")


def test_what_a_run_says_of_itself_is_completed_and_a_new_attempt_replaces_its_config(store: Store) -> None:
    put(store, batch(info=RunInfo(id="r1", name="n", config={"kl_coef": 0.1, "x": math.inf}, tags=("t",))))
    put(store, batch(info=RunInfo(id="r1", config={"group_size": 8}, capabilities={"stop": ""})))
    with store.read() as connection:
        run = read_run(connection, "r1", NOW)
    assert (run.name, run.tags, run.kl_coef) == ("n", ("t",), 0.1)
    assert run.config == {"kl_coef": 0.1, "x": "Infinity", "group_size": 8}
    assert run.capabilities == {"stop": ""}
    put(store, batch(attempt="a2", info=RunInfo(id="r1", config={"kl_coef": 0.2})))
    with store.read() as connection:
        assert read_run(connection, "r1", NOW).config == {"kl_coef": 0.2}


@pytest.mark.parametrize(
    ("field", "made"),
    [
        ("run.id", {"run": "no spaces"}),
        ("run.id", {"run": "x" * 129}),
        ("run.id", {"run": "a\n"}),
        ("run.id", {"run": ".."}),
        ("attempt", {"attempt": "../x"}),
        ("writer", {"writer": ""}),
        ("run.project", {"info": RunInfo(id="r1", project="a\x00b")}),
    ],
)
def test_a_batch_that_cannot_be_filed_is_refused_by_the_field(
    store: Store, field: str, made: dict[str, Any]
) -> None:
    with pytest.raises(DecodeError) as refused:
        put(store, batch(**made))
    assert refused.value.field == field


def test_hostile_metric_names_are_refused_one_by_one_and_the_rest_is_stored(store: Store) -> None:
    values = {"": 1.0, "x" * 201: 1.0, "nul\x00": 1.0, "half\ud83d": 1.0, "line\n": 1.0}
    kept = {"'; DROP TABLE points; --": 1.0, "<script>": 2.0, "größe/時間 😀": 3.0, "a" * 200: 4.0}
    stored = put(store, batch(step(1, 1, {**values, **kept})))
    assert sorted(refusal.reason.split(",")[0] for refusal in stored.refused) == [
        "a metric needs a name",
        "a metric's name has at most 200 characters",
        *["a metric's name has no control characters and no lone surrogates"] * 3,
    ]
    assert all(refusal.line == 1 for refusal in stored.refused)
    assert (stored.stored, seen(store)[1]) == (1, kept)


def test_a_run_that_makes_names_from_data_is_cut_off_with_a_word(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(points_module, "METRICS_MAX", 3)
    stored = put(store, batch(step(1, 1, {f"m{i}": float(i) for i in range(5)})))
    assert [(r.field, "at most 3 metrics" in r.reason) for r in stored.refused] == [("m3", True), ("m4", True)]
    assert seen(store)[1] == {"m0": 0.0, "m1": 1.0, "m2": 2.0}
    assert put(store, batch(step(2, 2, {"m0": 5.0}))).refused == ()


@pytest.mark.parametrize("time_s", [math.nan, math.inf, -1.0, 1e300])
def test_a_step_at_a_time_that_cannot_be_is_refused_and_passed_over(store: Store, time_s: float) -> None:
    bad = points_module.StepReport(seq=1, step=1, time_s=time_s, values={"a": 1.0})
    stored = put(store, batch(bad, step(2, 2, {"a": 2.0})))
    assert [(r.line, r.field) for r in stored.refused] == [(1, "time_s")]
    assert (stored.stored, stored.stored_through) == (1, 2)
    assert seen(store) == {2: {"a": 2.0}}


def test_unreadable_records_move_the_watermark_so_that_nobody_sends_them_forever(store: Store) -> None:
    assert put(store, batch(), through=17).stored_through == 17


def test_broken_text_is_kept_with_its_wounds_visible(store: Store) -> None:
    broken = Text(
        seq=1,
        step=1,
        sample=3,
        completion="a\x00b\ud83dc\ufffd😀",
        token_ids=(0, 151_643, 2**32 - 1),
        reward=math.nan,
        truncated=True,
        invalid_utf8=2,
        why="worst_utf8",
    )
    put(store, batch(texts=(broken,)))
    with store.read() as connection:
        (read,) = texts_reading.read_texts(connection, "r1", step=1, limit=10)
    assert read.completion == "a\\x00b\\ud83dc\ufffd😀"
    assert (read.token_ids, read.sample, read.truncated, read.invalid_utf8) == (
        (0, 151_643, 2**32 - 1),
        3,
        True,
        2,
    )
    assert read.reward is not None
    assert math.isnan(read.reward)


def test_an_endless_completion_is_cut_and_bad_ids_are_refused(store: Store) -> None:
    long = Text(seq=1, step=1, sample=0, completion="x" * 100_000)
    bad = Text(seq=2, step=1, sample=1, completion="y", token_ids=(-1,))
    stored = put(store, batch(texts=(long, bad)))
    assert [(r.line, r.field) for r in stored.refused] == [(2, "texts")]
    with store.read() as connection:
        (read,) = texts_reading.read_texts(connection, "r1", step=None, limit=10)
    assert len(read.completion) == texts_reading.TEXT_CHARS_MAX


def test_extremes_keep_the_token_and_non_finite_values(store: Store) -> None:
    where = Extreme(value=math.inf, token_id=151_643, position=4, sample=2, masked=True, token="\x00")
    stored = put(
        store,
        batch(
            step(1, 1, {"ratio.max": math.inf}, extremes={"ratio.max": where}),
            step(2, 2, {}, extremes={"ratio.max": Extreme(value=1.0, token_id=2**70)}),
        ),
    )
    assert [(r.line, r.field) for r in stored.refused] == [(2, "extremes.ratio.max")]
    with store.read() as connection:
        number, _ = find_attempt(connection, "r1")
        (read,) = reading.read_extremes(connection, number, "ratio.max", None, None, 10)
    assert (read.value, read.token_id, read.position, read.sample, read.masked, read.token) == (
        math.inf,
        151_643,
        4,
        2,
        True,
        "\\x00",
    )


def test_histograms_and_events_come_back_as_they_were(store: Store) -> None:
    histogram = Histogram(seq=1, step=1, metric="lengths", edges=(-math.inf, 0.0, math.inf), counts=(3, 4))
    torn = Histogram(seq=2, step=1, metric="lengths", edges=(0.0,), counts=(1, 2))
    event = Event(
        seq=3, time_s=NOW_S, kind=EventKind.CHECKPOINT, step=1, payload={"path": "a\x00", "loss": math.nan}
    )
    stored = put(store, batch(histograms=(histogram, torn), events=(event,)))
    assert [(r.line, r.field) for r in stored.refused] == [(2, "histograms")]
    with store.read() as connection:
        number, _ = find_attempt(connection, "r1")
        (read,) = reading.read_histograms(connection, number, "lengths", None, None, 10)
        (told,) = texts_reading.read_events(connection, "r1", limit=10)
    assert (read.edges, read.counts) == ((-math.inf, 0.0, math.inf), (3, 4))
    assert (told.kind, told.step, told.at) == ("checkpoint", 1, NOW)
    assert told.payload == {"path": "a\\x00", "loss": "NaN"}


def test_a_config_too_deep_or_too_large_is_refused_without_the_steps(store: Store) -> None:
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    wide = {f"k{i}": i for i in range(10_000)}
    for config in ({"deep": deep}, wide):
        stored = put(store, batch(step(1, 1, {"a": 1.0}), run="c", info=RunInfo(id="c", config=config)))
        assert [r.field for r in stored.refused] == ["run.config"]
    assert seen(store, "c") == {1: {"a": 1.0}}


def test_missing_reasons_go_when_the_metric_comes(store: Store) -> None:
    put(store, batch(step(1, 1, {}, missing={"a": "no old log-probs"})))
    put(store, batch(step(2, 2, {"a": 1.0})))
    put(store, batch(step(3, 3, {}, missing={"b": "x\x00" * 1000})))
    with store.read() as connection:
        number, _ = find_attempt(connection, "r1")
        reasons = reading.missing_reasons(connection, number)
        metrics = {m.metric: m for m in reading.read_metrics(connection, number)}
    assert list(reasons) == ["b"]
    assert len(reasons["b"]) == points_module.REASON_CHARS_MAX
    assert (metrics["a"].points, metrics["a"].last_step, metrics["a"].last_value) == (1, 2, 1.0)
    assert (metrics["b"].points, metrics["b"].last_value, metrics["b"].missing_reason) == (0, None, reasons["b"])


def test_many_runs_write_at_once_without_loss_or_deadlock(store: Store) -> None:
    def train(name: str) -> None:
        for number in range(1, 11):
            for writer in ("main", "rank1"):
                put(store, batch(step(number, number, {"numerics.nonfinite": 1.0}), run=name, writer=writer))

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(train, f"run{i % 4}") for i in range(8)]:
            done.result(60)
    for i in range(4):
        assert seen(store, f"run{i}") == {n: {"numerics.nonfinite": 2.0} for n in range(1, 11)}


def test_the_same_new_run_from_two_processes_at_once_is_made_once(store: Store) -> None:
    start = threading.Barrier(4)

    def send() -> Stored:
        start.wait(10)
        return put(store, batch(step(1, 1, {"a": 1.0})))

    with ThreadPoolExecutor(4) as pool:
        results = [done.result(30) for done in [pool.submit(send) for _ in range(4)]]
    assert sorted((r.stored, r.duplicates) for r in results) == [(0, 1), (0, 1), (0, 1), (1, 0)]


def test_everything_is_there_after_a_restart(store: Store, database_url: str) -> None:
    put(store, batch(step(1, 1, NON_FINITE)))
    store.close()
    again = Store(database_url)
    assert math.isnan(seen(again)[1]["a"])
    assert put(again, batch(step(1, 1, NON_FINITE))).duplicates == 1
    with again.read() as connection:
        assert connection.scalar(select(func.count()).select_from(points)) == 4
        assert connection.scalar(select(func.count()).select_from(attempts)) == 1
    again.close()


def test_a_batch_so_large_that_it_is_copied_is_stored_as_a_small_one_is(store: Store) -> None:
    """Every kind of number, evaluations at steps to come, and corrections of what was copied."""
    kinds = (math.nan, math.inf, -math.inf, 5e-324, 0.1)
    names = [f"m.{number}" for number in range(COPIED_FROM // 10)]

    def values(at: int) -> dict[str, float]:
        return {name: kinds[(place + at) % len(kinds)] for place, name in enumerate(names)}

    ahead = step(1, 15, {"eval.reward": 0.5, "eval.loss": math.nan})
    with store.begin() as connection:
        store_batch(connection, batch(ahead), NOW)
        store_batch(connection, batch(*(step(1 + n, n, values(n)) for n in range(1, 21))), NOW)
        evaluated = {**values(3), "eval.reward": 0.75}
        store_batch(connection, batch(*(step(30 + n, n, evaluated) for n in range(15, 31))), NOW)
    with store.read() as connection:
        number, _ = find_attempt(connection, "r1")
        found = {row.step: row.values for row in reading.read_steps(connection, number, None, 100)}
        counted = {metric.metric: metric.points for metric in reading.read_metrics(connection, number)}
    assert found.keys() == set(range(1, 31))
    for at, told in found.items():
        expected = values(at) if at < 15 else {**values(3), "eval.reward": 0.75}
        assert {name: repr(told[name]) for name in expected} == {name: repr(v) for name, v in expected.items()}
    assert counted == {**dict.fromkeys(names, 30), "eval.reward": 16, "eval.loss": 1}
