"""A run, an alert of it and its changes, planted straight into the tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone

from sqlalchemy import Connection, insert

from rlvitals.contract import codec
from rlvitals.contract.alert import Alert, AlertState, Proposal, Severity, Transition
from rlvitals.contract.command import Bounds, CommandKind, CommandState
from rlvitals.contract.view import CommandView
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.numbers import to_micros
from rlvitals_monitor.store.tables import alerts, attempts, runs, transitions

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=timezone.utc)
ABLE = {kind.value: "" for kind in CommandKind}


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def an_alert(**given: object) -> Alert:
    fields: dict[str, object] = {
        "id": "a1",
        "run": "r1",
        "attempt": "t1",
        "rule": "kl_pull_dominates",
        "severity": Severity.WARNING,
        "state": AlertState.FIRING,
        "since_step": 117,
        "since_time": NOW,
        "metric": "kl.pull_ratio",
        "value": 3.5,
        "threshold": 1.0,
        "summary": "The KL pull is stronger than the policy pull.",
        "advice": "Lower the KL coefficient.",
        "proposal": Proposal(kind=CommandKind.SET_KL_COEF, argument=0.05),
    }
    return Alert(**{**fields, **given})  # type: ignore[arg-type]


def a_command(**given: object) -> CommandView:
    """Proposed for `an_alert`'s run, and nobody has decided."""
    fields: dict[str, object] = {
        "id": "c1",
        "run": "r1",
        "kind": CommandKind.SET_KL_COEF,
        "state": CommandState.PROPOSED,
        "created_at": NOW,
        "expires_at": later(600),
        "argument": 0.05,
        "bounds": Bounds(low=0.01, high=0.2),
    }
    return CommandView(**{**fields, **given})  # type: ignore[arg-type]


def a_transition(alert: Alert | None = None, **given: object) -> Transition:
    fields: dict[str, object] = {
        "id": "x1",
        "alert": alert or an_alert(),
        "before": AlertState.PENDING,
        "after": AlertState.FIRING,
        "step": 120,
        "at": NOW,
        "reason": "held for 3 steps",
    }
    return Transition(**{**fields, **given})  # type: ignore[arg-type]


def resolved(transition: Transition, **given: object) -> Transition:
    alert = replace(transition.alert, state=AlertState.RESOLVED)
    changes = {"id": "x2", "before": AlertState.FIRING, "after": AlertState.RESOLVED, "step": 150, **given}
    return replace(transition, alert=alert, **changes)  # type: ignore[arg-type]


def plant_run(
    conn: Connection,
    run: str = "r1",
    *,
    name: str = "tiny run",
    config: Mapping[str, object] | None = None,
    capabilities: Mapping[str, str] | None = None,
    phase: str = "update",
    last_step: int | None = 120,
) -> None:
    conn.execute(
        insert(runs).values(
            id=run,
            project="demo",
            name=name,
            framework="trl",
            model="tiny",
            config={"kl_coef": 0.1} if config is None else config,
            tags=[],
            capabilities=ABLE if capabilities is None else capabilities,
            created_at=to_micros(NOW),
            seen_at=to_micros(NOW),
            last_step=last_step,
            phase=phase,
        )
    )
    conn.execute(insert(attempts).values(run=run, id="t1", ordinal=1, started_at=to_micros(NOW)))


def plant_transition(conn: Connection, transition: Transition) -> None:
    """The transition, and its alert unless that is there."""
    alert = transition.alert
    known = conn.execute(alerts.select().where(alerts.c.id == alert.id)).first()
    if known is None:
        number = conn.scalar(
            attempts.select().where(attempts.c.run == alert.run).with_only_columns(attempts.c.number)
        )
        conn.execute(
            insert(alerts).values(
                id=alert.id,
                run=alert.run,
                attempt=number,
                rule=alert.rule,
                severity=alert.severity.value,
                state=alert.state.value,
                since_step=alert.since_step,
                since_time=to_micros(alert.since_time),
                body=codec.encode(alert),
            )
        )
    conn.execute(
        insert(transitions).values(
            id=transition.id,
            alert=alert.id,
            run=alert.run,
            before=transition.before.value,
            after=transition.after.value,
            step=transition.step,
            at=to_micros(transition.at),
            reason=transition.reason,
            body=codec.encode(alert),
            routed=False,
        )
    )


def plant(store: Store, *planted: Transition) -> None:
    """A run with these transitions."""
    with store.begin() as conn:
        plant_run(conn)
        for transition in planted:
            plant_transition(conn, transition)
