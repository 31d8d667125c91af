"""Large tables in parts and together again: nothing lost, nothing doubled, whatever is reported meanwhile."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
from sqlalchemy import text

import rlvitals_migrations
from rlvitals_monitor.database import partition as module
from rlvitals_monitor.database.backup import BackupError
from rlvitals_monitor.database.command import db
from rlvitals_monitor.database.partition import partition
from rlvitals_monitor.store import deletion, partitions, snapshot
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import store_batch
from rlvitals_monitor.store.partitions import LARGE, count_parts
from rlvitals_monitor.store.soundness import check
from rlvitals_monitor.store.tables import points
from tests.monitor.batches import NOW, batch, step
from tests.monitor.database.test_backup import contents, epoch, populate
from tests.monitor.test_janitor import clean

pytestmark = pytest.mark.postgres


@pytest.fixture
def filled(postgres_url: str) -> Iterator[Store]:
    with closing(Store(postgres_url)) as store:
        populate(store)
        yield store


def into(store: Store, parts: int) -> list[str]:
    """The tables that changed."""
    return [one.table for one in partition(store, parts, pause=lambda _s: None) if one.changed]


def parts_of(store: Store) -> set[int]:
    with store.read() as connection:
        return {count_parts(connection, table) for table in LARGE}


def is_sound(store: Store) -> bool:
    with store.read() as connection:
        return not [found for found in check(connection) if found.fault]


def report(store: Store, seq: int, at: int, value: float, run: str = "r2") -> None:
    with store.begin() as connection:
        store_batch(connection, batch(step(seq, at, {"f": value, "a.nan": float("nan")}), run=run), NOW)


def test_into_parts_into_others_and_together_again_with_every_number_as_it_was(filled: Store) -> None:
    before, said = contents(filled), epoch(filled)
    for parts in (4, 3, 0):
        assert into(filled, parts) == [table.name for table in LARGE]
        assert parts_of(filled) == {parts}
        assert contents(filled) == before
    assert epoch(filled) == said
    assert is_sound(filled)
    assert into(filled, 0) == []


def test_a_store_in_parts_takes_reports_removes_runs_and_is_kept_and_migrated(filled: Store) -> None:
    into(filled, 4)
    report(filled, 3, 3, 7.0)
    report(filled, 4, 1, float("inf"))
    with filled.begin() as connection:
        deletion.mark(connection, "r1", "ada", NOW)
    clean(filled, NOW)
    snapshot.vacuum(filled)
    assert is_sound(filled)
    with filled.begin() as connection:
        kept = connection.scalar(text("SELECT count(*) FROM points"))
        assert kept == 9
        rlvitals_migrations.downgrade(connection, "0001")
    filled.migrate()
    assert parts_of(filled) == {4}
    assert is_sound(filled)


def test_a_question_about_one_metric_reads_one_part(filled: Store) -> None:
    into(filled, 4)
    with filled.read() as connection:
        asked = text("EXPLAIN SELECT * FROM points WHERE series = 3 AND step > 5 ORDER BY step")
        plan = "\n".join(row[0] for row in connection.execute(asked))
    assert plan.count("points_") == 1 + plan.count("using points_"), plan


def test_what_is_written_corrected_and_removed_while_it_goes_on_is_in_the_parts(filled: Store) -> None:
    with filled.begin() as connection:
        partitions.begin(connection, points, 4)
    report(filled, 3, 3, 7.0)
    report(filled, 4, 2, -1.0)
    with filled.read() as connection:
        found = partitions.pieces(connection, points, 10)
    for piece in found:
        module._copy(filled, points, piece, lambda _s: None)
    report(filled, 5, 1, 9.0)
    report(filled, 6, 4, float("-inf"))
    with filled.begin() as connection:
        deletion.mark(connection, "r1", "ada", NOW)
    clean(filled, NOW)
    before = contents(filled)
    assert into(filled, 4)[0] == "points"
    assert contents(filled) == before
    assert is_sound(filled)


def test_reports_go_on_while_it_works(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS_A_TRANSACTION", 20)
    done, sent, failed = threading.Event(), 0, []

    def send() -> None:
        nonlocal sent
        while not done.is_set() and sent < 100:
            try:
                report(filled, sent + 1, sent + 1, float(sent), run="r3")
            except Exception as error:  # noqa: BLE001 - whatever it is, the test fails for it
                failed.append(error)
                return
            sent += 1

    sender = threading.Thread(target=send)
    sender.start()
    try:
        into(filled, 4)
    finally:
        done.set()
        sender.join()
    assert not failed
    with filled.read() as connection:
        stored = connection.scalar(
            text(
                "SELECT count(*) FROM points p JOIN series s ON s.number = p.series"
                " JOIN attempts a ON a.number = s.attempt WHERE a.run = 'r3' AND s.metric = 'f'"
            )
        )
    assert sent > 0
    assert stored == sent
    assert is_sound(filled)


def test_broken_off_it_goes_on_where_it_was(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before, copied = contents(filled), []
    copy = partitions.copy

    def breaks(connection, table, owner, *rest):  # type: ignore[no-untyped-def]
        copied.append((table.name, owner))
        if len(copied) == 5:
            raise KeyboardInterrupt
        return copy(connection, table, owner, *rest)

    monkeypatch.setattr(partitions, "copy", breaks)
    with pytest.raises(KeyboardInterrupt):
        into(filled, 4)
    assert contents(filled) == before
    into(filled, 4)
    assert contents(filled) == before
    assert parts_of(filled) == {4}


def test_a_twin_that_differs_never_takes_the_tables_place(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(filled)
    monkeypatch.setattr(partitions, "copy", lambda *_: (0, ()))
    with pytest.raises(BackupError, match=r"table points: \d+ rows are there and 0 were copied"):
        into(filled, 4)
    assert contents(filled) == before
    assert parts_of(filled) == {0}
    with filled.read() as connection:
        assert connection.scalar(text("SELECT to_regclass('points_twin')")) is None


def test_the_command_says_what_it_did(
    filled: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = filled.engine.url.render_as_string(hide_password=False)
    monkeypatch.setenv("RLVITALS_DATABASE_URL", url)
    assert db(["partition", "--parts", "2"]) == 0
    told = capsys.readouterr().out
    assert "points" in told
    assert "in 2 parts" in told
    assert db(["partition", "--parts", "2"]) == 0
    assert "is in 2 parts already" in capsys.readouterr().out
    assert db(["partition", "--parts", "1"]) == 1
    assert "expected 2 to 256 parts" in capsys.readouterr().err


def test_sqlite_is_told_where_to_go(
    sqlite_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLVITALS_DATABASE_URL", sqlite_url)
    assert db(["partition"]) == 1
    assert "an SQLite store has no parts" in capsys.readouterr().err


def test_the_commands_of_a_service_on_sqlite_need_no_driver_of_postgresql() -> None:
    code = "import sys; sys.modules['psycopg'] = None; import rlvitals_monitor.database.command"
    subprocess.run([sys.executable, "-c", code], check=True)
