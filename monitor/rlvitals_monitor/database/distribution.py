"""Spreads the large tables over the nodes of a Citus cluster."""

from __future__ import annotations

from rlvitals_monitor.database.backup import BackupError
from rlvitals_monitor.store import citus
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.partitions import count_parts


def distribute(store: Store) -> tuple[str, ...]:
    """The tables that are distributed now; in one transaction. Raises `BackupError`, with all as it was."""
    if store.is_sqlite:
        raise BackupError("Citus is an extension of PostgreSQL: see `rlvitals db move`")
    if not store.is_current():
        raise BackupError("the schema is not up to date: run `rlvitals db migrate`")
    with store.begin() as connection:
        if citus.version(connection) is None:
            raise BackupError(
                "this PostgreSQL has no Citus: have its operator add it to shared_preload_libraries and run "
                "CREATE EXTENSION citus in this database, or use `rlvitals db partition` on one machine"
            )
        for table in citus.DISTRIBUTED:
            if count_parts(connection, table):
                raise BackupError(f"{table.name} is in parts: run `rlvitals db partition --parts 0` first")
        citus.distribute(connection)
    return tuple(table.name for table in citus.DISTRIBUTED)
