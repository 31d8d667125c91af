"""The whole service with its dashboard on a free port of this machine, served from a thread."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from sqlalchemy import update

from rlvitals.contract.alert import Alert, AlertState, Severity, Transition
from rlvitals.contract.command import CommandKind
from rlvitals.contract.view import CommandView
from rlvitals_dashboard.serve import create_service
from rlvitals_monitor.control import mailbox
from rlvitals_monitor.control.policy import Policies
from rlvitals_monitor.notify.dispatch import deliver_due, route
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store import entries
from rlvitals_monitor.store.entries import Purpose
from rlvitals_monitor.store.numbers import to_micros
from rlvitals_monitor.store.tables import runs
from rlvitals_monitor.store.tokens import find_token
from tests.monitor.planted import an_alert, plant_run, plant_transition
from tests.served import Served


class House(Served):
    """With its pages; no worker judges meanwhile."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(create_service(settings, with_worker=False))

    @property
    def login(self) -> str:
        """A path that signs in as the owner, once."""
        now = now_utc()
        with self.store.begin() as conn:
            owner = find_token(conn, self.app.state.local_token)
            assert owner is not None
            secret = entries.make(conn, Purpose.TOKEN, owner.id, "a test", now, timedelta(minutes=5))
        return entries.PATH + secret

    def plant(self, run: str = "r1", **given: Any) -> None:
        """A run that is seen just now."""
        with self.store.begin() as conn:
            plant_run(conn, run, **given)
            now = to_micros(now_utc())
            conn.execute(update(runs).where(runs.c.id == run).values(created_at=now, seen_at=now, progress_at=now))

    def fire(self, run: str = "r1", name: str = "a1", **given: Any) -> Transition:
        """An alert of the run that began to fire a moment ago."""
        at = now_utc() - timedelta(seconds=20)
        alert: Alert = an_alert(id=name, run=run, since_time=at, severity=Severity.CRITICAL, **given)
        change = Transition(
            id=f"x-{name}",
            alert=alert,
            before=AlertState.PENDING,
            after=AlertState.FIRING,
            step=120,
            at=at,
            reason="held for 3 steps",
        )
        with self.store.begin() as conn:
            plant_transition(conn, change)
        return change

    def propose(self, change: Transition, policies: Policies | None = None) -> CommandView:
        with self.store.begin() as conn:
            made = mailbox.propose(conn, change, policies or Policies(), now_utc())
        assert isinstance(made, CommandView), made
        return made

    def ask(self, kind: CommandKind, argument: float | None = None, run: str = "r1") -> CommandView:
        with self.store.begin() as conn:
            return mailbox.request(conn, run, kind, argument, "ada", "because", now_utc())

    def deliver(self, name: str = "a2") -> None:
        """Another alert of r1 is routed to all channels, and each gets what is due."""
        change, now = self.fire("r1", name, rule="nonfinite"), now_utc()
        channels = self.app.state.channel_book.refresh(self.store, now)
        with self.store.begin() as conn:
            route(conn, change, channels, now)
        deliver_due(self.store, channels, now + timedelta(seconds=60))


def now_utc() -> datetime:
    return datetime.now(timezone.utc)
