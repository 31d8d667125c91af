"""What is kept of rounds in which something went wrong, so that the cause can be looked for."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import select

from rlvitals.contract import codec
from rlvitals_monitor.store.tables import attempts, audit, commands, transitions, writers
from tests.chaos.cluster import Cluster


def keep_evidence(cluster: Cluster) -> Path:
    """What the database says of attempts, commands and alerts, a line for each row; the ledgers are beside it."""
    kept = cluster.folder / "evidence.jsonl"
    with cluster.store.read() as connection, kept.open("wb") as lines:
        for table in (attempts, writers, commands, audit, transitions):
            for row in connection.execute(select(table)).mappings():
                lines.write(codec.dumps({"table": table.name, **row}) + b"\n")
    return kept
