"""A store that any older release has filled is brought to the newest schema with all that is in it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, MetaData, Table, insert, text

import rlvitals_migrations
from rlvitals.contract.report import Event, EventKind, RunInfo
from rlvitals.contract.view import Light, RunState
from rlvitals_monitor.database.partition import partition
from rlvitals_monitor.store import runs, series, texts
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import store_batch
from rlvitals_monitor.store.partitions import LARGE
from rlvitals_monitor.store.soundness import check
from rlvitals_monitor.store.tables import events as event_table
from tests.monitor.batches import NOW, NOW_S, after, batch, step

STORED = Path(__file__).with_name("stored.json")
"""Two runs and something in every table: table → rows with every column that any release had; bytes as
``{"hex": …}``. A release has stored what it had tables and columns for."""
RELEASED = sorted(
    each.revision for each in ScriptDirectory(str(Path(rlvitals_migrations.__file__).parent)).walk_revisions()
)[:-1]
Rows = dict[str, list[dict[str, Any]]]
NUMBERED = ("attempts", "series", "texts", "events")


@pytest.fixture
def upgraded(store: Store) -> Store:
    _store_as(store, "0001")
    store.migrate()
    return store


@pytest.mark.parametrize("release", RELEASED)
def test_what_each_release_stored_is_all_there_and_sound_after_the_upgrade(store: Store, release: str) -> None:
    before = _store_as(store, release)
    assert not store.is_current()
    store.migrate()
    assert store.is_current()
    with store.read() as connection:
        assert _rows(connection, before) == _shared(before, _tables(connection))
        assert [found for found in check(connection) if found.fault] == []
        assert {run: runs.read_run(connection, run, NOW).last_step for run in ("old-run", "r1")} == {
            "old-run": 5,
            "r1": 4,
        }
    with store.begin() as connection:
        rlvitals_migrations.downgrade(connection, release)
        assert _rows(connection, before) == before
    store.migrate()
    with store.read() as connection:
        assert _rows(connection, before) == _shared(before, _tables(connection))


@pytest.mark.postgres
def test_an_upgraded_store_goes_into_parts_with_all_that_is_in_it(postgres_url: str) -> None:
    with closing(Store(postgres_url)) as store:
        before = _store_as(store, "0001")
        store.migrate()
        assert all(one.changed for one in partition(store, 4))
        with store.read() as connection:
            assert _rows(connection, before) == _shared(before, _tables(connection))
            assert [found for found in check(connection) if found.fault] == []


@pytest.mark.postgres
def test_no_migration_writes_a_large_table_anew(postgres_url: str) -> None:
    with closing(Store(postgres_url)) as store:
        _store_as(store, "0001")
        before = _files(store)
        store.migrate()
        assert _files(store) == before


def _files(store: Store) -> dict[str, int]:
    """The file that each of the large tables is in: a table that is written anew is in another."""
    query = text("SELECT pg_relation_filenode(to_regclass(:name))")
    with store.read() as connection:
        return {table.name: connection.scalar(query, {"name": table.name}) for table in (*LARGE, event_table)}


def test_a_run_is_as_it_was(upgraded: Store) -> None:
    with upgraded.read() as connection:
        run = runs.read_run(connection, "old-run", NOW)
        assert (run.state, run.light, run.last_step) == (RunState.FINISHED, Light.GREEN, 5)
        assert (run.config["nested"], run.tags) == ({"a": [1, None, "é"]}, ("a", "b"))
        assert run.capabilities["set_kl_coef"] == "no KL"
        number, _ = runs.find_attempt(connection, "old-run")
        assert series.missing_reasons(connection, number) == {"kl.k3": "no reference policy"}
        steps = {row.step: row.values for row in series.read_steps(connection, number, None, 100, after(3600))}
    assert sorted(steps) == [1, 2, 3, 4, 5]
    assert math.isnan(steps[3]["loss"])
    assert (steps[3]["ratio.max"], steps[3]["mine.low"], steps[3]["reward.mean"]) == (math.inf, -math.inf, 1.5)
    assert "kl.k3" not in steps[3]
    assert steps[2]["loss"] == 0.5


def test_completions_histograms_extremes_and_events_are_as_they_were(upgraded: Store) -> None:
    with upgraded.read() as connection:
        (kept,) = texts.read_texts(connection, "old-run", step=2, limit=10)
        assert (kept.completion, kept.token_ids, kept.truncated) == ("x\\x00y \\ud83d <b>", (1, 2, 70000), True)
        assert kept.reward is not None
        assert math.isnan(kept.reward)
        (saved,) = texts.read_events(connection, "old-run", limit=10, kind=EventKind.CHECKPOINT)
        assert saved.payload == {"path": "/x"}
        number, _ = runs.find_attempt(connection, "old-run")
        histogram = series.read_histograms(connection, number, "length.all", None, None, 10)[0]
        assert (histogram.edges, histogram.counts) == ((0.0, 1.0, math.inf), (1, 2))
        extreme = next(
            e for e in series.read_extremes(connection, number, "ratio.max", None, None, 10) if e.step == 3
        )
        assert (extreme.value, extreme.token_id) == (math.inf, 17)


def test_its_client_goes_on_where_it_was_and_tells_what_the_old_release_had_no_place_for(upgraded: Store) -> None:
    hooks = {"framework": "trl", "steps": 6, "hooks": [{"hook": "loss", "state": "seen", "seen": 6}]}
    more = batch(
        step(5, 5, {"loss": 99.0}),
        step(9, 6, {"loss": 0.1}),
        run="old-run",
        info=RunInfo(id="old-run", project="p"),
        events=(Event(seq=10, time_s=NOW_S, kind=EventKind.HOOK, step=6, payload=hooks),),
    )
    with upgraded.begin() as connection:
        stored = store_batch(connection, more, after(60))
    assert (stored.stored, stored.duplicates, stored.stored_through) == (2, 1, 10)
    with upgraded.read() as connection:
        told = runs.read_hooks(connection, "old-run", None, after(60))
        assert (told.well, told.summary) == (True, "1 of 1 hooks see")


def _store_as(store: Store, release: str) -> Rows:
    """Makes of a new store one that a release has filled; what it has stored."""
    with store.begin() as connection:
        rlvitals_migrations.downgrade(connection, release)
        _fill(connection, json.loads(STORED.read_text("utf-8")))
        return _rows(connection, None)


def _fill(connection: Connection, stored: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    old = _tables(connection)
    for name, rows in stored.items():
        if name not in old:
            continue
        plain = [
            {key: bytes.fromhex(v["hex"]) if isinstance(v, dict) and "hex" in v else v for key, v in row.items()}
            for row in rows
        ]
        kept = [{key: value for key, value in row.items() if key in old[name].c} for row in plain]
        connection.execute(insert(old[name]), kept)
    if connection.dialect.name == "postgresql":
        for name in NUMBERED:
            connection.execute(
                text(
                    f"SELECT setval(pg_get_serial_sequence('{name}', 'number'), (SELECT max(number) FROM {name}))"
                )
            )


def _rows(connection: Connection, like: Rows | None = None) -> Rows:
    """All rows, of the tables and columns that ``like`` has where it is given."""
    have = _tables(connection)
    found = {
        name: [dict(row) for row in connection.execute(table.select()).mappings()]
        for name, table in have.items()
        if name not in ("meta", "alembic_version") and (like is None or name in like)
    }
    return _sorted(found if like is None else _shared(found, {name: like[name][0] for name in found}))


def _shared(rows: Rows, columns: Mapping[str, Any]) -> Rows:
    """With those columns alone that are in ``columns`` of the same name."""
    names = {name: getattr(columns[name], "c", columns[name]) for name in rows}
    return _sorted(
        {name: [{k: v for k, v in row.items() if k in names[name]} for row in rows[name]] for name in rows}
    )


def _sorted(rows: Rows) -> Rows:
    return {name: sorted((dict(sorted(row.items())) for row in rows[name]), key=str) for name in rows}


def _tables(connection: Connection) -> Mapping[str, Table]:
    have = MetaData()
    have.reflect(connection)
    return have.tables
