"""What the query API answers to a page of one run: all that it shows, as it is at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from rlvitals.contract.alert import Alert
from rlvitals.contract.hooks import HooksView
from rlvitals.contract.incident import IncidentView
from rlvitals.contract.view import CommandView, EventView, MetricView, RuleView, RunView, TextView


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOverview:
    """``alerts``, ``commands``, ``texts`` and ``checkpoints`` come newest first. ``alerts`` are of all attempts,
    ``rules`` of the newest one. ``metrics`` is None where it was not asked for."""

    run: RunView
    metrics: tuple[MetricView, ...] | None
    alerts: tuple[Alert, ...]
    commands: tuple[CommandView, ...]
    rules: tuple[RuleView, ...]
    incidents: tuple[IncidentView, ...]
    texts: tuple[TextView, ...]
    hooks: HooksView
    checkpoints: tuple[EventView, ...]
