"""The verdict on a command: each of its words, how often it errs, and numbers that are none."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

import pytest

from rlvitals.contract.command import CommandKind
from rlvitals_monitor.control.effect import WINDOW, Effect, Point, Turn, Verdict, Window, compare, judge

STEP = 200
KL = CommandKind.SET_KL_COEF
FULL = Window(first=STEP - WINDOW - 1, step=STEP, last=STEP + WINDOW)
Shape = Callable[[int], float]


def series(shape: Shape, noise: float = 0.1, seed: int = 1, remembers: float = 0.0) -> list[Point]:
    """``noise`` times a normal number that remembers so much of the one before, on top of ``shape``."""
    chance, now, found = random.Random(seed), 0.0, []
    for step in range(STEP - WINDOW, STEP + WINDOW + 1):
        now = remembers * now + math.sqrt(1 - remembers**2) * chance.gauss(0, 1)
        found.append((step, shape(step) + noise * now))
    return found


def level(value: float) -> Shape:
    return lambda step: value


def jump(before: float, after: float) -> Shape:
    return lambda step: before if step < STEP else after


def effect(shapes: Mapping[str, list[Point]], window: Window = FULL, target: float | None = 0.2) -> Effect:
    names = {"reward": "reward.mean", "kl": "kl.capped", "pull": "kl.pull_ratio", "k3": "kl.k3"}
    return judge(KL, target, window, {names[name]: points for name, points in shapes.items()})


CALM = {"reward": series(level(0.5)), "kl": series(level(0.2), 0.02), "pull": series(level(0.3), 0.02)}


def test_a_run_that_goes_on_as_it_was_shows_no_effect() -> None:
    found = effect(CALM)
    assert found.verdict is Verdict.NO_EFFECT
    assert {s.turn for s in found.signals} == {"same"}


def test_a_pull_that_no_longer_dominates_has_helped() -> None:
    found = effect({**CALM, "pull": series(jump(2.0, 0.8), 0.1)})
    assert found.verdict is Verdict.HELPED
    assert "kl.pull_ratio 2" in found.reason


def test_a_kl_that_comes_back_to_its_band_has_helped_and_one_that_leaves_it_is_worse() -> None:
    assert effect({**CALM, "kl": series(jump(0.8, 0.25), 0.02)}).verdict is Verdict.HELPED
    assert effect({**CALM, "kl": series(jump(0.25, 0.8), 0.02)}).verdict is Verdict.WORSE
    assert effect({**CALM, "kl": series(jump(0.2, 0.01), 0.002)}).verdict is Verdict.WORSE


def test_within_its_band_a_kl_may_move() -> None:
    assert effect({**CALM, "kl": series(jump(0.12, 0.28), 0.001)}).verdict is Verdict.NO_EFFECT


def test_without_a_target_kl_is_told_and_not_judged() -> None:
    found = effect({**CALM, "kl": series(jump(0.2, 5.0), 0.02)}, target=None)
    assert found.verdict is Verdict.NO_EFFECT
    assert [s.turn for s in found.signals] == ["same", "told", "same"]


def test_what_made_anything_worse_is_worse_whatever_got_better() -> None:
    both = {**CALM, "pull": series(jump(2.0, 0.8)), "reward": series(jump(0.5, -0.2))}
    assert effect(both).verdict is Verdict.WORSE


def test_a_course_that_was_there_before_is_no_effect() -> None:
    for course in (series(lambda step: 0.01 * step), series(lambda step: -0.01 * step)):
        assert effect({**CALM, "reward": course}).verdict is Verdict.NO_EFFECT


def test_a_drift_that_stops_has_been_helped_although_it_is_farther_than_before() -> None:
    bent = series(lambda step: 0.02 * min(step, STEP), 0.02)
    assert effect({**CALM, "kl": bent}).verdict is Verdict.HELPED


@pytest.mark.parametrize(("remembers", "most"), [(0.0, 0.04), (0.5, 0.08), (0.8, 0.16)])
@pytest.mark.parametrize("rise", [0.0, 0.05])
def test_of_signals_without_an_effect_few_are_told_wrongly(remembers: float, most: float, rise: float) -> None:
    wrong = 0
    for seed in range(200):
        points = series(lambda step: rise * step, 1.0, seed, remembers)
        found = effect({**CALM, "reward": points})
        wrong += found.signals[0].turn != "same"
    assert wrong / 200 <= most


def test_a_move_by_two_and_by_four_of_its_own_deviations_is_seen() -> None:
    seen = {
        size: sum(
            effect({**CALM, "reward": series(jump(0, size), 1.0, seed)}).verdict is Verdict.HELPED
            for seed in range(100)
        )
        for size in (2, 4)
    }
    assert seen[2] >= 50
    assert seen[4] >= 97


@pytest.mark.parametrize(("value", "word"), [(math.nan, "NaN"), (math.inf, "+Inf"), (-math.inf, "−Inf")])
@pytest.mark.parametrize("at", [STEP - 10, STEP + 10])
def test_a_number_that_is_none_leaves_nothing_to_be_said_and_is_named(value: float, word: str, at: int) -> None:
    broken = [(step, value if step == at else v) for step, v in CALM["reward"]]
    found = effect({**CALM, "reward": broken, "pull": series(jump(2.0, 0.8))})
    assert found.verdict is Verdict.NOT_JUDGED
    assert found.reason == f"reward.mean is {word} at step {at}"


def test_what_is_missing_is_left_out_and_named() -> None:
    found = effect({"kl": CALM["kl"], "pull": series(jump(2.0, 0.8))})
    assert found.verdict is Verdict.HELPED
    assert "reward.mean is not measured" in found.reason
    assert effect({}).verdict is Verdict.NOT_JUDGED


def test_a_signal_with_too_few_values_is_left_out() -> None:
    found = effect({**CALM, "reward": CALM["reward"][::5]})
    assert "reward.mean is measured on 10 steps before, 10 after" in found.reason
    assert found.signals[0].missing


def test_the_raw_mean_stands_in_where_nothing_is_capped() -> None:
    found = effect({"reward": CALM["reward"], "k3": series(jump(0.8, 0.25), 0.02)})
    assert [s.metric for s in found.signals] == ["reward.mean", "kl.k3", "kl.pull_ratio"]
    assert found.verdict is Verdict.HELPED


def test_before_the_window_is_full_it_is_too_early() -> None:
    early = Window(first=FULL.first, step=STEP, last=STEP + 12)
    found = effect(CALM, early)
    assert (found.verdict, found.reason) == (Verdict.TOO_EARLY, "12 of 50 steps since")


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        (Window(first=STEP - 10, step=STEP, last=STEP + WINDOW), "only 9 steps before it; 25 are needed"),
        (
            Window(first=FULL.first, step=STEP, last=STEP + 9, closed=True, because="for the run ended"),
            "only 9 steps after it, for the run ended; 25 are needed",
        ),
    ],
)
def test_too_few_steps_on_a_side_are_not_judged(window: Window, reason: str) -> None:
    found = effect(CALM, window)
    assert (found.verdict, found.reason) == (Verdict.NOT_JUDGED, reason)


def test_a_window_that_was_cut_short_is_judged_on_what_it_has() -> None:
    cut = Window(first=FULL.first, step=STEP, last=STEP + 30, closed=True)
    assert effect({**CALM, "pull": series(jump(2.0, 0.5))}, cut).verdict is Verdict.HELPED


@pytest.mark.parametrize("kind", [CommandKind.PAUSE, CommandKind.STOP, CommandKind.CHECKPOINT, CommandKind.RESUME])
def test_what_changes_no_number_is_not_judged(kind: CommandKind) -> None:
    assert judge(kind, None, FULL, {}).verdict is Verdict.NOT_JUDGED


def test_the_step_of_the_change_itself_counts_on_neither_side() -> None:
    spike = [(step, 99.0 if step == STEP else v) for step, v in CALM["reward"]]
    assert effect({**CALM, "reward": spike}).signals[0].after == effect(CALM).signals[0].after


def test_equal_blocks_are_the_same() -> None:
    blocks = [(float(n), 0.0) for n in range(10)]
    assert compare(blocks, blocks) is Turn.SAME
