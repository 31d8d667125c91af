from __future__ import annotations

import math

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals_monitor import intake
from rlvitals_monitor.errors import TooMany
from rlvitals_monitor.intake import Bucket, Intake, IntakeSettings, Quota, Room, Turns, spend, values_in
from tests.monitor.batches import batch, step


def test_a_quota_is_a_minutes_worth_and_comes_back_with_time() -> None:
    bucket, wait_s = spend(None, 60, 0.0, per_minute=60)
    assert (bucket.left, wait_s) == (0, 0)
    bucket, wait_s = spend(bucket, 1, 0.0, per_minute=60)
    assert wait_s == 1
    bucket, wait_s = spend(bucket, 1, 1.5, per_minute=60)
    assert (bucket.left, wait_s) == (0.5, 0)


def test_a_batch_larger_than_a_whole_minutes_worth_is_taken_once_and_paid_for_afterwards() -> None:
    bucket, wait_s = spend(None, 600, 0.0, per_minute=60)
    assert wait_s == 0
    bucket, wait_s = spend(bucket, 1, 0.0, per_minute=60)
    assert wait_s == pytest.approx(541)


@given(st.lists(st.tuples(st.floats(-5, 30), st.floats(0, 500)), max_size=40))
def test_whoever_waits_as_told_is_let_in_and_the_rate_holds_whatever_the_clock_does(
    asked: list[tuple[float, float]],
) -> None:
    bucket: Bucket | None = None
    now = highest = taken = 0.0
    for pause, cost in asked:
        now += pause
        highest = max(highest, now)
        bucket, wait_s = spend(bucket, cost, now, per_minute=60)
        taken += 0.0 if wait_s else cost
        if wait_s:
            assert spend(bucket, cost, now + wait_s, per_minute=60)[1] == 0
        assert math.isfinite(bucket.left)
        assert bucket.left <= 60
    total = sum(abs(pause) for pause, _ in asked)
    assert taken <= 60 + total + max((cost for _, cost in asked), default=0) + 1e-6


def test_one_runs_quota_is_not_anothers_and_not_that_of_a_stranger_who_names_it() -> None:
    taken = Intake(IntakeSettings(run_values_per_minute=2), clock=lambda: 0.0)
    full = batch(step(1, 1, {"a": math.nan, "b": math.inf}))
    taken.charge(full, "stranger")
    taken.charge(full, "owner")
    with pytest.raises(TooMany, match="may report 2 values a minute") as refused:
        taken.charge(full, "owner")
    assert refused.value.retry_after_s > 0
    taken.charge(batch(step(1, 1, {"a": 1.0}), run="r2"), "owner")


def test_what_one_collector_takes_of_a_quota_another_has_no_more() -> None:
    settings = IntakeSettings(run_values_per_minute=10, token_values_per_minute=25)
    here, there = (Intake(settings, clock=lambda: 0.0) for _ in range(2))
    here.told = lambda name, cost: there.note({name: cost})
    here.charge(batch(step(1, 1, dict.fromkeys("abcdefghij", math.nan))), "owner")
    with pytest.raises(TooMany, match="run 'r1 of owner'"):
        there.charge(batch(step(2, 2, {"a": 1.0})), "owner")
    for run in ("r2", "r3"):
        here.charge(batch(step(1, 1, dict.fromkeys("abcdefghij", math.inf)), run=run), "owner")
    with pytest.raises(TooMany, match="token 'owner'"):
        there.charge(batch(step(1, 1, {"a": 1.0}), run="r4"), "owner")
    there.charge(batch(step(1, 1, {"a": 1.0}), run="r4"), "another")


def test_what_is_refused_or_bound_by_nothing_is_not_told_to_others() -> None:
    told: list[tuple[str, int]] = []
    taken = Intake(IntakeSettings(run_values_per_minute=1), clock=lambda: 0.0)
    taken.told = lambda name, cost: told.append((name, cost))
    taken.charge(batch(step(1, 1, {"a": -math.inf}, missing={"b": "not asked"})), "owner")
    with pytest.raises(TooMany):
        taken.charge(batch(step(2, 2, {"a": 1.0})), "owner")
    taken.charge(batch(), "owner")
    assert [cost for _, cost in told] == [1], "of a run; a token is bound by nothing"


def test_a_heartbeat_costs_nothing_so_that_a_run_over_its_quota_is_not_taken_for_dead() -> None:
    taken = Intake(IntakeSettings(run_values_per_minute=1), clock=lambda: 0.0)
    taken.charge(batch(step(1, 1, {"a": 1.0})), "owner")
    for _ in range(5):
        taken.charge(batch(), "owner")


def test_what_is_missing_counts_for_nothing_and_what_is_not_finite_as_any_value() -> None:
    told = step(1, 1, {"a": math.nan, "b": math.inf, "c": -math.inf}, missing={"d": "not asked"})
    assert values_in(batch(told)) == 3


def test_a_quota_of_none_is_none_and_names_without_end_take_no_memory_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(intake, "BUCKETS_MAX", 3)
    none, some = Quota("run", 0), Quota("run", 10, clock=lambda: 0.0)
    for number in range(100):
        none.charge("r", 1e9)
        some.charge(f"r{number}", 1)
    assert len(some._buckets) == 3


def test_an_id_as_long_as_a_book_is_not_remembered() -> None:
    taken = Intake(IntakeSettings(), clock=lambda: 0.0)
    taken.charge(batch(step(1, 1, {"a": 1.0}), run="r" * 1_000_000), "owner")
    assert max(map(len, taken._runs._buckets)) < 1_000


def test_a_full_room_refuses_the_next_and_is_free_again_when_those_in_it_leave() -> None:
    room = Room(10 * intake.HOLDING_MIN_BYTES)
    held = [room.hold() for _ in range(10)]
    with pytest.raises(TooMany, match="no room"):
        room.hold()
    for holding in held:
        with holding:
            pass
    assert room.held == 0
    room.hold()


def test_one_alone_gets_what_it_asks_for_and_is_refused_only_beside_others() -> None:
    room = Room(1)
    with room.hold() as alone:
        alone.grow(1 << 30)
        with pytest.raises(TooMany):
            room.hold()
    assert room.held == 0


def test_batches_of_one_run_wait_for_each_other_and_hold_up_no_other_run() -> None:
    order: list[str] = []

    async def scenario() -> None:
        turns = Turns(1)

        async def take(run: str, name: str, until: anyio.Event | None = None) -> None:
            async with turns.of(run):
                order.append(name)
                if until is not None:
                    await until.wait()

        done = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(take, "r1", "first", done)
            await anyio.wait_all_tasks_blocked()
            group.start_soon(take, "r1", "second")
            await anyio.wait_all_tasks_blocked()
            await take("r2", "another run")
            done.set()
        assert turns._queues == {}

    anyio.run(scenario)
    assert order == ["first", "another run", "second"]


def test_a_batch_that_waits_too_long_for_its_turn_is_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        turns = Turns(1)
        async with turns.of("r1"):
            monkeypatch.setattr(intake, "TURN_S", 0.0)
            with pytest.raises(TooMany, match="batches waiting"):
                async with turns.of("r1"):
                    pass
        assert turns._queues == {}

    anyio.run(scenario)
