"""Links that act once, on both databases."""

from __future__ import annotations

import math
import threading
from dataclasses import replace

import pytest
from sqlalchemy import select

from rlvitals.contract.command import Bounds, CommandKind, CommandState
from rlvitals.contract.view import CommandView
from rlvitals_monitor.store import links
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.links import KEPT, LASTS, PATH, LinkAct, fingerprint
from tests.monitor.planted import NOW, a_command, an_alert, later

COMMAND = a_command()


def made(store: Store, **given: object) -> str:
    """A link's secret part."""
    with store.begin() as conn:
        path = links.make(conn, LinkAct.APPROVE, "c1", fingerprint(COMMAND), "team", NOW, **given)  # type: ignore[arg-type]
    assert path.startswith(PATH)
    return path.removeprefix(PATH)


def test_a_link_says_what_it_may_do_and_is_stored_as_a_digest_only(store: Store) -> None:
    secret = made(store)
    assert links.SECRET.fullmatch(secret)
    with store.read() as conn:
        link = links.find(conn, secret)
        assert links.find(conn, secret[:-1]) is None
        assert links.find(conn, "\ud800\0") is None
        (row,) = conn.execute(select(links.links)).all()
    assert link == links.Link(
        act=LinkAct.APPROVE,
        subject="c1",
        content=fingerprint(COMMAND),
        channel="team",
        created_at=NOW,
        expires_at=NOW + LASTS,
    )
    assert secret not in str(tuple(row))


def test_a_link_is_good_for_one_use(store: Store) -> None:
    secret = made(store)
    with store.begin() as conn:
        assert links.use(conn, secret, "ann", later(1))
        assert not links.use(conn, secret, "bob", later(2))
        link = links.find(conn, secret)
    assert link is not None
    assert (link.used_by, link.used_at) == ("ann", later(1))


def test_of_many_who_use_it_at_once_one_does(store: Store) -> None:
    secret, won = made(store), []
    start = threading.Barrier(8)

    def use() -> None:
        start.wait()
        with store.begin() as conn:
            won.append(links.use(conn, secret, "x", later(1)))

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [False] * 7 + [True]


def test_an_expired_link_does_nothing_and_is_forgotten_later(store: Store) -> None:
    secret = made(store)
    over = NOW + LASTS
    with store.begin() as conn:
        assert not links.use(conn, secret, "ann", over)
        assert links.sweep(conn, over) == 0
        assert links.find(conn, secret) is not None
        assert links.sweep(conn, over + KEPT) == 1
        assert links.find(conn, secret) is None


@pytest.mark.parametrize(
    "changed",
    [
        replace(COMMAND, argument=0.06),
        replace(COMMAND, argument=None),
        replace(COMMAND, argument=math.nan),
        replace(COMMAND, argument=math.inf),
        replace(COMMAND, argument=-math.inf),
        replace(COMMAND, kind=CommandKind.SCALE_LR),
        replace(COMMAND, knob="clip"),
        replace(COMMAND, run="r2"),
        replace(COMMAND, bounds=None),
        replace(COMMAND, bounds=Bounds(low=0.01, high=0.3)),
    ],
)
def test_a_command_that_would_do_something_else_has_another_fingerprint(changed: CommandView) -> None:
    assert fingerprint(changed) != fingerprint(COMMAND)
    assert len(fingerprint(changed)) == 64


def test_a_command_that_was_decided_meanwhile_has_the_same_fingerprint() -> None:
    assert fingerprint(replace(COMMAND, state=CommandState.PENDING, decided_by="ann")) == fingerprint(COMMAND)


def test_an_alert_keeps_its_fingerprint_while_its_numbers_move() -> None:
    assert fingerprint(an_alert(value=math.nan, acknowledged_by="ann")) == fingerprint(an_alert())
    assert fingerprint(an_alert(run="r2")) != fingerprint(an_alert())
