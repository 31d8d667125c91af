"""The numbers of a run: metrics, charts, extremes, histograms."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from rlvitals.contract.view import ExtremeView, HistogramView, MetricView, SeriesView
from rlvitals_monitor.api.deps import PAGE_DEFAULT, ContractResponse, Limit, Reader, RunId, StoreDep
from rlvitals_monitor.api.series_response import SeriesResponse
from rlvitals_monitor.store import charts, distributions, series
from rlvitals_monitor.store.charts import Span
from rlvitals_monitor.store.names import METRIC_CHARS_MAX
from rlvitals_monitor.store.runs import find_attempt

CHART_DEFAULT, CHART_MAX = 800, 5_000
METRICS_MAX = 100
COLUMNS_MAX = 400

router = APIRouter(prefix="/api/v1/runs/{run}", tags=["series"])

STEP_MAX = 2**53
Metric = Annotated[str, Query(max_length=METRIC_CHARS_MAX)]
Metrics = Annotated[list[Metric], Query(alias="metric", min_length=1, max_length=METRICS_MAX)]
Attempt = Annotated[str | None, Query(max_length=64, description="default: the newest")]
From = Annotated[int | None, Query(alias="from", ge=-STEP_MAX, le=STEP_MAX, description="first step")]
To = Annotated[int | None, Query(alias="to", ge=-STEP_MAX, le=STEP_MAX, description="last step, included")]


@router.get(
    "/metrics", response_model=list[MetricView], summary="What was measured, and what could not be and why"
)
def read_metrics(run: RunId, _who: Reader, store: StoreDep, attempt: Attempt = None) -> ContractResponse:
    with store.read() as connection:
        number, _ = find_attempt(connection, run, attempt)
        return ContractResponse(series.read_metrics(connection, number))


@router.get("/series", response_model=list[SeriesView], summary="Metrics over steps, for charts of any length")
def read_series(
    run: RunId,
    _who: Reader,
    store: StoreDep,
    metric: Metrics,
    attempt: Attempt = None,
    first: From = None,
    last: To = None,
    limit: Annotated[int, Query(ge=2, le=CHART_MAX, description="most points or buckets")] = CHART_DEFAULT,
) -> ContractResponse:
    with store.read() as connection:
        found = find_attempt(connection, run, attempt)
        span = Span(first=first, last=last)
        return SeriesResponse(charts.read_series(connection, run, found, metric, span, limit))


@router.get("/extremes", response_model=list[ExtremeView], summary="The tokens at which a metric was extreme")
def read_extremes(
    run: RunId,
    _who: Reader,
    store: StoreDep,
    metric: Metric,
    attempt: Attempt = None,
    first: From = None,
    last: To = None,
    limit: Limit = PAGE_DEFAULT,
) -> ContractResponse:
    with store.read() as connection:
        number, _ = find_attempt(connection, run, attempt)
        return ContractResponse(series.read_extremes(connection, number, metric, first, last, limit))


@router.get("/histograms", response_model=list[HistogramView], summary="Histograms of a metric, in step order")
def read_histograms(
    run: RunId,
    _who: Reader,
    store: StoreDep,
    metric: Metric,
    attempt: Attempt = None,
    first: From = None,
    last: To = None,
    limit: Limit = PAGE_DEFAULT,
    columns: Annotated[
        int | None, Query(ge=2, le=COLUMNS_MAX, description="instead of the newest: spread evenly over the steps")
    ] = None,
) -> ContractResponse:
    with store.read() as connection:
        number, _ = find_attempt(connection, run, attempt)
        if columns is not None:
            span = Span(first=first, last=last)
            return ContractResponse(distributions.read_spread(connection, number, metric, span, columns))
        return ContractResponse(series.read_histograms(connection, number, metric, first, last, limit))
