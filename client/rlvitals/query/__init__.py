"""Reads a service: runs, alerts, completions as the contract's types, numbers as Arrow, pandas or polars frames.

    from rlvitals.query import Query

    with Query() as service:
        for run in service.runs(project="tiny"):
            frame = service.pandas(run.id, ["kl.mean", "reward.mean"])

Comes with ``pip install 'rlvitals[query]'``.
"""

from __future__ import annotations

from rlvitals.query.client import Query
from rlvitals.query.errors import Deleted, NotThere, QueryError, Refused, Unavailable, Unreadable

__all__ = ["Deleted", "NotThere", "Query", "QueryError", "Refused", "Unavailable", "Unreadable"]
