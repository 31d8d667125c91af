"""Forks dispatchers that are killed: imports are paid once, each dispatcher is a process of its own.

Reads one `Order` as JSON a line; writes the pid, and when the process has ended how it did.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import ModuleType
from typing import Any

from rlvitals_monitor.notify import attempt, dispatch
from rlvitals_monitor.notify.channel import Channel, ChannelKind, Channels
from rlvitals_monitor.notify.dispatcher import Dispatcher
from rlvitals_monitor.store import due, messages
from rlvitals_monitor.store.engine import Store
from tests.monitor.notify.crash.point import Point

PATIENCE_S = 600.0
LOOK_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """``point``: where to die, at the ``nth`` time that it is passed; "" to live until nothing is due."""

    database: str
    hook: str
    now: str
    point: str = ""
    nth: int = 1


def main() -> None:
    for line in sys.stdin:
        order = Order(**json.loads(line))
        pid = os.fork()
        if pid == 0:
            _dispatch(order)
            os._exit(0)
        _say(pid)
        _, status = os.waitpid(pid, 0)
        _say(os.waitstatus_to_exitcode(status))


def channel_to(hook: str) -> Channel:
    return Channel(name="pager", kind=ChannelKind.WEBHOOK, url=hook, allow_private=True, timeout_s=30.0)


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _dispatch(order: Order) -> None:
    """A dispatcher as the service runs it, on a clock that starts at ``now``."""
    began, now = time.monotonic(), datetime.fromisoformat(order.now)

    def clock() -> datetime:
        return now + timedelta(seconds=time.monotonic() - began)

    if order.point:
        _arm(Point(order.point), order.nth)
    store = Store(order.database)
    channel = channel_to(order.hook)
    dispatcher = Dispatcher(store, Channels(items=(channel,)), clock=clock, look_s=LOOK_S)
    dispatcher.start()
    while time.monotonic() - began < PATIENCE_S:
        time.sleep(LOOK_S)
        with store.read() as conn:
            if not due.is_due(conn, channel.name, clock()) and not messages.is_due(conn, channel.name, clock()):
                break
    dispatcher.stop()


def _arm(point: Point, nth: int) -> None:
    """The provider itself kills at `Point.SENT`; the others are reached from within."""
    if point is Point.CLAIM_OPEN:
        _wrap(attempt, "_take", nth, lambda taken: taken[0] is not None)
    elif point is Point.CLAIMED:
        _wrap(dispatch, "take", nth, lambda taken: taken is not None)
    elif point is Point.RECORD_OPEN:
        _wrap(dispatch, "record", nth, lambda recorded: True)
    elif point is Point.RECORDED:
        # `take` is what follows a record; its first call comes before any.
        _wrap(dispatch, "take", nth + 1, lambda taken: True, before=True)


def _wrap(module: ModuleType, name: str, nth: int, counts: Callable[[Any], bool], *, before: bool = False) -> None:
    setattr(module, name, _deadly(getattr(module, name), nth, counts, before=before))


def _deadly(
    call: Callable[..., Any], nth: int, counts: Callable[[Any], bool], *, before: bool
) -> Callable[..., Any]:
    """``call``, which at the ``nth`` time that its answer ``counts`` ends the process as kill -9 does."""
    passed = 0

    def deadly(*args: Any, **kwargs: Any) -> Any:
        nonlocal passed
        if before and passed + 1 == nth:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = call(*args, **kwargs)
        passed += counts(answer)
        if passed == nth:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    return deadly


if __name__ == "__main__":
    main()
