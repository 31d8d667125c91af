"""Reward components over steps."""

from __future__ import annotations

import json
import math
import random

import pytest

from rlvitals_monitor.alerts.components import (
    CONSTANT,
    MOST,
    TASK_TRADED,
    TRADED,
    Components,
    is_component,
    is_task,
)

ACCURACY, FORMAT = "rewards/accuracy_reward", "rewards/format_reward"


@pytest.mark.parametrize(
    "name",
    [
        "rewards/format/mean",
        "rewards/format",
        "train/rewards/format/mean",
        "reward/accuracy",
        "rewards / correctness / mean",
        "critic/answer_score/mean",
        "rewards/MultiModalAccuracyORM",
    ],
)
def test_a_component_s_mean_is_known_as_trainers_write_it(name: str) -> None:
    assert is_component(name)


@pytest.mark.parametrize(
    "name",
    ["rewards/format/std", "reward/mean", "reward/mean@1", "rewards/chosen", "critic/rewards/mean", "reward_std"],
)
def test_what_is_no_component_is_none(name: str) -> None:
    assert not is_component(name)


def test_the_task_is_known_by_a_word_of_the_name() -> None:
    assert all(map(is_task, ["rewards/accuracy_reward", "rewards/MultiModalAccuracyORM", "reward/correct"]))
    assert not any(map(is_task, ["rewards/format_reward", "rewards/answer_format", "rewards/brevity"]))


def test_a_step_without_components_adds_nothing() -> None:
    assert Components().derive({"reward.mean": 1.0, "loss/x": 2.0}) == {}


def test_the_longest_standing_component_is_named_and_nan_ends_its_run() -> None:
    known = Components()
    for value in (0.1, 0.2, 0.3):
        found = known.derive({FORMAT: 1.0, ACCURACY: value})
    assert (found[CONSTANT], known.names[CONSTANT]) == (3.0, FORMAT)
    for bad in (math.nan, math.inf, -math.inf):
        assert known.derive({FORMAT: bad, ACCURACY: 0.3})[CONSTANT] >= 2.0
        assert known.names[CONSTANT] == ACCURACY
    assert known.derive({ACCURACY: 0.4})[CONSTANT] == 1.0
    assert TRADED not in found


def test_a_loss_counts_only_while_the_total_has_grown() -> None:
    known = Components()
    steps = [(0.16, 0.5, 0.7), (0.12, 0.6, 0.69), (0.04, 0.9, 0.9)]
    found = [known.derive({ACCURACY: a, FORMAT: f, "reward.mean": total}) for a, f, total in steps]
    assert [one[TRADED] for one in found] == [0.0, 0.0, pytest.approx(0.75)]
    assert known.names[TRADED] == ACCURACY
    assert TASK_TRADED not in found[-1]


def test_before_there_are_levels_one_step_up_is_enough_to_say_nothing() -> None:
    known = Components()
    steps = [(0.3, 0.7), (0.4, 0.6), (0.2, 0.8), (0.1, 0.9)]
    assert [known.derive({ACCURACY: a, "reward.mean": total})[TRADED] for a, total in steps] == [0.0] * 4


@pytest.mark.parametrize(("rate", "group"), [(0.02, 32), (0.05, 8), (0.3, 8), (0.6, 16)])
def test_the_noise_of_small_batches_is_no_trade(rate: float, group: int) -> None:
    """Right answers by chance at a constant rate, a format that is learned meanwhile."""
    chance = random.Random(7)
    for _ in range(5):
        known, lost = Components(), []
        for at in range(300):
            right = sum(chance.random() < rate for _ in range(group)) / group
            found = known.derive({ACCURACY: right, FORMAT: at / 300, "reward.mean": right + at / 300})
            lost.append(found.get(TASK_TRADED, 0.0))
        assert max(map(min, zip(*(lost[k:] for k in range(10)), strict=False))) <= 0.3


@pytest.mark.parametrize("total", [math.nan, math.inf, None])
def test_a_total_that_is_no_number_or_missing_says_nothing(total: float | None) -> None:
    known = Components()
    known.derive({ACCURACY: 0.4, "reward.mean": 0.5})
    values = {ACCURACY: 0.1} | ({} if total is None else {"reward.mean": total})
    assert TRADED not in known.derive(values)


def test_what_is_remembered_survives_as_json_at_any_step() -> None:
    rows = [{ACCURACY: 0.5 - 0.004 * at, FORMAT: 1.0, "reward.mean": 0.6 + 0.003 * at} for at in range(120)]
    whole, parts = Components(), Components()
    for at, row in enumerate(rows):
        if at % 7 == 0:
            kept = json.loads(json.dumps(parts.dump(), allow_nan=False))
            parts = Components()
            parts.restore(kept)
        assert parts.derive(row) == whole.derive(row)
    assert whole.derive(rows[-1])[TASK_TRADED] > 0.5


def test_the_largest_doubles_neither_overflow_nor_spoil_what_is_kept() -> None:
    known = Components()
    for value in (1.7e308, -1.7e308, 0.5, 0.4):
        found = known.derive({ACCURACY: value, "reward.mean": 1e308 if value > 1 else 0.5})
    assert found[TRADED] == 0.0
    json.dumps(known.dump(), allow_nan=False)


def test_names_without_end_are_followed_up_to_a_bound() -> None:
    known = Components()
    for at in range(MOST + 9):
        known.derive({f"rewards/sample_{at}": 1.0})
    assert len(known.known) == MOST


def test_entries_that_were_never_written_are_left_out() -> None:
    known = Components()
    known.restore({"rewards/x": "what", "rewards/y": [1, 2]})
    assert known.known == {}
