"""What one process publishes is seen by who waits in another: through PostgreSQL, or by looking at SQLite."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from rlvitals_monitor.fanout import Fanout
from rlvitals_monitor.live import EVERYTHING, Live
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.line import COST_MAX, PAYLOAD_BYTES_MAX, Told, pack, pack_spent, unpack
from tests.monitor.planted import plant_run

PATIENCE_S = 20.0


@contextmanager
def process(store: Store) -> Iterator[tuple[Live, threading.Event]]:
    """Live and its fan-out as one process of the service has them, and the sign that its worker was woken."""
    live, woken = Live(), threading.Event()
    fanout = Fanout(store, live, heard=woken.set)
    fanout.start()
    try:
        yield live, woken
    finally:
        fanout.stop()


def change(store: Store, live: Live, run: str) -> None:
    with store.begin() as connection:
        plant_run(connection, run)
    live.publish(run)


async def until_seen(store: Store, here: Live, there: Live, run: str) -> None:
    """A reader waits there while changes are made here, again and again: the first may come before it listens."""
    before = there.version(run)
    seen = asyncio.ensure_future(there.wait(run, before, PATIENCE_S))
    for number in range(200):
        await asyncio.to_thread(change, store, here, run if number == 0 else f"{run}-{number}")
        here.publish(run)
        if (await asyncio.wait([seen], timeout=0.1))[0]:
            break
    assert seen.result() > before


def test_a_reader_in_another_process_sees_a_change_and_the_worker_there_is_woken(store: Store) -> None:
    with process(store) as (here, _), process(store) as (there, woken):
        asyncio.run(until_seen(store, here, there, "r1"))
        assert woken.wait(PATIENCE_S)
        asyncio.run(until_seen(store, there, here, EVERYTHING))


@pytest.mark.postgres
def test_a_lost_line_counts_as_a_change_of_all_runs_and_comes_back_by_itself(postgres_url: str) -> None:
    store = Store(postgres_url)
    with process(store) as (here, _), process(store) as (there, _):
        asyncio.run(until_seen(store, here, there, "r1"))
        before = there.version("never told of")
        with store.begin() as connection:
            ended = connection.scalars(
                text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
            ).all()
        assert len(ended) == 2
        assert asyncio.run(there.wait("never told of", before, PATIENCE_S)) > before
        asyncio.run(until_seen(store, here, there, "r2"))
    store.close()


@pytest.mark.postgres
def test_a_foreign_notification_is_passed_over(postgres_url: str) -> None:
    store = Store(postgres_url)
    with process(store) as (here, _), process(store) as (there, _):
        asyncio.run(until_seen(store, here, there, "r1"))
        with store.begin() as connection:
            for payload in ("", "[]", "[1]", '["<script>", "r1"]', '["ab", "\\u0000"]', "NaN", "[" * 4000):
                connection.execute(text("SELECT pg_notify('rlvitals', :payload)"), {"payload": payload})
        asyncio.run(until_seen(store, here, there, "r2"))
    store.close()


@given(st.lists(st.from_regex(r"[A-Za-z0-9_:-]{1,128}", fullmatch=True), max_size=300))
def test_many_runs_go_out_in_as_many_payloads_as_it_takes(runs: list[str]) -> None:
    payloads = list(pack("00ff", runs))
    assert all(len(payload.encode()) <= PAYLOAD_BYTES_MAX for payload in payloads)
    assert [run for payload in payloads for run in (unpack(payload) or ("", ()))[1]] == runs


@given(st.dictionaries(st.from_regex(r"[rt][0-9a-f]{16}", fullmatch=True), st.integers(0, COST_MAX), max_size=450))
def test_what_was_taken_of_many_quotas_goes_out_in_as_many_payloads_as_it_takes(spent: dict[str, int]) -> None:
    payloads = list(pack_spent("00ff", spent))
    assert all(len(payload.encode()) <= PAYLOAD_BYTES_MAX for payload in payloads)
    heard = [unpack(payload) or Told("") for payload in payloads]
    assert {name: cost for told in heard for name, cost in told.spent.items()} == spent


def test_a_quota_can_be_given_nothing_back_by_a_notification() -> None:
    for cost in ("-1", "NaN", "1e99", "true", "null", '"1"', str(COST_MAX + 1)):
        assert unpack(f'["00ff",{{"r0123456789abcdef":{cost}}}]') is None
    assert unpack('["00ff",{"a run":1}]') is None
    assert unpack('["00ff","r1",{"r0123456789abcdef":1}]') is None


@pytest.mark.postgres
def test_what_is_taken_of_a_quota_is_known_in_another_process(postgres_url: str) -> None:
    store, heard, known = Store(postgres_url), dict[str, int](), threading.Event()
    here, there = (
        Fanout(store, Live()),
        Fanout(store, Live(), noted=lambda spent: (heard.update(spent), known.set())),
    )
    here.start()
    there.start()
    try:
        for _ in range(200):  # the first may come before it listens
            here.spend("r0123456789abcdef", 7)
            if known.wait(0.1):
                break
        assert set(heard) == {"r0123456789abcdef"}
        assert heard["r0123456789abcdef"] % 7 == 0
    finally:
        here.stop()
        there.stop()
        store.close()


@given(st.text(max_size=200))
def test_whatever_else_comes_is_nothing(payload: str) -> None:
    told = unpack(payload)
    assert told is None or set(told[0]) <= set("0123456789abcdef")


def test_a_stop_without_a_database_ends() -> None:
    store = Store("postgresql+psycopg://nobody@127.0.0.1:1/nothing?connect_timeout=1")
    fanout = Fanout(store, Live())
    fanout.start()
    fanout.tell("r1")
    fanout.stop()
    assert not any(thread.is_alive() for thread in fanout._threads)
