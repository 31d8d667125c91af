"""Alerts in Prometheus' words: pending, firing, resolved. A change of state is a Transition."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from rlvitals.contract.command import CommandKind


class Severity(str, Enum):
    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        return ("info", "warning", "critical").index(self.value)


class AlertState(str, Enum):
    INACTIVE = "inactive"
    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


class Truth(str, Enum):
    """Three-valued outcome of a rule: warm-up, missing input and errors are ``unknown``."""

    ACTIVE = "active"
    INACTIVE = "inactive"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a rule would have done about its alert, its argument computed at the step at which the alert fired.

    ``knob`` names the setting where ``kind`` is ``set_knob``.
    """

    kind: CommandKind
    argument: float | None = None
    knob: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Silenced:
    """Nobody is told of an alert until then; ``who`` asked for it, and ``why``."""

    until: datetime
    who: str = ""
    why: str = ""


LIMITS = {
    "<": "fires below {limit}",
    "<=": "fires at {limit} or below",
    ">": "fires above {limit}",
    ">=": "fires at {limit} or above",
    "==": "fires at {limit}",
    "!=": "fires at anything but {limit}",
    "": "threshold {limit}",
}
"""How an alert's value is compared with its threshold, by `Alert.sign`."""


def limit_of(sign: str) -> str:
    """A sentence of `LIMITS`; the plain one where nobody knows the sign."""
    return LIMITS.get(sign, LIMITS[""])


def measured_of(metric: str, measured: str) -> str:
    """What a value is of; a metric that is derived from several bears the name of one of them."""
    if not measured or metric in measured:
        return measured or metric
    return f"{measured} of {metric}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One rule's alert on one attempt of a run. ``since_*`` is where its condition first held.

    ``measured`` says what ``value`` is where it is not the metric's own, as the rule writes it, such as
    ``mean(reward.mean, 25)``; ``sign`` how the rule compares it with ``threshold``: ``<``, ``<=``, ``>``, ``>=``,
    ``==`` or ``!=``, "" where nobody knows. ``silenced`` is told where alerts are shown, of those that are open.
    """

    id: str
    run: str
    attempt: str
    rule: str
    severity: Severity
    state: AlertState
    since_step: int
    since_time: datetime
    metric: str = ""
    value: float | None = None
    threshold: float | None = None
    measured: str = ""
    sign: str = ""
    summary: str = ""
    advice: str = ""
    runbook: str = ""
    fired_step: int | None = None
    fired_at: datetime | None = None
    resolved_step: int | None = None
    resolved_at: datetime | None = None
    acknowledged_by: str = ""
    proposal: Proposal | None = None
    silenced: Silenced | None = None

    @property
    def of(self) -> str:
        """What ``value`` is of: the metric, or what the rule makes of it."""
        return measured_of(self.metric, self.measured)

    @property
    def limit(self) -> str:
        """A sentence of `LIMITS`; "" without a threshold."""
        return "" if self.threshold is None else limit_of(self.sign)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A change of an alert's state; its row is the work list of notify and control."""

    id: str
    alert: Alert
    before: AlertState
    after: AlertState
    step: int
    at: datetime
    reason: str
