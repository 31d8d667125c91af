"""A claimed message, read from the store as what its channel is to say. The same each time it is read."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from urllib.parse import quote

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from rlvitals.contract.alert import AlertState, Severity
from rlvitals.contract.report import RunInfo
from rlvitals_monitor.notify import extras
from rlvitals_monitor.notify.channel import Channel
from rlvitals_monitor.notify.folding import fold, settle
from rlvitals_monitor.notify.message import link_to
from rlvitals_monitor.notify.notification import Extras, Item, Notification, Purpose, RunCount
from rlvitals_monitor.store import contents
from rlvitals_monitor.store.contents import Count, Part
from rlvitals_monitor.store.messages import Claim
from rlvitals_monitor.store.runs import read_info

log = logging.getLogger(__name__)

ITEMS_LIMIT = 50
"""Changes that a message holds one by one; the others are counted."""


def read_notice(
    conn: Connection, taken: Claim, channel: Channel, public_url: str, now: datetime
) -> Notification | None:
    """None when nothing in it can be read. Writes: what cannot be read is given up, links are kept."""
    parts = contents.read_parts(conn, taken.id, ITEMS_LIMIT)
    if not parts:
        return None
    counted = contents.count_parts(conn, taken.id)
    infos = {run: read_info(conn, run) for run in {count.run for count in counted}}
    items = [_item(part, infos[part.transition.alert.run], public_url) for part in parts]
    items = items if taken.run is None else settle(items)
    is_whole = taken.run is not None and sum(count.count for count in counted) <= len(items)
    notification = Notification(
        id=taken.id,
        items=_ordered(items, is_digest=taken.run is None),
        run=None if taken.run is None else infos[taken.run],
        counts=() if is_whole else _counts(counted, infos, public_url),
        link=f"{public_url.rstrip('/')}/ui/" if public_url else "",
        language=channel.language,
    )
    if taken.run is not None:
        notification = replace(notification, link=notification.lead.link)
    return replace(notification, extras=_gather(conn, channel, notification, public_url, now))


def _gather(
    conn: Connection, channel: Channel, notification: Notification, public_url: str, now: datetime
) -> Extras:
    """A message goes without what cannot be shown beside it: the news is what matters."""
    try:
        with conn.begin_nested():
            return extras.gather(conn, channel, notification, public_url, now)
    except (SQLAlchemyError, ArithmeticError, LookupError, OSError, TypeError, ValueError):
        log.exception("message %s goes to %s without its extras", notification.id, channel.name)
        return Extras()


def _item(part: Part, run: RunInfo, public_url: str) -> Item:
    transition = part.transition
    link = link_to(public_url, transition.alert, transition.step)
    return Item(transition=transition, run=run, link=link, purpose=Purpose(part.purpose))


def _ordered(items: list[Item], *, is_digest: bool) -> tuple[Item, ...]:
    """Of several runs the strongest first: whose symptom is whose is told run by run."""
    if not is_digest:
        return fold(items)
    return tuple(
        sorted(
            items,
            key=lambda item: (
                item.transition.after is AlertState.RESOLVED,
                -item.transition.alert.severity.rank,
            ),
        )
    )


def _counts(counted: Iterable[Count], infos: dict[str, RunInfo], public_url: str) -> tuple[RunCount, ...]:
    by_run: dict[str, list[Count]] = {}
    for count in counted:
        by_run.setdefault(count.run, []).append(count)
    told = [_count(infos[run], own, public_url) for run, own in by_run.items()]
    return tuple(sorted(told, key=lambda one: (-one.severity.rank, -one.firing, one.run.id)))


def _count(run: RunInfo, own: list[Count], public_url: str) -> RunCount:
    firing = [count for count in own if count.after is AlertState.FIRING]
    strongest: Severity = max((count.severity for count in firing or own), key=lambda severity: severity.rank)
    rules: Counter[str] = Counter()
    for count in own:
        rules[count.rule] += count.count
    return RunCount(
        run=run,
        firing=sum(count.count for count in firing),
        resolved=sum(count.count for count in own if count.after is AlertState.RESOLVED),
        severity=strongest,
        rules=tuple(sorted(rules.items(), key=lambda one: (-one[1], one[0]))),
        link=_run_link(public_url, run),
    )


def _run_link(public_url: str, run: RunInfo) -> str:
    return f"{public_url.rstrip('/')}/ui/run/{quote(run.id, safe='')}" if public_url else ""
