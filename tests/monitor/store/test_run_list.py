from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import event, insert

from rlvitals.contract.report import Phase, RunInfo
from rlvitals.contract.view import Light, RunState, RunView
from rlvitals_monitor.errors import BadRequest, Gone, NotFound
from rlvitals_monitor.store import deletion
from rlvitals_monitor.store.audit import Filter, audit_page
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import store_batch
from rlvitals_monitor.store.run_list import Archived, Cursor, Order, OrderBy, RunFilter, list_runs, read_choices
from rlvitals_monitor.store.run_marks import LABELS_MAX, Marks, mark
from rlvitals_monitor.store.runs import find_attempt, read_run
from rlvitals_monitor.store.tables import alerts
from tests.monitor.batches import NOW, after, batch, heartbeat, step


def put(
    store: Store,
    run: str,
    values: Mapping[str, float] | None = None,
    *,
    at: float = 0.0,
    steps: int = 3,
    attempt: str = "",
    phase: Phase = Phase.UPDATE,
    **info: Any,
) -> None:
    rows = [step(number, number, values or {"m": 1.0}) for number in range(1, steps + 1)]
    told = RunInfo(id=run, **info)
    sent = batch(*rows, info=told, attempt=attempt or run, heartbeat=heartbeat(phase, steps))
    with store.begin() as connection:
        store_batch(connection, sent, after(at))


def fire(store: Store, run: str, *severities: str) -> None:
    row = {"run": run, "since_step": 1, "since_time": 0, "body": {}, "state": "firing"}
    with store.begin() as connection:
        number, _ = find_attempt(connection, run)
        for place, severity in enumerate(severities):
            made = {"id": f"{run}-{place}", "rule": f"r{place}", "severity": severity, "attempt": number}
            connection.execute(insert(alerts), row | made)


def listed(store: Store, wanted: RunFilter | None = None, order: str = "-created", **given: Any) -> list[str]:
    by = Order(by=OrderBy(order.lstrip("-")), falling=order.startswith("-"))
    with store.read() as connection:
        found, _ = list_runs(connection, NOW, wanted, order=by, **given)
    return [run.id for run in found]


def by_pages(store: Store, order: Order, limit: int) -> list[str]:
    seen: list[str] = []
    cursor: Cursor | None = None
    with store.read() as connection:
        while True:
            page, cursor = list_runs(connection, NOW, order=order, after=cursor, limit=limit)
            seen += [run.id for run in page]
            if cursor is None:
                return seen


def test_every_order_goes_page_by_page_and_shows_each_run_once(store: Store) -> None:
    for number, coefficient in enumerate([0.1, math.nan, math.inf, -math.inf, 0.1, 2.0]):
        put(store, f"r{number}", {"kl.coef": coefficient}, at=number // 2, model=f"m{number % 2}", name="same")
    put(store, "none", steps=0)
    fire(store, "r3", "critical", "warning")
    for by in OrderBy:
        for falling in (True, False):
            order = Order(by=by, falling=falling)
            pages = by_pages(store, order, 2)
            assert sorted(pages) == ["none", "r0", "r1", "r2", "r3", "r4", "r5"], order
            assert pages == by_pages(store, order, 100), order


def test_nan_both_infinities_and_missing_have_places_of_their_own(store: Store) -> None:
    kinds = {"nan": math.nan, "inf": math.inf, "minus": -math.inf, "half": 0.5}
    for run, value in kinds.items():
        put(store, run, {"kl.coef": value})
    put(store, "missing")
    assert listed(store, order="kl_coef") == ["minus", "half", "inf", "nan", "missing"]
    assert listed(store, order="-kl_coef") == ["nan", "inf", "half", "minus", "missing"]
    with store.read() as connection:
        found = {run.id: run.kl_coef for run in list_runs(connection, NOW)[0]}
    assert math.isnan(found["nan"] or 0.0)
    assert (found["inf"], found["minus"], found["missing"]) == (math.inf, -math.inf, None)


def test_runs_are_found_by_light_state_words_owner_and_labels(store: Store) -> None:
    put(store, "calm", project="math", framework="trl 1.2", model="Qwen3", tags=("Ärger", "數學"))
    put(store, "ill", project="math", framework="verl")
    put(store, "over", project="code", framework="trl", phase=Phase.FINISHED)
    fire(store, "ill", "critical", "warning", "info")
    with store.begin() as connection:
        mark(connection, "ill", Marks(owner="ada", labels=("night", "100%_")), "ada", NOW)
    assert listed(store, RunFilter(lights=frozenset({Light.RED}))) == ["ill"]
    assert listed(store, RunFilter(states=frozenset({RunState.FINISHED}))) == ["over"]
    assert sorted(listed(store, RunFilter(frameworks=frozenset({"trl"})))) == ["calm", "over"]
    assert listed(store, RunFilter(projects=frozenset({"code"}))) == ["over"]
    assert listed(store, RunFilter(text="  ärger QWEN3 ")) == ["calm"]
    assert listed(store, RunFilter(text="數學")) == ["calm"]
    assert listed(store, RunFilter(text="%")) == listed(store, RunFilter(labels=frozenset({"100%_"}))) == ["ill"]
    assert listed(store, RunFilter(owner="ada", labels=frozenset({"night", "day"}))) == []
    assert listed(store, order="-light")[0] == "ill"
    with store.read() as connection:
        ill = list_runs(connection, NOW, RunFilter(owner="ada"))[0][0]
    assert (ill.firing, ill.critical, ill.warnings, ill.labels) == (3, 1, 1, ("night", "100%_"))


def test_only_what_was_heard_of_since_is_read_for_a_page_that_stands_open(store: Store) -> None:
    put(store, "old")
    put(store, "new", at=10)
    assert listed(store, RunFilter(seen_since=after(5))) == ["new"]


def test_gpu_hours_are_ranks_times_the_time_of_all_attempts_and_missing_where_nobody_told_the_ranks(
    store: Store,
) -> None:
    for attempt, start in (("a1", 0), ("a2", 7200)):
        put(store, "told", at=start, attempt=attempt, config={"world_size": 8})
        put(store, "told", at=start + 1800, steps=0, attempt=attempt)
    put(store, "sent-later", steps=12, config={"world_size": 2})
    put(store, "untold")
    hostile = {"text": "8", "true": True, "nan": "NaN", "inf": "Infinity", "none": 0, "minus": -8, "huge": 10**400}
    for run, size in hostile.items():
        put(store, run, config={"world_size": size})
    put(store, "log", framework="import", config={"world_size": 8})
    with store.read() as connection:
        found = {run.id: run.gpu_hours for run in list_runs(connection, NOW)[0]}
    assert found.pop("told") == pytest.approx(8 * (0.5 + 0.5))
    assert found.pop("sent-later") == pytest.approx(2 * 11 / 3600)
    assert set(found.values()) == {None}


def test_a_row_of_a_list_is_the_run_without_what_is_heavy(store: Store) -> None:
    put(store, "r1", {"kl.coef": 0.5}, config={"lr": 1e-6, "world_size": 2}, tags=("a",))
    with store.read() as connection:
        (light,), _ = list_runs(connection, NOW)
        (whole,), _ = list_runs(connection, NOW, whole=True)
        assert whole == read_run(connection, "r1", NOW)
    assert (light.config, light.attempts, light.knobs, light.capabilities) == ({}, (), {}, {})
    heavy = ("config", "attempts", "knobs", "capabilities", "notes")
    for name in RunView.__dataclass_fields__:
        assert name in heavy or getattr(light, name) == getattr(whole, name), name


def test_a_thousand_runs_cost_as_many_statements_as_one(store: Store) -> None:
    put(store, "r0")

    def statements() -> int:
        counted: list[str] = []

        def count(_c: object, _cursor: object, statement: str, *_rest: object) -> None:
            counted.append(statement)

        event.listen(store.engine, "before_cursor_execute", count)
        listed(store, order="-light")
        event.remove(store.engine, "before_cursor_execute", count)
        return len(counted)

    one = statements()
    for number in range(1, 20):
        put(store, f"r{number}")
    assert statements() == one


def test_archived_and_deleted_runs_are_out_of_the_way(store: Store) -> None:
    for run in ("kept", "away", "gone"):
        put(store, run, project=f"p-{run}")
    with store.begin() as connection:
        assert mark(connection, "away", Marks(archived=True), "ada", NOW)
        deletion.mark(connection, "gone", "ada", NOW)
    assert listed(store) == ["kept"]
    assert listed(store, RunFilter(archived=Archived.ONLY)) == ["away"]
    assert sorted(listed(store, RunFilter(archived=Archived.ANY))) == ["away", "kept"]
    with store.read() as connection:
        choices = read_choices(connection)
        assert (choices.runs, choices.archived, choices.projects) == (2, 1, ("p-away", "p-kept"))
        assert read_run(connection, "away", NOW).archived_at == NOW
    with store.begin() as connection, pytest.raises(Gone):
        mark(connection, "gone", Marks(owner="eve"), "eve", NOW)
    with store.begin() as connection, pytest.raises(NotFound):
        mark(connection, "never", Marks(owner="eve"), "eve", NOW)


def test_what_people_say_is_changed_once_and_stands_in_the_audit(store: Store) -> None:
    put(store, "r1")
    with store.begin() as connection:
        mark(connection, "r1", Marks(owner=" ada ", labels=("b", "a", "b"), notes="try\0again"), "ada", NOW)
        mark(connection, "r1", Marks(add_labels=("c", " a "), remove_labels=("b",)), "bob", NOW)
        assert not mark(connection, "r1", Marks(owner="ada", add_labels=("c",), archived=False), "bob", NOW)
        run = read_run(connection, "r1", NOW)
        lines, _ = audit_page(connection, Filter(run="r1"))
    assert (run.owner, run.labels, run.notes) == ("ada", ("a", "c"), "try\ufffdagain")
    told = [(line.who, line.what, line.detail) for line in reversed(lines)]
    assert told == [
        ("ada", "run owner", "nobody → ada"),
        ("ada", "run labels", "+b, +a"),
        ("ada", "run notes", "try\ufffdagain"),
        ("bob", "run labels", "+c, -b"),
    ]


def test_a_run_has_no_more_labels_than_a_row_can_show(store: Store) -> None:
    put(store, "r1")
    with store.begin() as connection:
        mark(connection, "r1", Marks(labels=tuple(f"l{n}" for n in range(LABELS_MAX))), "ada", NOW)
    with store.begin() as connection, pytest.raises(BadRequest):
        mark(connection, "r1", Marks(add_labels=("one more",)), "ada", NOW)


def test_a_filter_by_what_is_derived_looks_at_the_newest_runs_that_fit_the_rest(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlvitals_monitor.store.run_list.SCANNED_MAX", 2)
    monkeypatch.setattr("rlvitals_monitor.store.run_views.RUNS_AT_ONCE", 1)
    for number in range(4):
        put(store, f"r{number}", at=number)
    assert listed(store, RunFilter(lights=frozenset({Light.GREEN}))) == ["r3", "r2"]


def test_steps_told_out_of_order_give_the_same_rate_in_the_list_and_on_the_page(store: Store) -> None:
    rows = [step(n, n, {"m": 1.0}) for n in (3, 1, 2)]
    with store.begin() as connection:
        store_batch(connection, batch(*rows), NOW)
        (light,), _ = list_runs(connection, NOW)
        assert light.steps_per_minute == read_run(connection, "r1", NOW).steps_per_minute == 60.0
