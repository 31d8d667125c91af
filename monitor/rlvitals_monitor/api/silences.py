"""Silences and maintenance windows: alerts that nobody is told of, from when to when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import APIRouter, Path, Query
from pydantic import AwareDatetime, Field

from rlvitals.contract.view import Page, SilencePurpose, SilenceState, SilenceView
from rlvitals_monitor.api.deps import (
    PAGE_DEFAULT,
    AlertId,
    ContractResponse,
    CursorQuery,
    Limit,
    LiveDep,
    NowDep,
    Operator,
    Reader,
    StoreDep,
    page_of,
    read_cursor,
    write_cursor,
)
from rlvitals_monitor.errors import BadRequest, NotFound
from rlvitals_monitor.silences import book
from rlvitals_monitor.silences.book import Span
from rlvitals_monitor.silences.hours import Hours
from rlvitals_monitor.silences.silence import about, read_matchers
from rlvitals_monitor.store import alerts, silences

HOUR_S = 3600.0

router = APIRouter(prefix="/api/v1", tags=["notify"])

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
Words = Annotated[str, Field(max_length=silences.WHY_LIMIT)]
SilenceId = Annotated[str, Path(max_length=32)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SilenceAsk:
    """``match``: FIELD=PATTERN or FIELD!=PATTERN, of which all must hold; FIELD is one of project, run, rule,
    metric, severity, framework, model, tag.

    Either ``lasts_s`` or ``ends_at``. With ``cron`` and ``zone`` it comes again: ``lasts_s`` is then how long each
    time lasts, and ``ends_at`` when the last may be; a year from now if it is left out.
    """

    match: list[str]
    lasts_s: Seconds | None = None
    starts_at: AwareDatetime | None = None
    ends_at: AwareDatetime | None = None
    purpose: SilencePurpose = SilencePurpose.SILENCE
    why: Words = ""
    cron: str = ""
    zone: str = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hush:
    lasts_s: Seconds = HOUR_S
    why: Words = ""


@router.get("/silences", response_model=page_of(SilenceView), summary="Silences and maintenance, newest first")
def list_silences(
    _who: Reader,
    store: StoreDep,
    now: NowDep,
    state: Annotated[list[SilenceState] | None, Query(description="repeatable; by default all")] = None,
    cursor: CursorQuery = "",
    limit: Limit = PAGE_DEFAULT,
) -> ContractResponse:
    after = cast("silences.Cursor | None", read_cursor(cursor, int, str) if cursor else None)
    with store.read() as conn:
        items, more = silences.page(conn, now, states=state or (), after=after, limit=limit)
    shown = tuple(book.view(item, now) for item in items)
    return ContractResponse(Page(items=shown, next=write_cursor(*more) if more else ""))


@router.post("/silences", response_model=SilenceView, status_code=201, summary="Tell nobody of some alerts")
def ask(body: SilenceAsk, who: Operator, store: StoreDep, now: NowDep) -> ContractResponse:
    """Alerts go on as ever and stand on the pages; only their messages wait, and go if it then still fires."""
    span = _span(body)
    try:
        matchers = read_matchers(body.match)
    except ValueError as error:
        raise BadRequest(f"match: {error}", field="match") from None
    with store.begin() as conn:
        made = book.ask(conn, matchers, span, who.name, body.why, now, body.purpose)
    return ContractResponse(book.view(made, now), status_code=201)


@router.post("/silences/{silence}/end", response_model=SilenceView, summary="End a silence before its time")
def end(silence: SilenceId, who: Operator, store: StoreDep, now: NowDep) -> ContractResponse:
    """409 where it is over already."""
    with store.begin() as conn:
        ended = book.end(conn, silence, who.name, now)
    return ContractResponse(book.view(ended, now))


@router.post(
    "/alerts/{alert}/silence",
    response_model=SilenceView,
    status_code=201,
    summary="Tell nobody of this rule on this run",
)
def hush(
    alert: AlertId, who: Operator, store: StoreDep, live: LiveDep, now: NowDep, body: Hush | None = None
) -> ContractResponse:
    """For an hour, unless ``lasts_s`` says otherwise."""
    wish = body or Hush()
    with store.begin() as conn:
        known = alerts.find(conn, alert)
        if known is None:
            raise NotFound(f"there is no alert {alert!r}")
        made = book.ask(conn, about(known), Span(lasts_s=wish.lasts_s), who.name, wish.why, now)
    live.publish(known.run)
    return ContractResponse(book.view(made, now), status_code=201)


def _span(body: SilenceAsk) -> Span:
    if not body.cron:
        return Span(starts_at=body.starts_at, ends_at=body.ends_at, lasts_s=body.lasts_s)
    if body.lasts_s is None:
        raise BadRequest("expected how long each time lasts", field="lasts_s")
    try:
        hours = Hours.read(body.cron, body.zone, body.lasts_s)
    except ValueError as error:
        raise BadRequest(str(error), field=str(error).partition(":")[0]) from None
    return Span(starts_at=body.starts_at, ends_at=body.ends_at, hours=hours)
