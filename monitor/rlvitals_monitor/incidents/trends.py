"""The metrics of an incident's alerts around its onset."""

from __future__ import annotations

from sqlalchemy import Connection

from rlvitals.contract.incident import IncidentStory
from rlvitals_monitor.notify.trend import Trend
from rlvitals_monitor.store import runs, series

METRICS_SHOWN = 6
STEPS_SHOWN = 240


def read_trends(conn: Connection, story: IncidentStory) -> tuple[Trend, ...]:
    """In the order of onset. Of a metric that is measured now and then these steps only."""
    number, _ = runs.find_attempt(conn, story.run.id, story.incident.attempt)
    limits = {alert.metric: alert.threshold for alert in reversed(story.alerts) if alert.metric}
    metrics = list(dict.fromkeys(alert.metric for alert in story.alerts if alert.metric))[:METRICS_SHOWN]
    found = []
    for metric in metrics:
        points = series.read_trend(conn, number, metric, story.axis.last, STEPS_SHOWN)
        known = [one for one in points if one[1] is not None]
        shown = known if len(known) * 2 <= len(points) else points
        if known:
            found.append(
                Trend(
                    metric=metric,
                    steps=tuple(step for step, _ in shown),
                    values=tuple(value for _, value in shown),
                    threshold=limits[metric],
                )
            )
    return tuple(found)
