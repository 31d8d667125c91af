"""People and their sessions, shared views, what is kept how long, and what people say of a run

Revision ID: 0006
Revises: 0005
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

def _added() -> dict[str, list[sa.Column[Any]]]:
    return {
        "tokens": [
            sa.Column("expires_at", sa.BigInteger()),
            sa.Column("last_used_at", sa.BigInteger()),
            sa.Column("created_by", sa.String(length=128), nullable=False, server_default=""),
        ],
        "runs": [
            sa.Column("owner", sa.String(length=128), nullable=False, server_default=""),
            sa.Column("labels", sa.JSON(), nullable=False, server_default="[]"),
            sa.Column("notes", sa.Text(), nullable=False, server_default=""),
            sa.Column("archived_at", sa.BigInteger()),
            sa.Column("deleted_at", sa.BigInteger()),
            sa.Column("deleted_by", sa.String(length=128), nullable=False, server_default=""),
        ],
    }


def upgrade() -> None:
    op.create_table(
        "users",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("password", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.String(length=128), nullable=False),
        sa.Column("disabled_at", sa.BigInteger()),
        sa.Column("seen_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("name", name=op.f("uq_users_name")),
    )
    op.create_table(
        "entries",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("purpose", sa.String(length=16), nullable=False),
        sa.Column("subject", sa.String(length=128), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.String(length=128), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_entries")),
    )
    op.create_table(
        "sessions",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("subject", sa.String(length=128), nullable=False),
        sa.Column("agent", sa.String(length=256), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_sessions")),
        sa.UniqueConstraint("id", name=op.f("uq_sessions_id")),
    )
    op.create_index(op.f("ix_sessions_subject"), "sessions", ["subject"])
    op.create_table(
        "refused_entries",
        sa.Column(
            "number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("source", sa.String(length=128), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_refused_entries")),
    )
    op.create_index(op.f("ix_refused_entries_source_at"), "refused_entries", ["source", "at"])
    op.create_table(
        "shares",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("run", sa.String(length=128), nullable=False),
        sa.Column("view", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.String(length=128), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger()),
        sa.Column("last_used_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_shares_run_runs")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_shares")),
        sa.UniqueConstraint("digest", name=op.f("uq_shares_digest")),
    )
    op.create_table(
        "retention",
        sa.Column("project", sa.String(length=128), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.Column("changed_by", sa.String(length=128), nullable=False),
        sa.PrimaryKeyConstraint("project", name=op.f("pk_retention")),
    )
    # Not in batches: SQLite cannot make a table anew that others refer to.
    for table, columns in _added().items():
        for column in columns:
            op.add_column(table, column)


def downgrade() -> None:
    for table, columns in _added().items():
        for column in reversed(columns):
            op.drop_column(table, column.name)
    op.drop_table("retention")
    op.drop_table("shares")
    op.drop_table("refused_entries")
    op.drop_table("sessions")
    op.drop_table("entries")
    op.drop_table("users")
