from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import insert, select, text, update

from rlvitals_monitor.errors import NewerSchema, StoreBusy
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.tables import meta


def test_a_failed_transaction_leaves_nothing(store: Store) -> None:
    def fail_half_way() -> None:
        with store.begin() as connection:
            connection.execute(insert(meta).values(key="a", value="1"))
            raise RuntimeError("half-way")

    with pytest.raises(RuntimeError, match="half-way"):
        fail_half_way()
    with store.read() as connection:
        assert connection.scalar(select(meta.c.value).where(meta.c.key == "a")) is None


def test_the_epoch_outlives_a_restart_and_a_second_migration(store: Store, database_url: str) -> None:
    with store.read() as connection:
        before = store.epoch(connection)
    store.migrate()
    again = Store(database_url)
    with again.read() as connection:
        assert again.epoch(connection) == before
    again.close()


def test_a_migrated_store_is_current(store: Store) -> None:
    assert store.is_current()
    with store.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0000'"))
    assert not store.is_current()


def test_a_store_of_a_newer_version_is_left_alone(store: Store) -> None:
    with store.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(NewerSchema, match=r"its schema is 9999.*Upgrade RL Vitals, or name another database"):
        store.migrate()
    with store.read() as connection:
        assert connection.scalar(text("SELECT version_num FROM alembic_version")) == "9999"


def test_writers_take_turns_and_readers_do_not_wait(store: Store) -> None:
    reader_done, writer_holds = threading.Event(), threading.Event()

    def write() -> None:
        with store.begin() as connection:
            connection.execute(insert(meta).values(key="a", value="1"))
            writer_holds.set()
            assert reader_done.wait(10)

    thread = threading.Thread(target=write)
    thread.start()
    assert writer_holds.wait(10)
    with store.read() as connection:
        assert connection.scalar(select(meta.c.value).where(meta.c.key == "a")) is None
    reader_done.set()
    thread.join(10)
    with store.begin() as connection:
        assert connection.scalar(select(meta.c.value).where(meta.c.key == "a")) == "1"


def test_a_writer_that_gets_no_turn_is_told_so(sqlite_url: str) -> None:
    store = Store(sqlite_url, busy_timeout_s=0.01)
    with store.begin(), pytest.raises(StoreBusy, match="nothing was stored"), store.begin():
        pass
    store.close()


def test_sqlite_syncs_each_commit_because_the_receipt_promises_it(sqlite_url: str) -> None:
    store = Store(sqlite_url)
    with store.read() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
    store.close()


def test_a_writer_of_another_process_waits_instead_of_failing_half_way(database_url: str) -> None:
    stores = [Store(database_url), Store(database_url)]
    start = threading.Barrier(len(stores))

    def count(store: Store) -> None:
        start.wait(10)
        for _ in range(8):
            with store.begin() as connection:
                query = select(meta.c.value).where(meta.c.key == "n").with_for_update()
                before = int(connection.scalar(query) or 0)
                connection.execute(update(meta).where(meta.c.key == "n").values(value=str(before + 1)))

    with stores[0].begin() as connection:
        connection.execute(insert(meta).values(key="n", value="0"))
    with ThreadPoolExecutor(len(stores)) as pool:
        for done in [pool.submit(count, store) for store in stores]:
            done.result(60)
    with stores[0].read() as connection:
        assert connection.scalar(select(meta.c.value).where(meta.c.key == "n")) == "16"
    for store in stores:
        store.close()
