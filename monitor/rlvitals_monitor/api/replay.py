"""Logs of past runs: what the rules say of one, and one as a run with its page."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from rlvitals.contract.report import Heartbeat, Phase, Refusal, ReportBatch, RunInfo, StepReport
from rlvitals_monitor.alerts.short import LOG_STEPS, SHORT
from rlvitals_monitor.api.deps import ContractResponse, Ingester, NowDep, Reader
from rlvitals_monitor.api.rules import RulesDep
from rlvitals_monitor.api.uploads import WITH_RULES, Reading, Upload, reading, use_upload
from rlvitals_monitor.auth import Principal
from rlvitals_monitor.collector import collect
from rlvitals_monitor.document import REFUSALS_MAX, Document
from rlvitals_monitor.errors import BadRequest, Conflict, NotFound
from rlvitals_monitor.importers.past_run import PastRun
from rlvitals_monitor.replay import Replay, replay_log
from rlvitals_monitor.rules.document import RuleFileError
from rlvitals_monitor.rules.loader import load_over
from rlvitals_monitor.rules.rule import Rule
from rlvitals_monitor.store.runs import find_attempt

STEPS_A_BATCH = 500

router = APIRouter(prefix="/api/v1", tags=["logs"])

FormatQuery = Annotated[str, Query(alias="format", max_length=40, description="where sniffing errs")]
EveryQuery = Annotated[int, Query(description="steps between lines that say no step")]
WhichQuery = Annotated[str, Query(max_length=256, description="which run of a tracker's file; else the newest")]

_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "A log in any format that `rlvitals replay` reads, or an object with a log and own rules.",
        "content": {
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
            WITH_RULES: {
                "schema": {
                    "type": "object",
                    "required": ["log"],
                    "properties": {"log": {"type": "string"}, "rules": {"type": "string"}},
                }
            },
        },
    }
}


@router.post("/replay", summary="What the rules say of a log; nothing is stored", openapi_extra=_BODY)
async def post_replay(
    request: Request,
    _who: Reader,
    rules: RulesDep,
    form: FormatQuery = "",
    every: EveryQuery = 1,
    of_run: WhichQuery = "",
) -> ContractResponse:
    """The same as ``rlvitals replay --json``."""
    how = Reading.of(form, every, of_run)

    def work(upload: Upload) -> Any:
        chosen = own_rules(upload.rules) if upload.rules else rules
        with reading(upload, how) as past:
            return _told(replay_log(past, chosen))

    return ContractResponse(await use_upload(request, request.app.state.settings.max_log_bytes, work))


def own_rules(text: str, field: str = "rules") -> tuple[Rule, ...]:
    """The catalogue with this rule file on top. Raises `BadRequest` with every problem, its line first."""
    try:
        return load_over(text, field)
    except RuleFileError as error:
        raise BadRequest(str(error), field=field) from None


def _told(found: Replay) -> dict[str, object]:
    if not found.past.count:
        raise BadRequest(f"no training step was found in the log, read as {found.past.format.value}", field="body")
    return found.to_dict()


@router.post("/import", summary="A log as a run, judged by the rules in force", openapi_extra=_BODY)
async def post_import(
    request: Request,
    who: Ingester,
    now: NowDep,
    run: Annotated[str, Query(max_length=128, description="the new run's id; by default made from the log")] = "",
    project: Annotated[str, Query(max_length=128)] = "default",
    name: Annotated[str, Query(max_length=256)] = "",
    form: FormatQuery = "",
    every: EveryQuery = 1,
    of_run: WhichQuery = "",
) -> ContractResponse:
    """A log has no times that all formats share: a step counts as a minute. Nobody is notified of the past."""
    state, how = request.app.state, Reading.of(form, every, of_run)

    def work(upload: Upload) -> Any:
        attempt = f"import-{upload.digest[:12]}"
        info = RunInfo(id=run or attempt, project=project, name=name or run or attempt, framework="import")
        with reading(upload, how) as past:
            return _import(state, who, past, info, attempt, now)

    return ContractResponse(await use_upload(request, state.settings.max_log_bytes, work))


def _import(
    state: Any, who: Principal, past: PastRun, info: RunInfo, attempt: str, now: datetime
) -> dict[str, object]:
    """The same log again adds nothing: its steps are known by the digest of the log."""
    _check_free(state, info.id, attempt)
    refused: list[Refusal] = []
    last: int | None = None
    for batch in _batches(past, info, attempt, now):
        receipt, _ = collect(state.store, Document(batch=batch), who, now)
        refused += receipt.refused
        last = batch.steps[-1].step if batch.steps else last
    if last is None:
        raise BadRequest(f"no training step was found in the log, read as {past.format.value}", field="body")
    if state.worker is not None:
        state.worker.wake(info.id)
    state.live.publish(info.id)
    return {
        "run": info.id,
        "attempt": attempt,
        "page": f"/ui/run/{info.id}",
        "steps": past.count,
        "last_step": last,
        "format": past.format.value,
        "unknown_metrics": past.unknown,
        "refused": refused[:REFUSALS_MAX],
        "bad_lines": [{"line": b.line, "reason": b.reason, "text": b.text} for b in past.bad_lines],
        "bad_line_count": past.bad_count,
    }


def _check_free(state: Any, run: str, attempt: str) -> None:
    """An import is never an attempt of a run that trains."""
    with state.store.read() as connection:
        try:
            find_attempt(connection, run)
        except NotFound:
            return
        try:
            find_attempt(connection, run, attempt)
        except NotFound:
            raise Conflict(f"there is a run {run!r} already: choose another id", field="run") from None


def _batches(past: PastRun, info: RunInfo, attempt: str, now: datetime) -> Iterator[ReportBatch]:
    """Steps by the hundreds, then that the run is over; nothing for a log without a step."""
    told, seq, last = info, 0, -1
    short: dict[str, int] = {}
    steps = (
        StepReport(seq=at, step=step, time_s=time.timestamp(), values=values)
        for at, (step, time, values) in enumerate(past.steps)
    )
    while some := tuple(itertools.islice(steps, STEPS_A_BATCH)):
        if last < 0 and len(some) <= SHORT:
            short = {LOG_STEPS: len(some)}
        told = RunInfo(
            id=info.id,
            project=info.project,
            name=info.name,
            framework=info.framework,
            config={"steps_counted": int(past.counted), **short},
        )
        seq, last = some[-1].seq, some[-1].step
        yield ReportBatch(run=told, attempt=attempt, writer="import", steps=some)
    if seq or last >= 0:
        over = Heartbeat(time_s=now.timestamp(), phase=Phase.FINISHED, last_step=last)
        yield ReportBatch(run=told, attempt=attempt, writer="import", heartbeat=over)
