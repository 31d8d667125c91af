"""A symptom has no message of its own while its cause is known: it goes with the run's next one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rlvitals.contract.alert import Alert, AlertState
from rlvitals_monitor.notify.folding import causes_of
from rlvitals_monitor.store.due import Told


def symptoms(alerts: Iterable[Alert], told: Mapping[str, Told]) -> dict[str, str]:
    """Alert → the rule of its cause, where that fires, is no weaker, and the channel was told of it."""
    known = list(alerts)
    causes = causes_of(known)
    leads = {
        (alert.attempt, alert.rule): alert
        for alert in known
        if alert.state is AlertState.FIRING and told.get(alert.id) is Told.YES
    }
    found: dict[str, str] = {}
    for alert in known:
        cause = causes.get((alert.attempt, alert.rule), "")
        lead = leads.get((alert.attempt, cause))
        if lead is not None and lead.severity.rank >= alert.severity.rank:
            found[alert.id] = cause
    return found
