"""The large tables over the nodes of a Citus cluster, by the column that every question about them names."""

from __future__ import annotations

from sqlalchemy import Connection, Table, text

from rlvitals_monitor.store.partitions import LARGE, owner_of

DISTRIBUTED: tuple[Table, ...] = tuple(table for table in LARGE if owner_of(table) == "series")
"""Their keys begin with the series, and nothing refers to them or from them, as Citus wants it; the other tables
stay on the coordinator."""


def version(connection: Connection) -> str | None:
    """Of the extension in this database; None where it is not installed."""
    found = connection.scalar(text("SELECT extversion FROM pg_extension WHERE extname = 'citus'"))
    return None if found is None else str(found)


def distribute(connection: Connection) -> None:
    """Rows of one series come to lie on one node, whatever their table."""
    query = text("SELECT create_distributed_table(CAST(:table AS regclass), :column, colocate_with => :like)")
    for table in DISTRIBUTED:
        like = "none" if table is DISTRIBUTED[0] else DISTRIBUTED[0].name
        connection.execute(query, {"table": table.name, "column": owner_of(table), "like": like})
