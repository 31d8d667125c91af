"""Logs as steps for the engine."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from rlvitals.formats.log import Format
from rlvitals_monitor.importers.derived import derive
from rlvitals_monitor.importers.past_run import read_past_run


def test_a_log_gives_increasing_training_steps_and_says_what_it_could_not_read(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(
        "step:4 - actor/grad_norm:0.5 - mine:1\nstep:5 - actor/grad_norm:what\nstep:6 - actor/grad_norm:nan\n"
        "{'eval_reward': 1.0, 'eval_loss': 2.0}\nstep:5 - actor/grad_norm:0.7\nstep:7 - actor/grad_norm:inf\n"
    )
    past = read_past_run(log)
    steps = list(past.steps)
    assert past.format is Format.CONSOLE
    assert [step for step, _, _ in steps] == [4, 6, 7]
    assert math.isnan(steps[1][2]["gradient.norm"])
    assert steps[2][2]["gradient.norm"] == math.inf
    assert (past.bad_count, past.bad_lines[0].line) == (1, 2)
    assert set(past.unknown) == {"mine", "eval_loss", "eval_reward"}
    assert [past.lines[step] for step in (4, 6, 7)] == [1, 3, 6]
    with pytest.raises(KeyError):
        past.lines[5]
    assert not past.counted


def test_rows_without_steps_are_counted_and_that_is_told(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("{'loss': 1.0, 'reward': 2.0}\n{'loss': 1.0, 'reward': 2.0}\n")
    past = read_past_run(log, stride=5)
    assert [step for step, _, _ in past.steps] == [1, 6]
    assert past.counted


def test_the_largest_advantage_follows_from_the_two_ends_and_nan_is_not_lost() -> None:
    assert derive({"critic/advantages/max": 1.5, "critic/advantages/min": -2.0}) == {
        "reward.advantage_abs_max": 2.0
    }
    both = derive({"critic/advantages/max": 1.5, "critic/advantages/min": math.nan})
    assert math.isnan(both["reward.advantage_abs_max"])
    assert derive({"critic/advantages/max": 1.5}) == {}
