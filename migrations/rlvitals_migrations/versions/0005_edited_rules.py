"""Rules that were edited while the service runs

Revision ID: 0005
Revises: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "edited_rules",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("why", sa.String(length=500), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.Column("changed_by", sa.String(length=128), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_edited_rules")),
    )


def downgrade() -> None:
    op.drop_table("edited_rules")
