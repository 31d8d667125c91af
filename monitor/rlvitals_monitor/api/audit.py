"""The audit: who did what, page by page or as a file, and whether anybody changed it afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse

from rlvitals.contract.view import AuditCheck, AuditView, Page
from rlvitals_monitor.api.deps import (
    PAGE_DEFAULT,
    ContractResponse,
    CursorQuery,
    Limit,
    Reader,
    StoreDep,
    page_of,
    read_cursor,
    write_cursor,
)
from rlvitals_monitor.control.export import FORMATS, Writer
from rlvitals_monitor.openapi import files
from rlvitals_monitor.store.audit import Filter, audit_page, every_line, verify

router = APIRouter(prefix="/api/v1", tags=["control"])

_Name = Annotated[str, Query(max_length=128)]
_Digest = Annotated[str, Query(pattern="^([0-9a-f]{64})?$", description="the last digest of an earlier answer")]


def wanted_lines(run: _Name = "", command: _Name = "", who: _Name = "", what: _Name = "") -> Filter:
    return Filter(run=run, command=command, who=who, what=what)


FilterDep = Annotated[Filter, Depends(wanted_lines)]


@router.get("/audit", response_model=page_of(AuditView))
def list_audit(
    store: StoreDep, _who: Reader, wanted: FilterDep, cursor: CursorQuery = "", limit: Limit = PAGE_DEFAULT
) -> ContractResponse:
    """Every change of every command, and what concerns security; newest first. Nothing is ever removed."""
    after = read_cursor(cursor, int)[0] if cursor else None
    with store.read() as conn:
        items, more = audit_page(conn, wanted, after=after, limit=limit)
    return ContractResponse(Page(items=items, next=write_cursor(more) if more else ""))


@router.get("/audit/check", response_model=AuditCheck)
def check_audit(store: StoreDep, _who: Reader, head: _Digest = "") -> ContractResponse:
    """Walks the whole chain: was a line changed, put in, taken out, or cut off behind ``head``?"""
    with store.read() as conn:
        return ContractResponse(verify(conn, head))


@router.get("/audit/export", response_class=StreamingResponse, responses=files("application/x-ndjson", "text/csv"))
def export_audit(
    store: StoreDep, _who: Reader, wanted: FilterDep, form: Literal["jsonl", "csv"] = "jsonl"
) -> StreamingResponse:
    """All lines, oldest first, as a file."""
    lines = every_line(store, wanted)
    first = next(lines, None)  # what cannot be asked is refused before the file begins
    pieces = _pieces(lines if first is None else chain((first,), lines), FORMATS[form]())
    headers = {"Content-Disposition": f'attachment; filename="audit.{form}"'}
    return StreamingResponse(pieces, media_type=_MEDIA[form], headers=headers)


_MEDIA = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}


def _pieces(lines: Iterable[tuple[AuditView, ...]], writer: Writer) -> Iterator[str]:
    yield writer.head()
    for some in lines:
        yield writer.lines(some)
