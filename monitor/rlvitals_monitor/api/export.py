"""A run's numbers as a file."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from rlvitals_monitor.api.deps import Reader, RunId, StoreDep
from rlvitals_monitor.api.series import METRICS_MAX, Attempt, From, Metric, To
from rlvitals_monitor.export import csv_file, parquet_file
from rlvitals_monitor.store import frames
from rlvitals_monitor.store.charts import Span
from rlvitals_monitor.store.runs import find_attempt, project_of

router = APIRouter(prefix="/api/v1", tags=["series"])

RAW_FROM = "RLVitals-Raw-From"
_WRITERS = {"csv": csv_file.write_csv, "parquet": parquet_file.write_parquet}
_MEDIA = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
Metrics = Annotated[
    list[Metric] | None, Query(alias="metric", max_length=METRICS_MAX, description="default: all, by name")
]


@router.get(
    "/runs/{run}/export",
    response_class=StreamingResponse,
    summary="The raw numbers of an attempt as CSV or Parquet, a row for each step",
    responses={
        200: {
            "content": {
                "text/csv": {"schema": {"type": "string"}},
                "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
            },
            "headers": {
                RAW_FROM: {
                    "description": "first step of which raw numbers are kept; absent where all are",
                    "schema": {"type": "integer"},
                }
            },
        }
    },
)
def export_run(
    run: RunId,
    _who: Reader,
    store: StoreDep,
    form: Annotated[Literal["csv", "parquet"], Query(alias="format")] = "csv",
    metric: Metrics = None,
    attempt: Attempt = None,
    first: From = None,
    last: To = None,
) -> StreamingResponse:
    """Columns are step, time and the metrics. In CSV an empty cell is missing, and NaN, Infinity and -Infinity are
    themselves; in Parquet null is missing. The file is written as it is sent, whatever its length.
    """
    if form == "parquet":
        parquet_file.check()
    with store.read() as connection:
        found = find_attempt(connection, run, attempt)
        project = project_of(connection, run) or ""
        source = frames.find_source(connection, run, found, project, metric or (), Span(first=first, last=last))
    headers = {"Content-Disposition": f'attachment; filename="{_file_name(source)}.{form}"'}
    if source.raw_from is not None:
        headers[RAW_FROM] = str(source.raw_from)
    pieces = _WRITERS[form](source, frames.read_frames(store, source))
    return StreamingResponse(pieces, media_type=_MEDIA[form], headers=headers)


def _file_name(source: frames.Source) -> str:
    return f"{source.run}-{source.attempt}".replace(":", "_")
