"""How far everybody is: trainers by their ledgers, runs and rules by the database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from rlvitals_monitor.store.tables import attempts, evaluations
from tests.chaos.cluster import Cluster
from tests.chaos.trainer import whole_lines

TAIL_BYTES = 2048


def last_steps(cluster: Cluster) -> dict[str, int]:
    """How far each living trainer is, by its ledger's name."""
    found = {}
    for trainer in cluster.trainers:
        told = read_ledger(trainer.ledger, tail_bytes=TAIL_BYTES)
        found[trainer.ledger.stem] = max((line["step"] for line in told), default=0)
    return found


def stored_steps(cluster: Cluster) -> dict[str, int]:
    """How far each run is in the database."""
    with cluster.store.read() as connection:
        rows = connection.execute(select(attempts.c.run, func.max(attempts.c.last_step)).group_by(attempts.c.run))
        return {run: last or 0 for run, last in rows}


def unjudged(cluster: Cluster) -> int:
    """Attempts with steps that no rule has seen."""
    with cluster.store.read() as connection:
        behind = (
            select(func.count())
            .select_from(attempts.outerjoin(evaluations, evaluations.c.attempt == attempts.c.number))
            .where(attempts.c.last_step > func.coalesce(evaluations.c.step, -1))
        )
        return connection.scalar(behind) or 0


def read_ledger(ledger: Path, *, tail_bytes: int = 0) -> list[dict[str, Any]]:
    return [json.loads(line) for line in whole_lines(ledger, tail_bytes)] if ledger.exists() else []
