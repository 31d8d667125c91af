"""GRPO and RLOO of TRL's releases, trained for real: told is what was computed, and training never notices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from rlvitals.contract.command import CommandKind
from rlvitals.integrations.trl import measure, places, pull
from rlvitals.knobs import NO_KNOB
from rlvitals.probes.ratios import NO_OLD
from tests.trainers.trl_versions.lived import CURRENT, lived

STORIES = [
    ("trl-0.15", "grpo"),
    ("trl-0.17", "grpo"),
    ("trl-0.20", "grpo"),
    ("trl-0.23", "grpo"),
    ("trl-0.29", "grpo"),
    ("trl-1.7", "grpo"),
    ("trl-1.13", "grpo"),
    (CURRENT, "grpo"),
    ("trl-0.23", "rloo"),
    ("trl-0.29", "rloo"),
    ("trl-1.7", "rloo"),
    (CURRENT, "rloo"),
]

Story = dict[str, Any]


@pytest.fixture(scope="session", params=STORIES, ids=["-".join(pair) for pair in STORIES])
def story(
    request: pytest.FixtureRequest, environment: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Story:
    """Lived through once for all tests of it."""
    name, kind = request.param
    found = lived(environment, name, "story", kind, folder=tmp_path_factory.mktemp(f"{name}-{kind}"))
    return {**found, "kind": kind}


def shows_rewards(story: Story) -> bool:
    return bool(story["watched"]["hooks"][places.REWARDS] != "absent")


def shows_completions(story: Story) -> bool:
    return bool(story["watched"]["hooks"][places.GENERATION] != "absent")


def test_the_trainer_is_of_the_release_that_was_asked_for(story: Story, request: pytest.FixtureRequest) -> None:
    asked = request.node.callspec.params["story"][0].removeprefix("trl-")
    assert asked == CURRENT or story["version"].startswith(f"{asked}.")


def test_steps_seen_are_steps_run(story: Story) -> None:
    assert story["watched"]["steps"] == list(range(1, story["watched"]["trained"] + 1))


def test_each_metric_of_the_registry_is_given_or_missing_with_a_reason(story: Story) -> None:
    watched = story["watched"]
    assert not any(watched["unsaid"]), watched["unsaid"][0]
    assert not any(watched["both"])
    assert all(reason for missing in watched["missing"] for reason in missing.values())


def test_what_is_told_is_what_the_recorded_tensors_say(story: Story) -> None:
    watched = story["watched"]
    for told, by_hand in zip(watched["values"], watched["by_hand"], strict=True):
        scale = told["policy.loss"] / by_hand["policy.loss"] if by_hand["policy.loss"] else 1.0
        assert scale == pytest.approx(1.0) or scale == pytest.approx(0.5), "where transformers divides by 2 later"
        for name, value in by_hand.items():
            if name == "policy.loss" or (name == "reward.group_std" and not shows_rewards(story)):
                continue
            if name.startswith(("text.", "length.")) and not shows_completions(story):
                continue
            assert told[name] == pytest.approx(value, rel=1e-4, abs=1e-7), name


def test_the_loss_told_is_the_loss_that_the_trainer_logs(story: Story) -> None:
    watched = story["watched"]
    told = [values["policy.loss"] for values in watched["values"]]
    assert told == pytest.approx(watched["logged"], abs=6e-5), "transformers 4 rounds to four digits"


def test_ratios_are_measured_where_the_trainer_keeps_old_log_probs(story: Story) -> None:
    second, missing = story["watched"]["values"][1], story["watched"]["missing"][1]
    if story["version"] == "0.15.2":
        assert missing["ratio.max"] == NO_OLD
    elif story["kind"] == "grpo":
        assert second["ratio.max"] > 1.001
    else:
        assert missing["ratio.max"] == pull.SEQUENCE_PULL


def test_a_trainer_that_shows_no_rewards_says_so_and_tells_what_it_logs(story: Story) -> None:
    watched = story["watched"]
    if shows_rewards(story):
        assert watched["values"][0]["rewards/letters/variance_share"] == pytest.approx(1.0)
        assert watched["why"][places.REWARDS] == ""
    else:
        assert "it came with 0.19" in watched["why"][places.REWARDS]
        assert watched["values"][0]["reward.mean"] > 0
        assert "reward.min" in watched["missing"][0]
    if not shows_completions(story):
        assert "it came with 0.16" in watched["missing"][0]["text.top_id_share"]
    assert (watched["texts"] > 0) is shows_completions(story)


def test_every_hook_that_is_there_has_shown_something(story: Story) -> None:
    hooks = dict(story["watched"]["hooks"])
    optional = {places.EVALUATE, places.SAVE}
    absent = {name for name, state in hooks.items() if state == "absent"}
    assert absent <= {places.REWARDS, places.GENERATION}
    assert {name for name, state in hooks.items() if state == "seen"} == set(hooks) - absent - optional


def test_the_kl_of_the_reward_and_its_part_of_the_advantages_are_measured(story: Story) -> None:
    if story["kind"] == "grpo":
        assert story["watched"]["values"][-1]["kl.grad_norm"] > 0
        assert story["watched"]["config"]["kl_estimator"].startswith("k3")
        return
    told = story["penalised"]["values"]
    for name, value in story["penalised"]["by_hand"].items():
        assert told[name] == pytest.approx(value, rel=1e-4, abs=1e-7), name
    assert 0 < told["kl.share_of_gradient"] < 1
    assert story["penalised"]["missing"]["kl.grad_norm"] == measure.NOT_IN_LOSS
    assert story["watched"]["missing"][1]["kl.k1"] == measure.IN_REWARD, "no generation in this step"
    assert story["watched"]["config"] == {"kl_estimator": "k1", "kl_in": "reward", "kl_coef": 0.05}


def test_a_nan_loss_that_the_trainer_logs_as_0_is_told_as_nan_at_its_step(story: Story) -> None:
    told, logged = ([float(loss) for loss in story["poisoned"][what]] for what in ("told", "logged"))
    assert [math.isnan(loss) for loss in told] == [False, False, True, False]
    assert len(logged) == 4
    assert logged[2] == 0


def test_weights_are_bit_for_bit_those_of_a_training_without_us(story: Story) -> None:
    assert story["watched"]["weights"] == story["unwatched"]


def test_weights_are_bit_for_bit_the_same_where_every_hook_raises(story: Story) -> None:
    assert story["raising"]["weights"] == story["unwatched"]
    hidden = 0 if shows_rewards(story) else 1
    hidden += 0 if shows_completions(story) else 2
    assert len(story["raising"]["called"]) == 11 - hidden


def test_commands_are_carried_out_and_their_values_read_back(story: Story) -> None:
    steered = story["steered"]
    outcomes: Mapping[str, list[Any]] = {name: rest for name, *rest in steered["outcomes"]}
    assert outcomes["kl"] == ["applied", 0.05, 0.02]
    assert outcomes["lr"] == ["applied", pytest.approx(1e-2), pytest.approx(5e-3)]
    assert {state for state, *_ in outcomes.values()} == {"applied"}
    assert steered["kl"] == [0.05] + [0.02] * 4
    assert steered["lr"] == pytest.approx([1e-2] * 2 + [5e-3] * 3)
    assert steered["can"] == {kind.value: "" for kind in CommandKind} | {"set_knob": NO_KNOB}


def test_a_pause_holds_between_two_steps_and_stop_saves(story: Story) -> None:
    assert story["steered"]["beats"] == [2, 2, 2]
    assert story["steered"]["steps"] == 5
    assert story["steered"]["checkpoints"] == ["checkpoint-3", "checkpoint-5"]


def test_a_resumed_training_gets_its_changed_coefficient_back(story: Story) -> None:
    assert story["resumed"] == {"configured": 0.05, "beta": 0.02, "steps": [4, 5]}
