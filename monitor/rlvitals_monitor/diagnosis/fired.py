"""What diagnosis wants to know of an alert, from a replay or from the store."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rlvitals.contract.alert import LIMITS, Alert, Severity, measured_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """One alert from firing to its end; ``resolved`` is None while it is open. ``where`` names its token,
    ``id`` the stored alert; ``measured`` and ``limit`` are those of `Alert`."""

    alert: str
    severity: Severity
    fired: int
    resolved: int | None = None
    metric: str = ""
    value: float | None = None
    threshold: float | None = None
    measured: str = ""
    limit: str = LIMITS[""]
    where: str = ""
    id: str = ""

    @classmethod
    def of(cls, alert: Alert) -> Fired | None:
        """None for an alert that was pending and never fired."""
        if alert.fired_step is None:
            return None
        return cls(
            alert=alert.rule,
            severity=alert.severity,
            fired=alert.fired_step,
            resolved=alert.resolved_step,
            metric=alert.metric,
            value=alert.value,
            threshold=alert.threshold,
            measured=alert.measured,
            limit=alert.limit,
            id=alert.id,
        )

    @property
    def evidence(self) -> str:
        """In words: which number, from which step, at which token."""
        where = f", {self.where}" if self.where else ""
        if self.value is None:
            return f"{self.alert} from step {self.fired}{where}"
        limit = "" if self.threshold is None else f" ({self.limit.format(limit=_said(self.threshold))})"
        of = measured_of(self.metric, self.measured)
        return f"{self.alert} from step {self.fired}: {of} = {_said(self.value)}{limit}{where}"


def _said(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return f"{value:.4g}" if math.isfinite(value) else "+Inf" if value > 0 else "-Inf"
