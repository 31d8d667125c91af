"""The newest hook table of each writer; events by attempt and kind

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0002'
down_revision = '0001'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('hook_tables',
    sa.Column('attempt', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('writer', sa.String(length=64), nullable=False),
    sa.Column('at', sa.BigInteger(), nullable=False),
    sa.Column('step', sa.BigInteger(), nullable=True),
    sa.Column('payload', sa.JSON(), nullable=False),
    sa.ForeignKeyConstraint(['attempt'], ['attempts.number'], name=op.f('fk_hook_tables_attempt_attempts')),
    sa.PrimaryKeyConstraint('attempt', 'writer', name=op.f('pk_hook_tables'))
    )
    with op.batch_alter_table('events', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_events_attempt'))
        batch_op.create_index(batch_op.f('ix_events_attempt_kind'), ['attempt', 'kind'], unique=False)


def downgrade() -> None:
    with op.batch_alter_table('events', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_events_attempt_kind'))
        batch_op.create_index(batch_op.f('ix_events_attempt'), ['attempt'], unique=False)
    op.drop_table('hook_tables')
