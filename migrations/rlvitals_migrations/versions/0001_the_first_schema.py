"""The first schema"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '0001'
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('audit',
    sa.Column('number', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
    sa.Column('at', sa.BigInteger(), nullable=False),
    sa.Column('run', sa.String(length=128), nullable=False),
    sa.Column('command', sa.String(length=32), nullable=False),
    sa.Column('who', sa.String(length=128), nullable=False),
    sa.Column('what', sa.String(length=64), nullable=False),
    sa.Column('detail', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('number', name=op.f('pk_audit'))
    )
    with op.batch_alter_table('audit', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_audit_run'), ['run'], unique=False)

    op.create_table('extremes',
    sa.Column('series', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('step', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('value', sa.Float(precision=53), nullable=False),
    sa.Column('kind', sa.SmallInteger(), nullable=False),
    sa.Column('token_id', sa.BigInteger(), nullable=True),
    sa.Column('position', sa.BigInteger(), nullable=True),
    sa.Column('sample', sa.BigInteger(), nullable=True),
    sa.Column('masked', sa.Boolean(), nullable=True),
    sa.Column('token', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('series', 'step', name=op.f('pk_extremes')),
    sqlite_with_rowid=False
    )
    op.create_table('histograms',
    sa.Column('series', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('step', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('edges', sa.JSON(), nullable=False),
    sa.Column('counts', sa.JSON(), nullable=False),
    sa.PrimaryKeyConstraint('series', 'step', name=op.f('pk_histograms'))
    )
    op.create_table('meta',
    sa.Column('key', sa.String(length=64), nullable=False),
    sa.Column('value', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('key', name=op.f('pk_meta'))
    )
    op.create_table('points',
    sa.Column('series', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('step', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('value', sa.Float(precision=53), nullable=False),
    sa.Column('kind', sa.SmallInteger(), nullable=False),
    sa.PrimaryKeyConstraint('series', 'step', name=op.f('pk_points')),
    sqlite_with_rowid=False
    )
    op.create_table('rollups',
    sa.Column('series', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('width', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('bucket', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('low', sa.Float(precision=53), nullable=True),
    sa.Column('high', sa.Float(precision=53), nullable=True),
    sa.Column('total', sa.Float(precision=53), nullable=False),
    sa.Column('count', sa.BigInteger(), nullable=False),
    sa.Column('last', sa.Float(precision=53), nullable=True),
    sa.Column('last_step', sa.BigInteger(), nullable=False),
    sa.Column('nan', sa.BigInteger(), nullable=False),
    sa.Column('pos_inf', sa.BigInteger(), nullable=False),
    sa.Column('neg_inf', sa.BigInteger(), nullable=False),
    sa.Column('nan_step', sa.BigInteger(), nullable=True),
    sa.Column('pos_inf_step', sa.BigInteger(), nullable=True),
    sa.Column('neg_inf_step', sa.BigInteger(), nullable=True),
    sa.PrimaryKeyConstraint('series', 'width', 'bucket', name=op.f('pk_rollups')),
    sqlite_with_rowid=False
    )
    op.create_table('runs',
    sa.Column('id', sa.String(length=128), nullable=False),
    sa.Column('project', sa.String(length=128), nullable=False),
    sa.Column('name', sa.String(length=256), nullable=False),
    sa.Column('framework', sa.String(length=64), nullable=False),
    sa.Column('model', sa.String(length=256), nullable=False),
    sa.Column('config', sa.JSON(), nullable=False),
    sa.Column('tags', sa.JSON(), nullable=False),
    sa.Column('capabilities', sa.JSON(), nullable=False),
    sa.Column('created_at', sa.BigInteger(), nullable=False),
    sa.Column('seen_at', sa.BigInteger(), nullable=False),
    sa.Column('progress_at', sa.BigInteger(), nullable=True),
    sa.Column('last_step', sa.BigInteger(), nullable=True),
    sa.Column('phase', sa.String(length=16), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_runs'))
    )
    with op.batch_alter_table('runs', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_runs_project'), ['project'], unique=False)

    op.create_table('tokens',
    sa.Column('id', sa.String(length=32), nullable=False),
    sa.Column('name', sa.String(length=128), nullable=False),
    sa.Column('digest', sa.String(length=64), nullable=False),
    sa.Column('scopes', sa.String(length=128), nullable=False),
    sa.Column('created_at', sa.BigInteger(), nullable=False),
    sa.Column('revoked_at', sa.BigInteger(), nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_tokens')),
    sa.UniqueConstraint('digest', name=op.f('uq_tokens_digest'))
    )
    op.create_table('attempts',
    sa.Column('number', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
    sa.Column('run', sa.String(length=128), nullable=False),
    sa.Column('id', sa.String(length=64), nullable=False),
    sa.Column('ordinal', sa.Integer(), nullable=False),
    sa.Column('started_at', sa.BigInteger(), nullable=False),
    sa.Column('first_step', sa.BigInteger(), nullable=True),
    sa.Column('last_step', sa.BigInteger(), nullable=True),
    sa.ForeignKeyConstraint(['run'], ['runs.id'], name=op.f('fk_attempts_run_runs')),
    sa.PrimaryKeyConstraint('number', name=op.f('pk_attempts')),
    sa.UniqueConstraint('run', 'id', name=op.f('uq_attempts_run_id'))
    )
    op.create_table('commands',
    sa.Column('id', sa.String(length=32), nullable=False),
    sa.Column('run', sa.String(length=128), nullable=False),
    sa.Column('state', sa.String(length=16), nullable=False),
    sa.Column('kind', sa.String(length=32), nullable=False),
    sa.Column('created_at', sa.BigInteger(), nullable=False),
    sa.Column('expires_at', sa.BigInteger(), nullable=False),
    sa.Column('alert', sa.String(length=32), nullable=True),
    sa.Column('body', sa.JSON(), nullable=False),
    sa.ForeignKeyConstraint(['run'], ['runs.id'], name=op.f('fk_commands_run_runs')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_commands'))
    )
    with op.batch_alter_table('commands', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_commands_run_state'), ['run', 'state'], unique=False)

    op.create_table('alerts',
    sa.Column('id', sa.String(length=32), nullable=False),
    sa.Column('run', sa.String(length=128), nullable=False),
    sa.Column('attempt', sa.BigInteger(), nullable=False),
    sa.Column('rule', sa.String(length=128), nullable=False),
    sa.Column('severity', sa.String(length=16), nullable=False),
    sa.Column('state', sa.String(length=16), nullable=False),
    sa.Column('since_step', sa.BigInteger(), nullable=False),
    sa.Column('since_time', sa.BigInteger(), nullable=False),
    sa.Column('body', sa.JSON(), nullable=False),
    sa.ForeignKeyConstraint(['attempt'], ['attempts.number'], name=op.f('fk_alerts_attempt_attempts')),
    sa.ForeignKeyConstraint(['run'], ['runs.id'], name=op.f('fk_alerts_run_runs')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_alerts'))
    )
    with op.batch_alter_table('alerts', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_alerts_run_state'), ['run', 'state'], unique=False)

    op.create_table('evaluations',
    sa.Column('attempt', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('step', sa.BigInteger(), nullable=False),
    sa.Column('memory', sa.JSON(), nullable=False),
    sa.ForeignKeyConstraint(['attempt'], ['attempts.number'], name=op.f('fk_evaluations_attempt_attempts')),
    sa.PrimaryKeyConstraint('attempt', name=op.f('pk_evaluations'))
    )
    op.create_table('events',
    sa.Column('number', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
    sa.Column('attempt', sa.BigInteger(), nullable=False),
    sa.Column('time', sa.BigInteger(), nullable=False),
    sa.Column('step', sa.BigInteger(), nullable=True),
    sa.Column('kind', sa.String(length=32), nullable=False),
    sa.Column('payload', sa.JSON(), nullable=False),
    sa.ForeignKeyConstraint(['attempt'], ['attempts.number'], name=op.f('fk_events_attempt_attempts')),
    sa.PrimaryKeyConstraint('number', name=op.f('pk_events'))
    )
    with op.batch_alter_table('events', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_events_attempt'), ['attempt'], unique=False)

    op.create_table('series',
    sa.Column('number', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
    sa.Column('attempt', sa.BigInteger(), nullable=False),
    sa.Column('metric', sa.String(length=200), nullable=False),
    sa.Column('missing_reason', sa.Text(), nullable=False),
    sa.Column('missing_step', sa.BigInteger(), nullable=True),
    sa.ForeignKeyConstraint(['attempt'], ['attempts.number'], name=op.f('fk_series_attempt_attempts')),
    sa.PrimaryKeyConstraint('number', name=op.f('pk_series')),
    sa.UniqueConstraint('attempt', 'metric', name=op.f('uq_series_attempt_metric'))
    )
    op.create_table('steps',
    sa.Column('attempt', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('step', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('time', sa.BigInteger(), nullable=False),
    sa.Column('received', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['attempt'], ['attempts.number'], name=op.f('fk_steps_attempt_attempts')),
    sa.PrimaryKeyConstraint('attempt', 'step', name=op.f('pk_steps')),
    sqlite_with_rowid=False
    )
    op.create_table('texts',
    sa.Column('number', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
    sa.Column('attempt', sa.BigInteger(), nullable=False),
    sa.Column('step', sa.BigInteger(), nullable=False),
    sa.Column('sample', sa.BigInteger(), nullable=False),
    sa.Column('prompt', sa.Text(), nullable=False),
    sa.Column('completion', sa.Text(), nullable=False),
    sa.Column('token_ids', sa.LargeBinary(), nullable=False),
    sa.Column('reward', sa.Float(precision=53), nullable=True),
    sa.Column('reward_kind', sa.SmallInteger(), nullable=True),
    sa.Column('truncated', sa.Boolean(), nullable=True),
    sa.Column('invalid_utf8', sa.Integer(), nullable=True),
    sa.Column('why', sa.String(length=32), nullable=False),
    sa.ForeignKeyConstraint(['attempt'], ['attempts.number'], name=op.f('fk_texts_attempt_attempts')),
    sa.PrimaryKeyConstraint('number', name=op.f('pk_texts'))
    )
    with op.batch_alter_table('texts', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_texts_attempt_step'), ['attempt', 'step'], unique=False)

    op.create_table('writers',
    sa.Column('attempt', sa.BigInteger(), nullable=False),
    sa.Column('name', sa.String(length=64), nullable=False),
    sa.Column('stored_through', sa.BigInteger(), nullable=False),
    sa.Column('last_step', sa.BigInteger(), nullable=True),
    sa.Column('progress_at', sa.BigInteger(), nullable=True),
    sa.Column('seen_at', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['attempt'], ['attempts.number'], name=op.f('fk_writers_attempt_attempts')),
    sa.PrimaryKeyConstraint('attempt', 'name', name=op.f('pk_writers'))
    )
    op.create_table('transitions',
    sa.Column('id', sa.String(length=32), nullable=False),
    sa.Column('alert', sa.String(length=32), nullable=False),
    sa.Column('run', sa.String(length=128), nullable=False),
    sa.Column('before', sa.String(length=16), nullable=False),
    sa.Column('after', sa.String(length=16), nullable=False),
    sa.Column('step', sa.BigInteger(), nullable=False),
    sa.Column('at', sa.BigInteger(), nullable=False),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('body', sa.JSON(), nullable=False),
    sa.Column('routed', sa.Boolean(), nullable=False),
    sa.ForeignKeyConstraint(['alert'], ['alerts.id'], name=op.f('fk_transitions_alert_alerts')),
    sa.ForeignKeyConstraint(['run'], ['runs.id'], name=op.f('fk_transitions_run_runs')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_transitions'))
    )
    with op.batch_alter_table('transitions', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_transitions_alert'), ['alert'], unique=False)
        batch_op.create_index(batch_op.f('ix_transitions_routed'), ['routed'], unique=False)
        batch_op.create_index(batch_op.f('ix_transitions_run'), ['run'], unique=False)

    op.create_table('deliveries',
    sa.Column('id', sa.String(length=32), nullable=False),
    sa.Column('transition', sa.String(length=32), nullable=False),
    sa.Column('channel', sa.String(length=128), nullable=False),
    sa.Column('state', sa.String(length=16), nullable=False),
    sa.Column('attempts', sa.Integer(), nullable=False),
    sa.Column('next_at', sa.BigInteger(), nullable=False),
    sa.Column('claimed_by', sa.String(length=64), nullable=True),
    sa.Column('claimed_until', sa.BigInteger(), nullable=True),
    sa.Column('answer', sa.Text(), nullable=False),
    sa.Column('delivered_at', sa.BigInteger(), nullable=True),
    sa.ForeignKeyConstraint(['transition'], ['transitions.id'], name=op.f('fk_deliveries_transition_transitions')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_deliveries')),
    sa.UniqueConstraint('transition', 'channel', name=op.f('uq_deliveries_transition_channel'))
    )
    with op.batch_alter_table('deliveries', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_deliveries_state_next_at'), ['state', 'next_at'], unique=False)



def downgrade() -> None:
    with op.batch_alter_table('deliveries', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_deliveries_state_next_at'))

    op.drop_table('deliveries')
    with op.batch_alter_table('transitions', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_transitions_run'))
        batch_op.drop_index(batch_op.f('ix_transitions_routed'))
        batch_op.drop_index(batch_op.f('ix_transitions_alert'))

    op.drop_table('transitions')
    op.drop_table('writers')
    with op.batch_alter_table('texts', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_texts_attempt_step'))

    op.drop_table('texts')
    op.drop_table('steps')
    op.drop_table('series')
    with op.batch_alter_table('events', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_events_attempt'))

    op.drop_table('events')
    op.drop_table('evaluations')
    with op.batch_alter_table('alerts', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_alerts_run_state'))

    op.drop_table('alerts')
    with op.batch_alter_table('commands', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_commands_run_state'))

    op.drop_table('commands')
    op.drop_table('attempts')
    op.drop_table('tokens')
    with op.batch_alter_table('runs', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_runs_project'))

    op.drop_table('runs')
    op.drop_table('rollups')
    op.drop_table('points')
    op.drop_table('meta')
    op.drop_table('histograms')
    op.drop_table('extremes')
    with op.batch_alter_table('audit', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_audit_run'))

    op.drop_table('audit')
