"""Silences in the store, on both databases."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from sqlalchemy import update

from rlvitals.contract.view import SilencePurpose, SilenceState
from rlvitals_monitor.silences.hours import Hours
from rlvitals_monitor.store import silences, tables
from rlvitals_monitor.store.engine import Store
from tests.monitor.planted import NOW, later
from tests.monitor.silences.test_silence import HOUR, a_silence


def test_what_is_kept_comes_back_as_it_was(store: Store) -> None:
    made = a_silence(
        "rule=kl_*",
        "run!=r9",
        purpose=SilencePurpose.MAINTENANCE,
        who="ann",
        why="new disks",
        ends_at=NOW + timedelta(days=300),
        hours=Hours.read("0 22 * * 5", "Europe/Berlin", 7200),
    )
    with store.begin() as conn:
        assert silences.add(conn, made) == made
        assert silences.find(conn, "nothing") is None


def test_text_that_no_column_can_have_is_made_fit(store: Store) -> None:
    with store.begin() as conn:
        kept = silences.add(conn, a_silence(who="a\0b", why="\ud800" + "x" * 5000))
    assert kept.who == "a\ufffdb"
    assert len(kept.why) == silences.WHY_LIMIT


def test_only_what_is_in_force_is_active(store: Store) -> None:
    nightly = Hours.read("0 22 * * *", "UTC", HOUR)
    with store.begin() as conn:
        silences.add(conn, a_silence(id="now"))
        silences.add(conn, a_silence(id="soon", starts_at=later(10)))
        silences.add(conn, a_silence(id="over", starts_at=later(-20), ends_at=NOW))
        silences.add(conn, a_silence(id="nightly", ends_at=NOW + timedelta(days=9), hours=nightly))
    with store.read() as conn:
        assert [s.id for s in silences.active(conn, NOW)] == ["now"]
        night = silences.active(conn, NOW.replace(hour=22))
    assert [(s.id, s.ends_at) for s in night] == [("nightly", NOW.replace(hour=23))]


def test_one_that_cannot_be_read_any_more_silences_nothing_and_holds_up_no_other(store: Store) -> None:
    hours = Hours(cron="0 22 * * *", zone="UTC", lasts_s=60)
    broken = {
        "zone": {"alerts": ["rule=a"], "hours": {"cron": "0 22 * * *", "zone": "Gone/Away", "lasts_s": 60}},
        "cron": {"alerts": ["rule=a"], "hours": {"cron": "never", "zone": "UTC", "lasts_s": 60}},
        "more": {"alerts": ["rule=a"], "hours": {"cron": "0 22 * * *", "moon": "full"}},
        "none": {"hours": None},
        "text": {"alerts": ["everything"]},
    }
    with store.begin() as conn:
        silences.add(conn, a_silence(id="good"))
        for name, matchers in broken.items():
            silences.add(conn, a_silence(id=name, hours=hours))
            conn.execute(update(tables.silences).where(tables.silences.c.id == name).values(matchers=matchers))
    with store.read() as conn:
        assert [s.id for s in silences.active(conn, NOW)] == ["good"]


def test_one_that_is_ended_is_not_in_force_any_more_and_says_who_did_it(store: Store) -> None:
    with store.begin() as conn:
        silences.add(conn, a_silence())
        assert silences.end(conn, "s1", "bob", later(60))
        assert not silences.end(conn, "s1", "eve", later(61))
        assert not silences.end(conn, "nothing", "eve", later(61))
        ended = silences.find(conn, "s1")
        assert silences.active(conn, later(60)) == ()
    assert ended == replace(a_silence(), ends_at=later(60), ended_by="bob")


def test_pages_are_newest_first_and_may_be_of_some_states_only(store: Store) -> None:
    with store.begin() as conn:
        for n in range(5):
            ends = later(HOUR) if n % 2 else later(n)
            silences.add(conn, a_silence(id=f"s{n}", created_at=later(n), ends_at=ends))
    with store.read() as conn:
        first, more = silences.page(conn, later(10), limit=3)
        second, end = silences.page(conn, later(10), after=more, limit=3)
        active, none = silences.page(conn, later(10), states=[SilenceState.ACTIVE], limit=2)
    assert [s.id for s in (*first, *second)] == ["s4", "s3", "s2", "s1", "s0"]
    assert end is None
    assert [s.id for s in active] == ["s3", "s1"]
    assert none is None
