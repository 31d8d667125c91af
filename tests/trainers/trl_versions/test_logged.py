"""PPO, OnlineDPO, Nash-MD and XPO of TRL, trained for real: what they log is told, and they can be steered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlvitals.integrations.trl import facts
from tests.trainers.trl_versions.lived import CURRENT, lived

TRAINERS = [("trl-0.29", "ppo"), ("trl-0.29", "nash_md"), ("trl-0.29", "xpo"), (CURRENT, "online_dpo")]

Story = dict[str, Any]


@pytest.fixture(scope="session", params=TRAINERS, ids=["-".join(pair) for pair in TRAINERS])
def story(
    request: pytest.FixtureRequest, environment: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Story:
    """Lived through once for all tests of it."""
    name, kind = request.param
    found = lived(environment, name, "logged", kind, folder=tmp_path_factory.mktemp(f"{name}-{kind}"))
    return {**found, "kind": kind}


def test_weights_are_bit_for_bit_those_of_a_training_without_us(story: Story) -> None:
    assert story["watched"] == story["plain"]


def test_steps_seen_are_steps_run_and_nothing_is_left_unsaid(story: Story) -> None:
    assert story["steps"] == list(range(1, story["trained"] + 1))
    assert not any(story["unsaid"])
    assert "shows what it logs, not its tensors" in story["missing"]["ratio.max"]


def test_each_step_tells_its_own_numbers_whatever_the_logging_interval(story: Story) -> None:
    if story["kind"] == "ppo":
        scores = [entry["objective/scores"] for entry in story["logged"] if "objective/scores" in entry]
        assert [values["reward.mean"] for values in story["values"]] == pytest.approx(scores)
        assert [values["episode"] for values in story["values"]] == [4, 8, 12, 16]
        assert all("critic.value_loss" in values and "policy.entropy" in values for values in story["values"])
    else:
        assert [values["beta"] for values in story["values"]] == [0.05, 0.02, 0.02]
        assert all("objective/entropy" in values for values in story["values"])
        assert [("policy.loss" in values) for values in story["values"]] == [False, True, False]


def test_the_coefficient_is_set_and_the_trainer_uses_it_from_the_next_step_on(story: Story) -> None:
    assert story["outcomes"]["kl"][:3] == ["applied", 0.05, 0.02]
    assert [values["kl.coef"] for values in story["values"]][:3] == [0.05, 0.02, 0.02]
    for values in story["values"]:
        if "objective/non_score_reward" in values and abs(values["objective/kl"]) > 1e-6:
            share = -values["objective/non_score_reward"] / values["objective/kl"]
            assert share == pytest.approx(values["kl.coef"], rel=1e-3)


def test_a_loop_that_never_asks_whether_to_stop_says_so_and_the_others_stop(story: Story) -> None:
    if story["kind"] == "ppo":
        assert story["outcomes"]["s"][0] == "refused"
        assert story["outcomes"]["s"][3] == story["can"]["stop"] == facts.NEVER_STOPS
        assert story["trained"] == 4
    else:
        assert story["outcomes"]["s"][0] == "applied"
        assert story["trained"] == 3


def test_pause_rate_and_checkpoint_work(story: Story) -> None:
    assert story["beats"] == [2, 2, 2]
    assert story["outcomes"]["lr"][:3] == ["applied", pytest.approx(1e-3), pytest.approx(5e-4)]
    assert story["checkpoints"] == ["checkpoint-3"]
    assert story["values"][-1]["policy.learning_rate"] == pytest.approx(5e-4)


@pytest.mark.parametrize(("name", "major"), [("trl-0.23", "4."), (CURRENT, "5.")])
def test_reporting_to_rlvitals_works_with_each_major_of_transformers(
    environment: Callable[[str], Path], tmp_path: Path, name: str, major: str
) -> None:
    told = lived(environment, name, "named", folder=tmp_path)
    assert told["transformers"].startswith(major)
    assert not told["before"], "rlvitals comes first here"
    assert told["steps"] == [1, 2, 3, 4]
    assert told["rewards"] == pytest.approx(told["logged"])
    assert told["public"]
