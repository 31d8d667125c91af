"""Messages of several deliveries, silences, links, chosen policies, a chained audit

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

import hashlib
import json

import sqlalchemy as sa
from alembic import op

revision = '0003'
down_revision = '0002'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('channels',
    sa.Column('name', sa.String(length=48), nullable=False),
    sa.Column('body', sa.JSON(), nullable=False),
    sa.Column('changed_at', sa.BigInteger(), nullable=False),
    sa.Column('changed_by', sa.String(length=128), nullable=False),
    sa.PrimaryKeyConstraint('name', name=op.f('pk_channels'))
    )
    op.create_table('links',
    sa.Column('digest', sa.String(length=64), nullable=False),
    sa.Column('act', sa.String(length=32), nullable=False),
    sa.Column('subject', sa.String(length=128), nullable=False),
    sa.Column('content', sa.String(length=64), nullable=False),
    sa.Column('channel', sa.String(length=128), nullable=False),
    sa.Column('created_at', sa.BigInteger(), nullable=False),
    sa.Column('expires_at', sa.BigInteger(), nullable=False),
    sa.Column('used_at', sa.BigInteger(), nullable=True),
    sa.Column('used_by', sa.String(length=128), nullable=True),
    sa.PrimaryKeyConstraint('digest', name=op.f('pk_links'))
    )
    op.create_table('messages',
    sa.Column('id', sa.String(length=32), nullable=False),
    sa.Column('channel', sa.String(length=128), nullable=False),
    sa.Column('run', sa.String(length=128), nullable=True),
    sa.Column('state', sa.String(length=16), nullable=False),
    sa.Column('attempts', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.BigInteger(), nullable=False),
    sa.Column('next_at', sa.BigInteger(), nullable=False),
    sa.Column('claimed_by', sa.String(length=64), nullable=True),
    sa.Column('claimed_until', sa.BigInteger(), nullable=True),
    sa.Column('answer', sa.Text(), nullable=False),
    sa.Column('delivered_at', sa.BigInteger(), nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_messages'))
    )
    with op.batch_alter_table('messages', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_messages_channel_created_at'), ['channel', 'created_at'], unique=False)
        batch_op.create_index(batch_op.f('ix_messages_channel_state_next_at'), ['channel', 'state', 'next_at'], unique=False)

    op.create_table('policies',
    sa.Column('scope', sa.String(length=16), nullable=False),
    sa.Column('name', sa.String(length=128), nullable=False),
    sa.Column('policy', sa.String(length=16), nullable=False),
    sa.Column('changed_at', sa.BigInteger(), nullable=False),
    sa.Column('changed_by', sa.String(length=128), nullable=False),
    sa.PrimaryKeyConstraint('scope', 'name', name=op.f('pk_policies'))
    )
    op.create_table('silences',
    sa.Column('id', sa.String(length=32), nullable=False),
    sa.Column('purpose', sa.String(length=16), nullable=False),
    sa.Column('matchers', sa.JSON(), nullable=False),
    sa.Column('starts_at', sa.BigInteger(), nullable=False),
    sa.Column('ends_at', sa.BigInteger(), nullable=False),
    sa.Column('created_at', sa.BigInteger(), nullable=False),
    sa.Column('who', sa.String(length=128), nullable=False),
    sa.Column('why', sa.Text(), nullable=False),
    sa.Column('ended_by', sa.String(length=128), nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_silences'))
    )
    with op.batch_alter_table('silences', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_silences_ends_at'), ['ends_at'], unique=False)

    op.create_table('steering',
    sa.Column('scope', sa.String(length=16), nullable=False),
    sa.Column('name', sa.String(length=128), nullable=False),
    sa.Column('kl_policy', sa.String(length=32), nullable=False),
    sa.Column('settings', sa.JSON(), nullable=False),
    sa.Column('changed_at', sa.BigInteger(), nullable=False),
    sa.Column('changed_by', sa.String(length=128), nullable=False),
    sa.PrimaryKeyConstraint('scope', 'name', name=op.f('pk_steering'))
    )
    op.create_table('sends',
    sa.Column('message', sa.String(length=32), nullable=False),
    sa.Column('number', sa.Integer(), autoincrement=False, nullable=False),
    sa.Column('at', sa.BigInteger(), nullable=False),
    sa.Column('verdict', sa.String(length=16), nullable=False),
    sa.Column('answer', sa.Text(), nullable=False),
    sa.ForeignKeyConstraint(['message'], ['messages.id'], name=op.f('fk_sends_message_messages')),
    sa.PrimaryKeyConstraint('message', 'number', name=op.f('pk_sends'))
    )
    with op.batch_alter_table('sends', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_sends_at'), ['at'], unique=False)

    op.create_table('steering_memory',
    sa.Column('attempt', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('kl_policy', sa.String(length=32), nullable=False),
    sa.Column('step', sa.BigInteger(), nullable=False),
    sa.Column('memory', sa.JSON(), nullable=False),
    sa.Column('decision', sa.JSON(), nullable=False),
    sa.ForeignKeyConstraint(['attempt'], ['attempts.number'], name=op.f('fk_steering_memory_attempt_attempts')),
    sa.PrimaryKeyConstraint('attempt', name=op.f('pk_steering_memory'))
    )
    op.create_table('voices',
    sa.Column('command', sa.String(length=32), nullable=False),
    sa.Column('who', sa.String(length=128), nullable=False),
    sa.Column('named', sa.Boolean(), nullable=False),
    sa.Column('at', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['command'], ['commands.id'], name=op.f('fk_voices_command_commands')),
    sa.PrimaryKeyConstraint('command', 'who', name=op.f('pk_voices'))
    )
    # Not in batches: SQLite cannot make a table anew that others refer to.
    op.add_column('audit', sa.Column('digest', sa.String(length=64), nullable=False, server_default=''))
    _chain()
    op.add_column('runs', sa.Column('knobs', sa.JSON(), nullable=False, server_default='{}'))

    op.add_column('deliveries', sa.Column('purpose', sa.String(length=16), nullable=True))
    op.add_column('deliveries', sa.Column('round', sa.Integer(), nullable=True))
    op.execute("UPDATE deliveries SET purpose = 'news', round = 0")
    with op.batch_alter_table('deliveries', schema=None) as batch_op:
        batch_op.alter_column('purpose', existing_type=sa.String(length=16), nullable=False)
        batch_op.alter_column('round', existing_type=sa.Integer(), nullable=False)
        batch_op.add_column(sa.Column('message', sa.String(length=32), nullable=True))
        batch_op.drop_column('claimed_by')
        batch_op.drop_column('claimed_until')
        batch_op.drop_constraint(batch_op.f('uq_deliveries_transition_channel'), type_='unique')
        batch_op.drop_index(batch_op.f('ix_deliveries_state_next_at'))
        batch_op.create_index(batch_op.f('ix_deliveries_channel_state_next_at'), ['channel', 'state', 'next_at'], unique=False)
        batch_op.create_index(batch_op.f('ix_deliveries_message'), ['message'], unique=False)
        batch_op.create_unique_constraint(batch_op.f('uq_deliveries_transition_channel_purpose_round'), ['transition', 'channel', 'purpose', 'round'])
        batch_op.create_foreign_key(batch_op.f('fk_deliveries_message_messages'), 'messages', ['message'], ['id'])


def _chain() -> None:
    """Gives the lines that are there the digests that they would have had."""
    audit = sa.table('audit', *(sa.column(name) for name in ('number', 'at', 'run', 'command', 'who', 'what', 'detail', 'digest')))
    connection = op.get_bind()
    last = ''
    for row in connection.execute(sa.select(audit).order_by(audit.c.number)).all():
        line = [row.at, row.run, row.command, row.who, row.what, row.detail]
        said = last + '\n' + json.dumps(line, ensure_ascii=True, separators=(',', ':'))
        last = hashlib.sha256(said.encode()).hexdigest()
        connection.execute(sa.update(audit).where(audit.c.number == row.number).values(digest=last))


def downgrade() -> None:
    op.drop_column('runs', 'knobs')

    op.execute("DELETE FROM deliveries WHERE purpose <> 'news' OR round <> 0 OR state = 'dropped'")
    op.execute("UPDATE deliveries SET state = 'waiting' WHERE state = 'silenced'")
    with op.batch_alter_table('deliveries', schema=None) as batch_op:
        batch_op.drop_constraint(batch_op.f('fk_deliveries_message_messages'), type_='foreignkey')
        batch_op.drop_constraint(batch_op.f('uq_deliveries_transition_channel_purpose_round'), type_='unique')
        batch_op.drop_index(batch_op.f('ix_deliveries_message'))
        batch_op.drop_index(batch_op.f('ix_deliveries_channel_state_next_at'))
        batch_op.create_index(batch_op.f('ix_deliveries_state_next_at'), ['state', 'next_at'], unique=False)
        batch_op.add_column(sa.Column('claimed_by', sa.String(length=64), nullable=True))
        batch_op.add_column(sa.Column('claimed_until', sa.BigInteger(), nullable=True))
        batch_op.create_unique_constraint(batch_op.f('uq_deliveries_transition_channel'), ['transition', 'channel'])
        batch_op.drop_column('message')
        batch_op.drop_column('round')
        batch_op.drop_column('purpose')

    op.drop_column('audit', 'digest')

    op.drop_table('voices')
    op.drop_table('steering_memory')
    with op.batch_alter_table('sends', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_sends_at'))

    op.drop_table('sends')
    op.drop_table('steering')
    with op.batch_alter_table('silences', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_silences_ends_at'))

    op.drop_table('silences')
    op.drop_table('policies')
    with op.batch_alter_table('messages', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_messages_channel_state_next_at'))
        batch_op.drop_index(batch_op.f('ix_messages_channel_created_at'))

    op.drop_table('messages')
    op.drop_table('links')
    op.drop_table('channels')
