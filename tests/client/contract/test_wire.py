from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.contract import codec
from rlvitals.contract.codec import DecodeError
from rlvitals.contract.command import CommandState, Outcome
from rlvitals.contract.report import Event, EventKind, Heartbeat, Histogram, ReportBatch, RunInfo, StepReport
from rlvitals.contract.wire import SEQ_MAX, STEP_MAX, from_wire, step_from_line, to_wire
from tests.client.contract.test_codec import COMPLETIONS, STEPS, same

RUN = RunInfo(id="r", config={"kl_coef": 0.1, "nested": [1, None, "x"]}, tags=("a",), capabilities={"stop": ""})


def through_json(batch: ReportBatch) -> Any:
    return codec.loads(codec.dumps(to_wire(batch)))


def batch_of(*steps: StepReport) -> ReportBatch:
    return ReportBatch(run=RUN, attempt="a1", writer="w", epoch="e", steps=steps)


@given(st.lists(STEPS, max_size=6, unique_by=lambda s: s.seq), st.lists(COMPLETIONS, max_size=3))
def test_a_batch_survives_the_column_form(steps: list[StepReport], texts: list[Any]) -> None:
    batch = ReportBatch(
        run=RUN,
        attempt="a1",
        writer="w",
        epoch="e",
        steps=tuple(steps),
        texts=tuple(texts),
        histograms=(Histogram(seq=1, step=1, metric="m", edges=(-math.inf, 0.0, math.nan), counts=(1, 2)),),
        events=(Event(seq=2, time_s=0.5, kind=EventKind.NOTE, payload={"a": [1]}),),
        outcomes=(Outcome(seq=3, command_id="c", state=CommandState.APPLIED, after=math.nan),),
        heartbeat=Heartbeat(time_s=1.0, last_step=3),
    )
    back, refused = from_wire(through_json(batch))
    assert refused == ()
    assert same(codec.encode(back), codec.encode(batch))


def test_names_are_sent_once_and_null_is_a_missing_metric() -> None:
    steps = (
        StepReport(seq=1, step=1, time_s=0.0, values={"a": 1.0, "b": math.nan}),
        StepReport(seq=2, step=2, time_s=0.0, values={"b": math.inf, "c": -math.inf}, missing={"a": "why"}),
    )
    wire = through_json(batch_of(*steps))
    assert wire["names"] == ["a", "b", "c"]
    assert wire["rows"] == [[1, 1, 0.0, 1.0, "NaN", None], [2, 2, 0.0, None, "Infinity", "-Infinity"]]
    back, _ = from_wire(wire)
    assert [set(s.values) for s in back.steps] == [{"a", "b"}, {"b", "c"}]
    assert back.steps[1].missing == {"a": "why"}


GOOD = [1, 1, 0.0, 1.0]


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ([1, 1, 0.0], "row"),
        ("row", "row"),
        (["1", 1, 0.0, 1.0], "seq"),
        ([-1, 1, 0.0, 1.0], "seq"),
        ([SEQ_MAX + 1, 1, 0.0, 1.0], "seq"),
        ([1, STEP_MAX + 1, 0.0, 1.0], "step"),
        ([1, 1.5, 0.0, 1.0], "step"),
        ([1, 1, "NaN", 1.0], "time_s"),
        ([1, 1, None, 1.0], "time_s"),
        ([1, 1, 0.0, "much"], "loss"),
        ([1, 1, 0.0, False], "loss"),
        ([1, 1, 0.0, [1.0]], "loss"),
    ],
)
def test_a_row_that_cannot_be_read_is_refused_by_line_and_field_and_the_rest_kept(row: object, field: str) -> None:
    wire = {"run": {"id": "r"}, "attempt": "a", "names": ["loss"], "rows": [GOOD, row, [2, 2, 0.0, None]]}
    batch, refused = from_wire(wire)
    assert [s.seq for s in batch.steps] == [1, 2]
    assert [(r.line, r.field) for r in refused] == [(2, field)]
    assert refused[0].reason.startswith(f"{field}: expected ")


def test_a_record_that_cannot_be_read_is_refused_within_its_own_list() -> None:
    note = {"seq": 1, "time_s": 0.0, "kind": "note"}
    wire = {"run": {"id": "r"}, "attempt": "a", "events": [note, {**note, "kind": "party"}, {**note, "seq": -5}]}
    batch, refused = from_wire(wire)
    assert len(batch.events) == 1
    assert [r.line for r in refused] == [2, 3]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"protocol": 99}, "protocol"),
        ({"run": None}, "run"),
        ({"attempt": 5}, "attempt"),
        ({"names": "loss"}, "names"),
        ({"names": [1]}, "names[0]"),
        ({"rows": {}}, "rows"),
        ({"heartbeat": {"time_s": "x"}}, "heartbeat.time_s"),
        ({"events": 3}, "events"),
    ],
)
def test_what_concerns_the_whole_batch_raises_with_the_field(change: dict[str, object], field: str) -> None:
    wire = {"run": {"id": "r"}, "attempt": "a", "names": ["loss"], "rows": [GOOD], **change}
    with pytest.raises(DecodeError) as error:
        from_wire(wire)
    assert error.value.field == field


@pytest.mark.parametrize("wire", [None, [], "x", 3])
def test_a_body_that_is_no_object_is_refused(wire: object) -> None:
    with pytest.raises(DecodeError, match="an object"):
        from_wire(wire)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5), lambda inner: st.lists(inner)))
def test_any_junk_in_a_row_is_refused_and_never_raises(junk: object) -> None:
    wire = {"run": {"id": "r"}, "attempt": "a", "names": ["loss"], "rows": [junk, [1, 1, 0.0, junk]]}
    from_wire(json.loads(json.dumps(wire)))


def test_a_hand_written_line_is_read_and_null_means_missing() -> None:
    line = {"seq": 3, "step": 2, "time_s": 1.5, "values": {"a": "NaN", "b": None, "c": 1}}
    step = step_from_line(line)
    assert math.isnan(step.values["a"])
    assert {k: v for k, v in step.values.items() if k != "a"} == {"c": 1.0}
    with pytest.raises(DecodeError, match=r"values\.a: expected a number"):
        step_from_line({**line, "values": {"a": "x"}})
    with pytest.raises(DecodeError, match="time_s: expected a finite time"):
        step_from_line({**line, "time_s": "Infinity"})
