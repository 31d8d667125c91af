"""The latest values of all live runs, for a Prometheus that scrapes them."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import PlainTextResponse

from rlvitals_monitor.api.deps import PAGE_MAX, NowDep, StoreDep
from rlvitals_monitor.api.health import may_read_metrics
from rlvitals_monitor.exposition import expose
from rlvitals_monitor.store.latest import latest_values
from rlvitals_monitor.store.names import METRIC_CHARS_MAX, PROJECT_CHARS_MAX
from rlvitals_monitor.store.run_list import RunFilter, list_runs

METRICS_MAX = 100
VALUES_MAX = 10_000
MINUTES_DEFAULT, MINUTES_MAX = 15.0, 60 * 24.0 * 7

router = APIRouter(tags=["health"])

Project = Annotated[str | None, Query(max_length=PROJECT_CHARS_MAX, description="default: of all projects")]
Metric = Annotated[str, Query(max_length=METRIC_CHARS_MAX)]
Metrics = Annotated[list[Metric], Query(alias="metric", max_length=METRICS_MAX, description="default: all")]
Minutes = Annotated[float, Query(gt=0, le=MINUTES_MAX, description="runs that were heard of within so long")]


@router.get(
    "/metrics/runs",
    response_class=PlainTextResponse,
    summary="The live runs' latest values for Prometheus",
    dependencies=[Depends(may_read_metrics)],
)
def read_run_metrics(
    store: StoreDep,
    now: NowDep,
    metric: Metrics = [],  # noqa: B006 - the framework copies it
    project: Project = None,
    minutes: Minutes = MINUTES_DEFAULT,
) -> PlainTextResponse:
    """At most 10,000 values of 500 runs; name the metrics where there would be more."""
    within = timedelta(minutes=minutes)
    with store.read() as connection:
        wanted = RunFilter(projects=frozenset(() if project is None else (project,)), seen_since=now - within)
        found, _ = list_runs(connection, now, wanted, limit=PAGE_MAX)
        values = latest_values(connection, now, within=within, project=project, metrics=metric, limit=VALUES_MAX)
    return PlainTextResponse(expose(found, values), media_type="text/plain; version=0.0.4")
