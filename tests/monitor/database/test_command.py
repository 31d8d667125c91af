"""The commands as a person types them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from rlvitals_monitor.database.command import backup, db, restore
from rlvitals_monitor.store import deletion
from rlvitals_monitor.store.engine import Store
from tests.monitor.batches import NOW
from tests.monitor.database.test_backup import populate
from tests.monitor.test_janitor import clean

Break = Callable[[Store], None]


@pytest.fixture
def database(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.setenv("RLVITALS_DATABASE_URL", database_url)
    monkeypatch.setenv("RLVITALS_HOME", str(tmp_path / "home"))
    with closing(Store(database_url)) as store:
        populate(store)
    return database_url


def test_a_backup_is_made_checked_and_put_back(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "b")
    assert backup([file]) == 0
    assert "2 runs" in capsys.readouterr().out
    assert backup([file]) == 1
    assert "is there already" in capsys.readouterr().err
    assert restore([file]) == 1
    assert "--replace" in capsys.readouterr().err
    assert restore([file, "--replace"]) == 0
    assert "2 runs and 47 points are back" in capsys.readouterr().out
    assert db(["check"]) == 0
    assert "all is well" in capsys.readouterr().out


def sql(*statements: str) -> Break:
    def harm(store: Store) -> None:
        with store.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    return harm


FAULTS: list[tuple[str, Break]] = [
    ("belong to no metric", sql("INSERT INTO points VALUES (999, 1, 0.5, 0)")),
    ("no known kind", sql("UPDATE points SET kind = 9 WHERE step = 3")),
    ("two things at once", sql("UPDATE points SET value = 2 WHERE kind = 1")),
    ("points, and its charts know of", sql("DELETE FROM points WHERE step = 4")),
    ("have lost a spike", sql("UPDATE points SET value = 1e9 WHERE step = 12")),
    ("was changed, put in or taken out", sql("UPDATE audit SET detail = 'nothing happened' WHERE number = 1")),
    ("it has none", sql("DELETE FROM meta WHERE key = 'epoch'")),
]


def test_each_fault_is_found_and_told_in_words(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(Store(database)) as store:
        for said, harm in FAULTS:
            harm(store)
            assert db(["check"]) == 1
            assert said in capsys.readouterr().out


def test_what_was_removed_gives_its_space_back(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(Store(database)) as store:
        with store.begin() as connection:
            deletion.mark(connection, "r1", "ada", NOW)
        clean(store, NOW)
    assert db(["vacuum"]) == 0
    assert "MB before" in capsys.readouterr().out
    assert db(["check"]) == 0


@pytest.mark.postgres
def test_sqlite_moves_to_postgresql_with_counts_and_digests(
    sqlite_url: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RLVITALS_DATABASE_URL", sqlite_url)
    with closing(Store(sqlite_url)) as store:
        populate(store)
    assert db(["move", postgres_url]) == 0
    told = capsys.readouterr().out
    assert "all of it is there" in told
    assert [line.split()[1] for line in told.splitlines() if line.startswith("points ")] == ["47"]
    assert db(["move", postgres_url]) == 1
    monkeypatch.setenv("RLVITALS_DATABASE_URL", postgres_url)
    assert db(["check"]) == 0


def test_a_service_with_a_folder_of_its_own_is_backed_up_by_naming_it_and_nothing_is_no_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RLVITALS_HOME", str(tmp_path / "home"))
    folder, other, file = tmp_path / "own", tmp_path / "other", tmp_path / "b"
    folder.mkdir()
    with closing(Store(f"sqlite:///{folder / 'rlvitals.db'}")) as store:
        store.migrate()
        populate(store)
    for command in (["check"], ["vacuum"]):
        assert db(command) == 1
        assert "--data" in capsys.readouterr().err
    assert backup([str(file)]) == 1
    assert "there is no store at" in capsys.readouterr().err
    assert not file.exists()
    assert backup([str(file), "--data", str(folder)]) == 0
    assert db(["check", "--data", str(folder)]) == 0
    assert restore([str(file), "--data", str(other)]) == 0
    assert db(["check", "--data", str(other)]) == 0
    assert not (tmp_path / "home" / "data" / "rlvitals.db").exists()
