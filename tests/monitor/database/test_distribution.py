"""Citus is asked as its documentation says. A stand-in answers for it: the extension itself is not here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from sqlalchemy import text

from rlvitals_monitor.database.command import db
from rlvitals_monitor.database.partition import partition
from rlvitals_monitor.store.citus import DISTRIBUTED
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.tables import METADATA

pytestmark = pytest.mark.postgres
STAND_IN = (
    "CREATE TABLE asked (number serial, name text, of text, beside text)",
    "CREATE FUNCTION create_distributed_table(t regclass, c text, colocate_with text) RETURNS void LANGUAGE sql"
    " AS $$ INSERT INTO asked (name, of, beside) VALUES (t::text, c, colocate_with) $$",
    "INSERT INTO pg_extension SELECT 99999, 'citus', extowner, extnamespace, true, '13.0-1', NULL, NULL"
    " FROM pg_extension LIMIT 1",
)


@pytest.fixture
def store(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("RLVITALS_DATABASE_URL", postgres_url)
    with closing(Store(postgres_url)) as opened:
        yield opened


def test_it_says_plainly_where_there_is_no_citus(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert db(["distribute"]) == 1
    assert "this PostgreSQL has no Citus" in capsys.readouterr().err


def test_every_table_by_its_series_and_beside_the_first(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    with store.begin() as connection:
        for statement in STAND_IN:
            connection.execute(text(statement))
    assert db(["distribute"]) == 0
    assert "distributed by series: points, rollups, extremes, histograms" in capsys.readouterr().out
    with store.read() as connection:
        asked = connection.execute(text("SELECT name, of, beside FROM asked ORDER BY number")).all()
    assert [tuple(row) for row in asked] == [
        ("points", "series", "none"),
        ("rollups", "series", "points"),
        ("extremes", "series", "points"),
        ("histograms", "series", "points"),
    ]


def test_what_is_in_parts_is_put_together_first(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    with store.begin() as connection:
        for statement in STAND_IN:
            connection.execute(text(statement))
    list(partition(store, 2))
    assert db(["distribute"]) == 1
    assert "--parts 0" in capsys.readouterr().err


def test_sqlite_is_told_where_to_go(
    sqlite_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLVITALS_DATABASE_URL", sqlite_url)
    assert db(["distribute"]) == 1
    assert "Citus is an extension of PostgreSQL" in capsys.readouterr().err


def test_the_tables_can_be_distributed_their_keys_hold_the_column_and_nothing_refers_to_them() -> None:
    for table in DISTRIBUTED:
        assert "series" in {column.name for column in table.primary_key}
        assert not table.foreign_keys
    referred = {key.column.table for table in METADATA.sorted_tables for key in table.foreign_keys}
    assert not referred & set(DISTRIBUTED)
