"""The schema's history. All functions take an open connection and leave the commit to the caller."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

BASE, HEAD = "base", "head"


def upgrade(connection: Connection, revision: str = HEAD) -> None:
    command.upgrade(_config(connection), revision)


def downgrade(connection: Connection, revision: str = BASE) -> None:
    """Takes the schema back; what later revisions added is lost."""
    command.downgrade(_config(connection), revision)


def current(connection: Connection) -> str | None:
    """The revision that the database is at, or None when it is empty."""
    return MigrationContext.configure(connection).get_current_revision()


def head() -> str | None:
    """The newest revision that this code knows."""
    return ScriptDirectory.from_config(_config(None)).get_current_head()


def is_known(revision: str) -> bool:
    """False for one that a newer version of this code has made."""
    return any(one.revision == revision for one in ScriptDirectory.from_config(_config(None)).walk_revisions())


def write_revision(connection: Connection, revision: str, message: str) -> None:
    """Writes the next file of ``versions/`` from what METADATA has and the database (at head) has not."""
    command.revision(_config(connection), message, autogenerate=True, rev_id=revision)


def _config(connection: Connection | None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config
