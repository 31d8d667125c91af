"""The names and arguments of OpenRLHF that we rely on, in the source of each release that we say we work with."""

from __future__ import annotations

import ast

import pytest

from rlvitals.integrations.openrlhf.arguments import _NAMES
from rlvitals.integrations.openrlhf.places import EVALUATION, FIT_ASYNC, PLACES, Place
from rlvitals.integrations.openrlhf.support import CHECKED, VERSIONS
from tests.trainers.openrlhf.source import Source

RELEASES = (*CHECKED, *VERSIONS)
DOTTED_SINCE = "0.10.2"
TRAINER, GENERATOR = "openrlhf.trainer.ppo_trainer", "openrlhf.trainer.ppo_trainer_async"


@pytest.fixture(params=RELEASES)
def source(request: pytest.FixtureRequest) -> Source:
    return Source.of(request.param)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_each_place_is_there_with_the_arguments_that_we_read(source: Source, place: Place) -> None:
    found = source.arguments(place.module, place.owner, place.attribute)
    if place is EVALUATION and {"openrlhf-0.9.1", "openrlhf-0.9.4"} & set(source.root.parts):
        assert found is None
        return
    assert found is not None
    assert found[: len(place.arguments)] == list(place.arguments)


def test_the_policy_loss_is_given_log_probs_old_ones_and_advantages_in_this_order(source: Source) -> None:
    found = source.arguments("openrlhf.models.loss", "PolicyLoss", "forward")
    assert found is not None
    assert found[:5] == ["log_probs", "old_log_probs", "advantages", "action_mask", "rollout_log_probs"]


def test_a_step_is_trained_and_ended_by_the_methods_that_we_hook(source: Source) -> None:
    """Looked up on the instance, where ours stand."""
    for module in (TRAINER, GENERATOR):
        assert (
            "self.save_logs_and_checkpoints(global_step, status, client_states)" in source.path(module).read_text()
        )
    actor = source.path("openrlhf.trainer.ray.ppo_actor").read_text()
    assert "self.training_step(experience, kl_ctl, step" in actor
    assert "self.actor_loss_fn(" in actor
    assert "self.strategy.backward(loss, " in actor
    maker = source.path("openrlhf.trainer.ppo_utils.experience_maker").read_text()
    assert "self.compute_advantages_and_returns(" in maker


def test_the_generator_says_that_its_prompts_are_used_up_as_we_say_it_for_a_stop(source: Source) -> None:
    assert (
        "rollout_samples, filter_pass_rate, prompts_consumed, is_exhausted = (" in source.path(TRAINER).read_text()
    )
    asynchronous = source.path(GENERATOR).read_text()
    assert "self.samples_generator.generate_samples(" in asynchronous
    assert 'if payload == "done":' in asynchronous
    assert "self.rollout_slots.put(" in asynchronous


def test_an_experience_has_the_fields_that_we_read(source: Source) -> None:
    names = {
        node.target.id
        for path in (source.root / "openrlhf" / "trainer" / "ppo_utils").glob("*.py")
        for kind in ast.walk(ast.parse(path.read_text()))
        if isinstance(kind, ast.ClassDef) and kind.name == "Experience"
        for node in kind.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    wanted = {"sequences", "action_mask", "action_log_probs", "base_action_log_probs", "rollout_log_probs"}
    assert wanted | {"values", "returns", "advantages", "kl", "rewards", "index", "prompts"} <= names


# what some releases lack costs a line of the configuration, nothing else
NEEDED = (
    "kl_coef",
    "kl_in_loss",
    "kl_estimator",
    "group_size",
    "save_steps",
    "logging_steps",
    "save_path",
    "resumes",
)


def test_the_arguments_that_we_read_exist(source: Source) -> None:
    text = source.path("openrlhf.cli.train_ppo_ray").read_text()
    dotted = source.root.parts and "--algo.kl.init_coef" in text
    for name in NEEDED:
        assert f'"--{_NAMES[name][0 if dotted else 1]}"' in text, name


def test_the_asynchronous_controller_is_one_of_the_places() -> None:
    assert FIT_ASYNC in PLACES
