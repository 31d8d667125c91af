"""Run by alembic for each command; the connection comes from `rlvitals_migrations`."""

from __future__ import annotations

from alembic import context

from rlvitals_monitor.store.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,
    compare_type=True,
)
with context.begin_transaction():
    context.run_migrations()
