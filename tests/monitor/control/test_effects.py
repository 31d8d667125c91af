"""The effect of a command in the store: which steps are looked at, on both databases."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from rlvitals.contract.report import Phase
from rlvitals.contract.steering import EffectView
from rlvitals_monitor.control.effects import effect_of
from rlvitals_monitor.errors import NotFound
from rlvitals_monitor.store import commands
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import store_batch
from tests.monitor.batches import batch, heartbeat
from tests.monitor.control.live import CALM, PULLED, LiveRun


def steered(store: Store, then: int = 50) -> LiveRun:
    """A policy lowers at step 49, the trainer follows at 50 and goes on for ``then`` steps."""
    live = LiveRun(store=store)
    live.choose()
    live.rest({**PULLED, "kl.pull_ratio": 1.2}, 48)
    live.train({**PULLED, "kl.pull_ratio": 1.2}, 2, 48)
    if then:
        live.rest({**CALM, "kl.pull_ratio": 0.5}, then + 1, 50)
    return live


def effect(live: LiveRun, number: int = 0) -> EffectView:
    with live.store.read() as conn:
        return effect_of(conn, live.commands()[number].id)


def test_the_steps_before_and_after_are_compared_and_told(store: Store) -> None:
    found = effect(steered(store))
    assert (found.verdict, found.step, found.first, found.last) == ("helped", 50, 0, 100)
    pull = found.signals[2]
    assert (pull.metric, pull.turn) == ("kl.pull_ratio", "better")
    assert pull.before == pytest.approx(1.2)
    assert len(pull.step) == len(pull.value) == 101


def test_too_early_is_told_with_how_far_it_is(store: Store) -> None:
    found = effect(steered(store, then=7))
    assert (found.verdict, found.reason) == ("too early", "7 of 50 steps since")


def test_the_end_of_a_run_closes_the_window(store: Store) -> None:
    live = steered(store, then=7)
    with store.begin() as conn:
        store_batch(conn, batch(run="r1", attempt="a1", heartbeat=heartbeat(Phase.FINISHED, 57)), live.now(60))
    found = effect(live)
    assert (found.verdict, found.reason) == (
        "not judged",
        "only 7 steps after it, for the run ended; 25 are needed",
    )


def test_a_later_attempt_closes_the_window_and_its_steps_do_not_count(store: Store) -> None:
    live = steered(store, then=30)
    live.attempt = "a2"
    live.rest({**CALM, "kl.pull_ratio": 9.0}, 60, 60)
    found = effect(live)
    assert (found.verdict, found.attempt, found.last) == ("helped", "a1", 80)


def test_another_change_ends_the_window(store: Store) -> None:
    live = steered(store, then=80)
    (made,) = live.commands()
    with store.begin() as conn:
        commands.add(conn, replace(made, id="f" * 32, step=70, created_at=live.now(70), done_at=live.now(70)))
    first, second = (effect(live, n) for n in (0, 1))
    assert first.last == 69
    assert "another command changed a number at step 70" in first.reason
    assert (second.first, second.verdict) == (51, "not judged")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_kept_as_it_is_and_not_judged(store: Store, value: float) -> None:
    live = steered(store, then=0)
    live.rest(CALM, 20, 50)
    live.rest({**CALM, "reward.mean": value}, 1, 70)
    live.rest(CALM, 31, 71)
    found = effect(live)
    assert found.verdict == "not judged"
    assert "at step 70" in found.reason
    shown = dict(zip(found.signals[0].step, found.signals[0].value, strict=True))[70]
    assert math.isnan(shown) if math.isnan(value) else shown == value


def test_a_command_that_was_never_applied_had_no_effect(store: Store) -> None:
    live = LiveRun(store=store, obeys=False)
    live.choose()
    live.rest(PULLED, 48)
    live.train(PULLED, 2, 48)
    found = effect(live)
    assert (found.verdict, found.reason) == ("not judged", "it is pending, so it had no effect")


def test_an_unknown_command_is_not_found(store: Store) -> None:
    with store.read() as conn, pytest.raises(NotFound):
        effect_of(conn, "0" * 32)


def test_a_target_that_was_chosen_with_the_policy_goes_before_the_runs_own(store: Store) -> None:
    live = steered(store)
    assert effect(live).signals[1].turn == "same"
    live.choose(target=5.0)
    assert "kl.capped 0.2 → 0.2" in effect(live).reason
