"""Backup, restore and move: from each database to each, exact, checked, and refused where it would do harm."""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

from rlvitals.contract.access import AccessKind
from rlvitals_monitor.database import backup as module
from rlvitals_monitor.database.backup import BackupError, back_up, move, restore
from rlvitals_monitor.store import entries, sessions, transfer
from rlvitals_monitor.store.audit import verify
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.entries import Purpose
from rlvitals_monitor.store.ingest import store_batch
from rlvitals_monitor.store.runs import find_attempt
from rlvitals_monitor.store.series import read_metrics, read_steps
from rlvitals_monitor.store.soundness import check
from rlvitals_monitor.store.tables import attempts
from tests.monitor.batches import NOW, batch, step
from tests.monitor.test_janitor import counts, fill

NUMBERS = {"a.nan": math.nan, "b.up": math.inf, "c.down": -math.inf, "d.tiny": 5e-324, "e.zero": -0.0, "f": 0.1}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Another store, of each kind, that is empty."""
    if request.param == "sqlite":
        store = Store(f"sqlite:///{tmp_path / 'other.db'}")
    else:
        store = Store(request.getfixturevalue("postgres_url"))
    store.migrate()
    yield store
    store.close()


@pytest.fixture
def filled(sqlite_url: str) -> Iterator[Store]:
    opened = Store(sqlite_url)
    populate(opened)
    yield opened
    opened.close()


def populate(store: Store) -> None:
    """A run in every table, and one with every kind of number, hostile text and numbers without an end."""
    fill(store, "r1")
    with store.begin() as connection:
        store_batch(connection, batch(step(1, 1, NUMBERS), step(2, 2, {"f": 1.0}), run="r2"), NOW)
        connection.exec_driver_sql("UPDATE runs SET notes = '\U0001f600 x é \"<b>' WHERE id = 'r2'")


def epoch(store: Store) -> str:
    with store.read() as connection:
        return store.epoch(connection)


def contents(store: Store) -> list[transfer.Content]:
    with store.read() as connection:
        return [one for one in transfer.measure(connection) if one.table != "meta"]


def assert_all_is_there(store: Store) -> None:
    with store.read() as connection:
        number, _ = find_attempt(connection, "r2")
        first, second = read_steps(connection, number, None, 10, NOW)
        assert math.isnan(first.values["a.nan"])
        assert {name: value for name, value in first.values.items() if name != "a.nan"} == {
            name: value for name, value in NUMBERS.items() if name != "a.nan"
        }
        assert second.values == {"f": 1.0}
        assert {metric.metric for metric in read_metrics(connection, number)} == set(NUMBERS)
        assert [found.fault for found in check(connection) if found.fault] == []
        assert verify(connection).fault == ""


def test_what_was_backed_up_is_restored_exactly_on_either_database_with_a_new_epoch(
    filled: Store, other: Store, tmp_path: Path
) -> None:
    file = tmp_path / "kept.backup"
    made = back_up(filled, file)
    assert (made.runs, made.points) == (2, counts(filled)["points"])
    assert os.stat(file).st_mode & 0o777 == 0o600
    before = epoch(other)
    found = restore(file, other)
    assert (found.runs, found.points) == (made.runs, made.points)
    assert contents(other) == contents(filled)
    assert epoch(other) not in (before, epoch(filled))
    assert_all_is_there(other)
    assert [path.name for path in tmp_path.iterdir() if "backup" in path.name] == ["kept.backup"]


def test_who_was_signed_out_since_is_not_signed_in_again_and_no_copy_lies_open(
    filled: Store, other: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later, modes = NOW + timedelta(hours=1), []
    with filled.begin() as connection:
        cookie, _ = sessions.start(connection, AccessKind.USER, "u1", "", NOW, later)
        entry = entries.make(connection, Purpose.INVITATION, "u1", "ann", NOW, timedelta(hours=1))
    back_up(filled, tmp_path / "kept.backup")
    copied = module.shutil.copyfile

    def copy(source: Path, target: Path) -> None:
        copied(source, target)
        modes.append(os.stat(target).st_mode & 0o777)

    monkeypatch.setattr(module.shutil, "copyfile", copy)
    restore(tmp_path / "kept.backup", other)
    assert modes == [0o600]
    with other.read() as connection:
        assert (sessions.find(connection, cookie), entries.find(connection, entry)) == (None, None)


@pytest.mark.postgres
def test_a_backup_of_postgresql_is_a_sqlite_file_with_the_same_in_it(postgres_url: str, tmp_path: Path) -> None:
    file = tmp_path / "kept.backup"
    with closing(Store(postgres_url)) as store:
        populate(store)
        back_up(store, file)
        with closing(Store(f"sqlite:///{file}")) as found:
            assert contents(found) == contents(store)
            assert_all_is_there(found)


def test_what_is_written_afterwards_counts_on(filled: Store, other: Store, tmp_path: Path) -> None:
    move(filled, other)
    with other.begin() as connection:
        store_batch(connection, batch(step(3, 3, {"f": 2.0, "new": 1.0}), run="r2"), NOW)
        store_batch(connection, batch(step(1, 1, {"f": 2.0}), run="r3"), NOW)
        assert connection.scalar(select(func.count()).select_from(attempts)) == 3
        assert [found.fault for found in check(connection) if found.fault] == []


def test_a_move_keeps_the_epoch_and_leaves_the_source_as_it_was(filled: Store, other: Store) -> None:
    before = contents(filled)
    moved = move(filled, other)
    assert [one for one in moved if one.table != "meta"] == before == contents(filled)
    assert epoch(other) == epoch(filled)
    assert_all_is_there(other)


def test_what_is_there_is_not_overwritten_unless_it_is_asked_for(
    filled: Store, other: Store, tmp_path: Path
) -> None:
    file = tmp_path / "kept.backup"
    back_up(filled, file)
    with pytest.raises(BackupError, match="is there already"):
        back_up(filled, file)
    fill(other, "precious")
    with pytest.raises(BackupError, match="--replace"):
        restore(file, other)
    with pytest.raises(BackupError, match="not empty"):
        move(filled, other)
    assert counts(other)["attempts"] == 1
    restore(file, other, replace=True)
    assert contents(other) == contents(filled)


def test_nothing_is_restored_under_a_service_that_runs(filled: Store, tmp_path: Path, database_url: str) -> None:
    file = tmp_path / "kept.backup"
    back_up(filled, file)
    with closing(Store(database_url)) as service, closing(Store(database_url)) as mine:
        epoch(service)
        with pytest.raises(BackupError, match="stop the service"):
            restore(file, mine, replace=True)


def test_a_file_that_is_damaged_or_something_else_changes_nothing(
    filled: Store, other: Store, tmp_path: Path
) -> None:
    before = contents(other)
    nonsense, damaged = tmp_path / "nonsense", tmp_path / "damaged"
    nonsense.write_bytes(b"hello" * 1000)
    with pytest.raises(BackupError, match="no backup"):
        restore(nonsense, other)
    with pytest.raises(BackupError, match="no file"):
        restore(tmp_path / "absent", other)
    back_up(filled, damaged)
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:8192] + b"\xa5" * 2048 + whole[10240:])
    with pytest.raises(BackupError):
        restore(damaged, other)
    assert contents(other) == before


def test_a_backup_whose_charts_lost_a_point_is_not_restored(filled: Store, other: Store, tmp_path: Path) -> None:
    file = tmp_path / "kept.backup"
    back_up(filled, file)
    with closing(sqlite3.connect(file)) as raw:
        raw.execute("DELETE FROM points WHERE step = 11")
        raw.commit()
    with pytest.raises(BackupError, match="charts count every point once"):
        restore(file, other)


def test_a_copy_that_does_not_arrive_is_noticed_and_undone(
    filled: Store, other: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kept.backup"
    back_up(filled, file)
    write = transfer._write

    def lose_one(connection: object, table: object, rows: list[object]) -> None:
        write(connection, table, rows[1:] if getattr(table, "name", "") == "points" else rows)  # type: ignore[arg-type]

    monkeypatch.setattr(transfer, "_write", lose_one)
    with pytest.raises(BackupError, match="points"):
        restore(file, other)
    assert counts(other)["runs"] == 0


def test_a_backup_of_an_older_schema_is_brought_up_to_date(other: Store, sqlite_url: str, tmp_path: Path) -> None:
    import rlvitals_migrations

    file = tmp_path / "kept.backup"
    with closing(Store(sqlite_url)) as old:
        with old.begin() as connection:
            store_batch(connection, batch(step(1, 1, NUMBERS), step(2, 2, {"f": 1.0}), run="r2"), NOW)
            rlvitals_migrations.downgrade(connection, "0005")
        module.snapshot.vacuum_into(old, file)
    restore(file, other)
    assert_all_is_there(other)
