"""Channels and deliveries: where messages go, how they fared, and a test that repeats the provider's own words."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, cast

from fastapi import APIRouter, Body, Depends, Path, Query, Request
from fastapi.responses import Response

from rlvitals.contract.channelbook import ChannelBody, ChannelBookView
from rlvitals.contract.view import ChannelTest, ChannelView, DeliveryView, Page, SendView
from rlvitals_monitor.api.deps import (
    PAGE_DEFAULT,
    Admin,
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
from rlvitals_monitor.errors import BadRequest, NotFound
from rlvitals_monitor.notify import channel_table
from rlvitals_monitor.notify.channel import Channels
from rlvitals_monitor.notify.channel_book import ChannelBook
from rlvitals_monitor.notify.dispatch import fire_test, view_channels
from rlvitals_monitor.store import deliveries, messages

router = APIRouter(prefix="/api/v1", tags=["notify"])


async def get_channel_book(request: Request) -> ChannelBook:
    """The one by which the dispatcher of this process delivers."""
    return cast(ChannelBook, request.app.state.channel_book)


BookDep = Annotated[ChannelBook, Depends(get_channel_book)]


def get_channels(book: BookDep, store: StoreDep, now: NowDep) -> Channels:
    """Those in force, after a look."""
    return book.refresh(store, now)


ChannelsDep = Annotated[Channels, Depends(get_channels)]
BodyIn = Annotated[dict[str, Any], Body(description="The keys of a channel in a channel file.")]


@router.get("/channels", response_model=list[ChannelView])
def list_channels(store: StoreDep, book: BookDep, channels: ChannelsDep, _who: Reader) -> ContractResponse:
    """Their addresses are secrets: only the host is told."""
    with store.read() as conn:
        views = view_channels(conn, channels)
    return ContractResponse([replace(view, made=book.is_made(view.name)) for view in views])


@router.get("/channels/status", response_model=ChannelBookView, summary="Whether all channels are in force")
def read_status(_who: Reader, book: BookDep, _channels: ChannelsDep) -> ContractResponse:
    """A channel that was changed for the worse goes on as it was; ``problems`` says why."""
    return ContractResponse(book.view)


@router.post("/channels", status_code=201, response_model=ChannelBody)
def create_channel(body: BodyIn, store: StoreDep, book: BookDep, who: Admin, now: NowDep) -> ContractResponse:
    """In force at once. A secret is a text, which nobody is shown again, or ``{"env": …}`` or ``{"file": …}``."""
    name = body.get("name")
    if not isinstance(name, str):
        raise BadRequest("expected a name", field="name")
    operators = frozenset(c.name for c in book.refresh(store, now, at_once=True) if not book.is_made(c.name))
    with store.begin() as conn:
        made = channel_table.create(conn, book.reader, name, body, operators, who=who.name, now=now)
    book.refresh(store, now, at_once=True)
    return ContractResponse(made, status_code=201)


@router.get("/channels/{name}", response_model=ChannelBody)
def read_channel(name: str, store: StoreDep, _who: Admin) -> ContractResponse:
    """A channel that the API made, as it was written, but for its secrets."""
    with store.read() as conn:
        return ContractResponse(channel_table.read(conn, name))


@router.put("/channels/{name}", response_model=ChannelBody)
def change_channel(
    name: str, body: BodyIn, store: StoreDep, book: BookDep, who: Admin, now: NowDep
) -> ContractResponse:
    """Takes its place from the next message on. ``url`` and ``secret`` stay where they are left out or ``***``."""
    with store.begin() as conn:
        changed = channel_table.change(conn, book.reader, name, body, who=who.name, now=now)
    book.refresh(store, now, at_once=True)
    return ContractResponse(changed)


@router.delete("/channels/{name}", status_code=204, response_class=Response)
def delete_channel(name: str, store: StoreDep, book: BookDep, who: Admin, now: NowDep) -> Response:
    """What still waited for it is dropped."""
    with store.begin() as conn:
        channel_table.remove(conn, name, who=who.name, now=now)
    book.refresh(store, now, at_once=True)
    return Response(status_code=204)


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
    after = cast("deliveries.Cursor | None", read_cursor(cursor, int, str) if cursor else None)
    with store.read() as conn:
        items, more = deliveries.page(conn, run=run, after=after, limit=limit)
    return ContractResponse(Page(items=items, next=write_cursor(*more) if more else ""))


@router.get("/deliveries/{delivery}/sends", response_model=list[SendView])
def list_sends(delivery: Annotated[str, Path(max_length=32)], store: StoreDep, _who: Reader) -> ContractResponse:
    """Each attempt to send the message that it went into, with the provider's own words."""
    with store.read() as conn:
        sent = messages.sends_of(conn, delivery)
    if sent is None:
        raise NotFound(f"there is no delivery {delivery!r}")
    return ContractResponse(sent)
