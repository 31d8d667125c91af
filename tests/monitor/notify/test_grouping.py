"""Which runs a message is about, and when: pure."""

from __future__ import annotations

from rlvitals_monitor.notify.channel import Channel, ChannelKind
from rlvitals_monitor.notify.grouping import choose, ready_at
from rlvitals_monitor.store.contents import Lately
from rlvitals_monitor.store.due import DueRun
from tests.monitor.planted import NOW, later


def channel(**given: object) -> Channel:
    fields: dict[str, object] = {"name": "team", "kind": ChannelKind.SLACK, "url": "https://chat.example/x"}
    return Channel(**{**fields, "group_wait_s": 10.0, "group_interval_s": 300.0, **given})  # type: ignore[arg-type]


def runs(count: int, rank: int = 1) -> list[DueRun]:
    return [DueRun(run=f"r{i}", since=NOW, rank=rank) for i in range(count)]


def test_the_first_news_of_a_run_waits_for_company() -> None:
    (one,) = runs(1)
    assert ready_at(channel(), one, None) == later(10)
    assert choose(channel(), [one], {}, 0, later(9)) == ()
    assert choose(channel(), [one], {}, 0, later(10)) == ("r0",)


def test_later_news_waits_for_the_intervals_end_unless_it_is_stronger() -> None:
    (one,) = runs(1)
    assert ready_at(channel(), one, Lately(at=NOW, rank=1)) == later(300)
    assert ready_at(channel(), one, Lately(at=NOW, rank=0)) == later(10)


def test_a_recovery_is_never_stronger() -> None:
    (over,) = runs(1, rank=-1)
    assert ready_at(channel(), over, Lately(at=NOW, rank=-1)) == later(300)


def test_a_few_runs_get_a_message_each_the_weightiest_first() -> None:
    some = [*runs(2), DueRun(run="worse", since=later(1), rank=2)]
    assert choose(channel(budget=3), some, {}, 0, later(60)) == ("worse",)


def test_more_runs_than_the_budget_lets_through_become_one_digest() -> None:
    assert len(choose(channel(budget=3), runs(4), {}, 0, later(60))) == 4
    assert len(choose(channel(budget=20), runs(4), {}, 17, later(60))) == 4
    assert len(choose(channel(budget=20), runs(3), {}, 17, later(60))) == 1


def test_the_gap_between_messages_is_a_budget_too() -> None:
    slow = channel(gap_s=20.0)
    assert len(choose(slow, runs(4), {}, 0, later(60))) == 4
    assert len(choose(slow, runs(3), {}, 0, later(60))) == 1
    assert len(choose(channel(gap_s=600.0), runs(1), {}, 0, later(60))) == 1


def test_many_that_fall_silent_at_once_are_told_of_at_once_but_not_before_what_weighs_more() -> None:
    silent = [DueRun(run=f"s{i}", since=NOW, rank=1, of_signs=True) for i in range(3)]
    assert choose(channel(), silent, {}, 0, later(60)) == ("s0", "s1", "s2")
    assert choose(channel(), silent[:2], {}, 0, later(60)) == ("s0",)
    assert choose(channel(), [*runs(1, rank=2), *silent], {}, 0, later(60)) == ("r0",)
    assert choose(channel(), [*runs(1, rank=0), *silent], {}, 0, later(60)) == ("s0", "s1", "s2")


def test_nothing_goes_when_the_budget_is_spent() -> None:
    assert choose(channel(budget=3), runs(4), {}, 3, later(60)) == ()


def test_a_run_that_may_not_be_told_of_yet_is_in_no_digest() -> None:
    lately = {"r1": Lately(at=later(30), rank=1)}
    assert set(choose(channel(budget=1), runs(3), lately, 0, later(60))) == {"r0", "r2"}
