from __future__ import annotations

import pytest

from rlvitals.contract import evaluation
from rlvitals.contract.evaluation import as_evaluated, is_evaluated, is_evaluation
from rlvitals.contract.metrics import METRICS


@pytest.mark.parametrize(
    "name", ["eval_loss", "eval/aime", "val-core/gsm8k/acc/mean@1", "val/test_score", "eval_rewards/f/mean"]
)
def test_trainers_names_of_evaluations_are_known(name: str) -> None:
    assert is_evaluated(name)
    assert is_evaluation([name])


def test_no_metric_of_the_registry_is_taken_for_an_evaluation() -> None:
    assert not [m.name for m in METRICS if is_evaluated(m.name)]
    assert not is_evaluated("value_loss")
    assert not is_evaluated("evaluator/score")


@pytest.mark.parametrize(
    ("names", "evaluation"),
    [
        (["eval_loss", "epoch", "rlvitals.overhead"], True),
        (["epoch", "eval_loss"], True),
        (["eval_loss", "policy.loss"], False),
        (["policy.loss"], False),
        (["epoch"], False),
        (["rlvitals.overhead"], False),
        ([], False),
    ],
)
def test_a_record_is_an_evaluation_only_where_nothing_of_training_stands_in_it(
    names: list[str], evaluation: bool
) -> None:
    assert is_evaluation(names) is evaluation


def test_names_that_do_not_say_it_are_made_to() -> None:
    told = as_evaluated({"response_len/mean": 3.0, "eval/aime": 1.0, "step": 7.0})
    assert list(told.items()) == [("eval/response_len/mean", 3.0), ("eval/aime", 1.0), ("step", 7.0)]


def test_what_was_found_of_a_name_stays_true_and_the_names_remembered_are_bounded() -> None:
    for n in range(3000):
        assert not is_evaluation([f"made.from.data.{n}"])
        assert not is_evaluation(["eval/loss", f"made.from.data.{n}"])
    assert is_evaluation(["eval/loss", "epoch"])
    assert len(evaluation._known) <= evaluation._KNOWN_MAX
