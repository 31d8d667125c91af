"""Several runs side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query

from rlvitals.contract.comparison import Axis, ComparisonView, SettingsView
from rlvitals_monitor.api.deps import ContractResponse, NowDep, Reader, StoreDep
from rlvitals_monitor.comparison.compare import Wish, compare
from rlvitals_monitor.comparison.differences import compare_settings
from rlvitals_monitor.errors import BadRequest, NotFound
from rlvitals_monitor.store.names import ATTEMPT_ID, METRIC_CHARS_MAX, RUN_ID
from rlvitals_monitor.store.runs import read_run

RUNS_MAX, METRICS_MAX, POINTS_DEFAULT, POINTS_MAX = 6, 12, 400, 2_000

router = APIRouter(prefix="/api/v1/compare", tags=["compare"])

_Key = Annotated[str, Query(max_length=200)]
Keys = Annotated[
    list[_Key],
    Query(
        alias="run",
        min_length=1,
        max_length=RUNS_MAX,
        description="a run's id, or run@attempt; the first is what the others are held against",
    ),
]
Metrics = Annotated[
    list[Annotated[str, Query(max_length=METRIC_CHARS_MAX)]],
    Query(alias="metric", min_length=1, max_length=METRICS_MAX),
]
Healthy = Annotated[
    list[_Key] | None,
    Query(max_length=12, description="runs behind the curves; default: the project's own; `none` for no band"),
]
Place = Annotated[float | None, Query(description="on the axis")]


@router.get("", response_model=ComparisonView, summary="Metrics of several runs on one axis, and where they part")
def compare_runs(
    run: Keys,
    metric: Metrics,
    store: StoreDep,
    _who: Reader,
    now: NowDep,
    by: Axis = Axis.STEP,
    healthy: Healthy = None,
    first: Annotated[Place, Query(alias="from")] = None,
    last: Annotated[Place, Query(alias="to")] = None,
    limit: Annotated[int, Query(ge=2, le=POINTS_MAX, description="most points or buckets")] = POINTS_DEFAULT,
) -> ContractResponse:
    """The tests, the axes and the band are described in docs/dashboard.md."""
    for place, field in ((first, "from"), (last, "to")):
        if place is not None and not math.isfinite(place):
            raise BadRequest("expected a finite number", field=field)
    wish = Wish(
        keys=_checked(run),
        metrics=list(dict.fromkeys(metric)),
        axis=by,
        first=first,
        last=last,
        limit=limit,
        healthy=None if healthy is None else _checked([key for key in healthy if key != "none"]),
    )
    with store.read() as connection:
        return ContractResponse(compare(connection, wish, now))


@router.get("/settings", response_model=SettingsView, summary="Settings of several runs, unlike ones first")
def compare_run_settings(run: Keys, store: StoreDep, _who: Reader, now: NowDep) -> ContractResponse:
    with store.read() as connection:
        known = {view.id: view for view in (read_run(connection, one, now) for one in _runs(run))}
    configs = {key: view.config for key, view in known.items()}
    return ContractResponse(compare_settings(configs, {key: view.name for key, view in known.items()}))


def _runs(keys: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(key.partition("@")[0] for key in _checked(keys)))


def _checked(keys: Sequence[str]) -> list[str]:
    """One that no run can have answers as one that is not there."""
    for key in keys:
        run, _, attempt = key.partition("@")
        if RUN_ID.fullmatch(run) is None or (attempt and ATTEMPT_ID.fullmatch(attempt) is None):
            raise NotFound(f"there is no run {key[:128]!r}")
    return list(keys)
