"""Channels and deliveries: where messages go, how they fared, and a test that repeats the provider's own words."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import APIRouter, Depends, Query, Request

from rlvitals.contract.view import ChannelTest, ChannelView, DeliveryView, Page
from rlvitals_monitor.api.deps import (
    PAGE_DEFAULT,
    ContractResponse,
    CursorQuery,
    Limit,
    NowDep,
    Operator,
    Reader,
    StoreDep,
    page_of,
    read_cursor,
    write_cursor,
)
from rlvitals_monitor.errors import NotFound
from rlvitals_monitor.notify.channel import Channels
from rlvitals_monitor.notify.dispatch import fire_test, view_channels
from rlvitals_monitor.store import outbox

router = APIRouter(prefix="/api/v1", tags=["notify"])


def get_channels(request: Request) -> Channels:
    return cast(Channels, request.app.state.channels)


ChannelsDep = Annotated[Channels, Depends(get_channels)]


@router.get("/channels", response_model=list[ChannelView])
def list_channels(store: StoreDep, channels: ChannelsDep, _who: Reader) -> ContractResponse:
    """Their addresses are secrets: only the host is told."""
    with store.read() as conn:
        return ContractResponse(view_channels(conn, channels))


@router.post("/channels/{name}/test", response_model=ChannelTest)
def fire(name: str, channels: ChannelsDep, _who: Operator, now: NowDep) -> ContractResponse:
    """Sends a message that says that it is a test and waits for the provider."""
    channel = channels.get(name)
    if channel is None:
        raise NotFound(f"there is no channel {name[:48]!r}")
    return ContractResponse(fire_test(channel, now, channels.public_url))


@router.get("/deliveries", response_model=page_of(DeliveryView))
def list_deliveries(
    store: StoreDep,
    _who: Reader,
    run: Annotated[str | None, Query(max_length=128)] = None,
    cursor: CursorQuery = "",
    limit: Limit = PAGE_DEFAULT,
) -> ContractResponse:
    """Newest transition first."""
    after = cast("outbox.Cursor | None", read_cursor(cursor, int, str) if cursor else None)
    with store.read() as conn:
        items, more = outbox.page(conn, run=run, after=after, limit=limit)
    return ContractResponse(Page(items=items, next=write_cursor(*more) if more else ""))
