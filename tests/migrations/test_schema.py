from __future__ import annotations

import re

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, create_engine, inspect, text

import rlvitals_migrations
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.tables import METADATA


def test_the_migrations_make_exactly_the_schema_of_the_code(store: Store) -> None:
    with store.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []


def test_the_migrations_make_the_same_sqlite_tables_as_the_code_down_to_their_storage(sqlite_url: str) -> None:
    store = Store(sqlite_url)
    with store.read() as connection:
        migrated = _definitions(connection)
    store.close()
    with create_engine("sqlite://").begin() as connection:
        METADATA.create_all(connection)
        assert migrated == _definitions(connection)
    assert "WITHOUT ROWID" in migrated["points"]


def test_the_migrations_go_all_the_way_down_and_up_again(store: Store) -> None:
    with store.begin() as connection:
        rlvitals_migrations.downgrade(connection)
        assert inspect(connection).get_table_names() == ["alembic_version"]
        assert rlvitals_migrations.current(connection) is None
    store.migrate()
    assert store.is_current()


def _definitions(connection: Connection) -> dict[str, list[str]]:
    """The words of each table's definition, in any order, without the quotes that altering a table puts on."""
    rows = connection.execute(
        text("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'alembic%'")
    )
    return {
        name: sorted(" ".join(part.replace('"', "").split()) for part in re.split("[,()]", sql))
        for name, sql in rows
    }
