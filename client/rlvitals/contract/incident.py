"""What the query API answers about incidents: alerts under the cause that explains them, and their whole story."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from rlvitals.contract.alert import Alert, Severity, Transition
from rlvitals.contract.view import CommandView, EventView, RunView, TextView


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentView:
    """Alerts of one attempt under the cause that explains them, in the order of onset.

    ``cause`` names it within its attempt; for an alert that no known cause explains it is ``alert:`` and the rule.
    ``change`` leads from a trainer to what to set there, ``isnt`` says what it is not. ``since_step`` is where the
    first condition began to hold, ``onset_step`` where the first alert fired. ``healthy_checkpoint`` is the last
    one saved before ``since_step``, None if none was. ``gpu_hours`` were spent since the onset, None if nobody
    said how many devices there are. ``unseen`` of its alerts fire and nobody looks after them.
    """

    cause: str
    severity: Severity
    headline: str
    confidence: str
    advice: str
    onset_step: int
    onset_at: datetime | None
    is_open: bool
    alerts: tuple[str, ...]
    evidence: tuple[str, ...]
    change: Mapping[str, str] = field(default_factory=dict)
    isnt: str = ""
    healthy_checkpoint: int | None = None
    healthy_checkpoint_path: str = ""
    gpu_hours: float | None = None
    run: str = ""
    run_name: str = ""
    project: str = ""
    attempt: str = ""
    since_step: int | None = None
    alert_ids: tuple[str, ...] = ()
    unseen: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """The steps that a swim-lane shows: the order of onset, from shortly before the first to after the last."""

    first: int
    last: int

    def share(self, step: int) -> float:
        """Where a step is, from 0 to 1; what is beyond the axis is at its end."""
        return min(max((step - self.first) / max(self.last - self.first, 1), 0.0), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One rule's alerts, each from its onset to its end."""

    rule: str
    alerts: tuple[Alert, ...]

    @property
    def severity(self) -> Severity:
        return max((alert.severity for alert in self.alerts), key=lambda severity: severity.rank)

    @property
    def onset(self) -> int:
        return min(onset_of(alert) for alert in self.alerts)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentStory:
    """All that is known of one incident. ``alerts`` are in the order of onset, ``transitions`` and ``commands``
    oldest first, ``texts`` the guiltiest first; ``checkpoints`` are those between the steps of ``axis``."""

    incident: IncidentView
    run: RunView
    axis: Axis
    alerts: tuple[Alert, ...]
    transitions: tuple[Transition, ...] = ()
    commands: tuple[CommandView, ...] = ()
    checkpoints: tuple[EventView, ...] = ()
    texts: tuple[TextView, ...] = ()
    named: tuple[int, ...] = ()
    """``number`` of those among ``texts`` that the evidence names."""


def onset_of(alert: Alert) -> int:
    """The step at which it fired; where it began to hold, if it never did."""
    return alert.since_step if alert.fired_step is None else alert.fired_step


def lanes(alerts: Iterable[Alert]) -> tuple[Lane, ...]:
    """One for each rule, in the order of onset; the stronger first where two begin together."""
    by_rule: dict[str, list[Alert]] = {}
    for alert in sorted(alerts, key=lambda a: (onset_of(a), a.since_step, a.id)):
        by_rule.setdefault(alert.rule, []).append(alert)
    found = (Lane(rule=rule, alerts=tuple(some)) for rule, some in by_rule.items())
    return tuple(sorted(found, key=lambda lane: (lane.onset, -lane.severity.rank)))


def axis_of(alerts: Iterable[Alert], last_step: int | None) -> Axis:
    """From a little before the first condition to as far behind the last onset, within the run's steps."""
    known = tuple(alerts)
    begin = min((alert.since_step for alert in known), default=0)
    onset = max((onset_of(alert) for alert in known), default=begin)
    room = max((onset - begin) // 3, 10)
    end = onset + 2 * room
    return Axis(
        first=max(begin - room, min(begin, 0)),
        last=end if last_step is None else max(min(end, last_step), onset + 1),
    )
