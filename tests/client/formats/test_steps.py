"""Rows as training steps."""

from __future__ import annotations

import math

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
