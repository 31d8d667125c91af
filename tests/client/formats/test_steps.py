"""Rows as training steps."""

from __future__ import annotations

import math

import pytest

from rlvitals.formats.row import Row, RowKind
from rlvitals.formats.steps import LoggedStep, StepMerger


def row(step: int | None, kind: RowKind = RowKind.TRAIN, source: str = "", **values: float) -> Row:
    return Row(line=1, step=step, values=values, kind=kind, source=source)


def merged(*rows: Row, stride: int = 1) -> list[LoggedStep]:
    merger = StepMerger(stride)
    return [step for r in rows for step in merger.add(r)] + list(merger.end())


def test_names_become_the_registrys_and_unknown_ones_stay() -> None:
    merger = StepMerger()
    list(merger.add(Row(line=1, step=1, values={"actor/grad_norm": math.nan, "actor/kl_loss": 0.1, "mine": 2.0})))
    (step,) = merger.end()
    assert math.isnan(step.values["gradient.norm"])
    assert step.values["mine"] == 2.0
    assert merger.unknown == ["mine"]
    assert "clamps" in merger.notes["actor/kl_loss"]


def test_two_names_for_one_metric_do_not_hide_each_other() -> None:
    (step,) = merged(Row(line=1, step=1, values={"loss": 0.5, "train/loss": 0.7}))
    assert step.values == {"policy.loss": 0.5, "train/loss": 0.7}


def test_rows_of_one_step_from_several_writers_are_one_step() -> None:
    found = merged(
        row(0, RowKind.ROLLOUT, reward=1.0),
        row(0, loss=0.5),
        row(1, RowKind.ROLLOUT, reward=2.0),
        row(1, loss=0.6),
    )
    assert [(s.step, dict(s.values)) for s in found] == [
        (0, {"reward.mean": 1.0, "policy.loss": 0.5}),
        (1, {"reward.mean": 2.0, "policy.loss": 0.6}),
    ]


def test_rows_without_a_step_are_counted_by_the_stride() -> None:
    assert [s.step for s in merged(row(None, loss=1.0), row(None, loss=2.0), stride=10)] == [1, 11]


def test_an_evaluation_is_told_by_itself_and_takes_no_step() -> None:
    found = merged(row(None, loss=1.0), row(None, RowKind.EVAL, eval_reward=1.0), row(None, loss=2.0))
    assert [(s.step, s.evaluation) for s in found] == [(1, True), (1, False), (2, False)]


def test_a_counter_that_goes_back_begins_again() -> None:
    assert [s.step for s in merged(row(5, loss=1.0), row(6, loss=1.0), row(3, loss=1.0), row(4, loss=1.0))] == [
        5,
        6,
        3,
        4,
    ]


def test_a_writer_that_stops_does_not_hold_the_others_for_ever_and_its_late_rows_are_counted() -> None:
    merger = StepMerger()
    found = list(merger.add(row(0, source="slow", loss=1.0)))
    for step in range(20):
        found += merger.add(row(step, source="quick", reward=1.0))
    assert [s.step for s in found] == list(range(12))
    found += merger.add(row(1, source="slow", loss=1.0))
    assert merger.late == 1


def test_null_is_missing_unless_another_row_of_the_step_has_it() -> None:
    absent = Row(line=1, step=1, values={"reward": 1.0}, missing=("loss", "kl"))
    (step,) = merged(absent, row(1, loss=2.0))
    assert step.missing == ("kl.k3",)


def test_a_name_without_a_value_does_not_take_the_metric_from_one_that_has_it() -> None:
    (step,) = merged(Row(line=1, step=1, values={"train/loss": 0.7}, missing=("loss",)))
    assert step.values == {"policy.loss": 0.7}
    assert step.missing == ("loss",)


def test_openrlhfs_kl_and_clip_ratio_are_no_k3_and_no_truncation() -> None:
    """Its reward's k1 may be negative, which no k3 is; its clip ratio is 0 where every answer was cut."""
    merger = StepMerger()
    logged = {"policy_loss": 0.1, "actor_lr": 1e-6, "kl": -0.2, "response_clip_ratio": 0.0, "truncated": 0.9}
    list(merger.add(Row(line=1, step=1, values=logged)))
    (step,) = merger.end()
    assert step.values["kl"] == -0.2
    assert step.values["response_clip_ratio"] == 0.0
    assert step.values["length.truncation_rate"] == 0.9
    assert not {"kl.k3", "kl.k1"} & set(step.values)
    assert "not always k3" in merger.notes["kl"]
    assert "not always k3" in step.withheld["kl.k3"]
    assert "length.truncation_rate" not in step.withheld


@pytest.mark.parametrize("order", [1, -1])
def test_whose_log_it_is_is_told_by_the_whole_step_though_each_name_has_a_row_of_its_own(order: int) -> None:
    logged = {"train/kl": math.nan, "train/response_clip_ratio": 0.0, "train/actor_lr": 1e-6}
    found = merged(*(Row(line=1, step=1, values={name: logged[name]}) for name in list(logged)[::order]))
    assert {name for step in found for name in step.values} == {
        "train/kl",
        "train/response_clip_ratio",
        "policy.learning_rate",
    }


def test_the_same_names_in_another_trainers_log_are_k3_and_truncation() -> None:
    (step,) = merged(row(1, loss=0.1, kl=0.2, completion_length=60.0, response_clip_ratio=0.9))
    assert (step.values["kl.k3"], step.values["length.truncation_rate"]) == (0.2, 0.9)


@pytest.mark.parametrize("mark", ["training/off_policy/trajectory_spans/mean", "training/num_turns/mean"])
@pytest.mark.parametrize("share", [1.0, 0.0, math.nan, math.inf])
def test_verls_share_of_the_longest_answers_is_no_truncation(mark: str, share: float) -> None:
    """With a transfer queue it is never 0: all answers of one length, none of them cut, would read as 1."""
    merger = StepMerger()
    list(merger.add(Row(line=1, step=1, values={"response_length/clip_ratio": share, mark: 1.0})))
    (step,) = merger.end()
    assert "length.truncation_rate" not in step.values
    assert "response_length/clip_ratio" in step.values
    assert "longest answer of its batch" in merger.notes["response_length/clip_ratio"]
    assert "longest answer of its batch" in step.withheld["length.truncation_rate"]


def test_verls_share_of_answers_at_the_limit_is_truncation_where_it_compares_with_the_limit() -> None:
    (step,) = merged(Row(line=1, step=1, values={"response_length/clip_ratio": 0.5, "num_turns/mean": 2.0}))
    assert step.values["length.truncation_rate"] == 0.5
