from __future__ import annotations

import json
import math
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.contract import codec
from rlvitals.contract.codec import DecodeError, decode, decode_number, dumps, encode, encode_number, loads
from rlvitals.contract.command import Bounds, Command, CommandKind, Outcome
from rlvitals.contract.report import (
    Event,
    Extreme,
    Heartbeat,
    Histogram,
    Receipt,
    Refusal,
    ReportBatch,
    RunInfo,
    StepReport,
    Text,
)

FLOATS = st.floats(allow_nan=True, allow_infinity=True)
TEXTS = st.text(st.characters(), max_size=30)  # lone surrogates included
SEQS = st.integers(0, 2**63 - 1)
TIMES = st.datetimes(timezones=st.just(timezone.utc))


def same(a: Any, b: Any) -> bool:
    """Equality that takes NaN for equal to NaN and tells 0.0 from -0.0."""
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if hasattr(a, "__dataclass_fields__") and type(a) is type(b):
        return all(same(getattr(a, f), getattr(b, f)) for f in a.__dataclass_fields__)
    return type(a) is type(b) and bool(a == b)


def there_and_back(value: Any) -> Any:
    return decode(type(value), json.loads(dumps(value)))


EXTREMES = st.builds(
    Extreme,
    value=FLOATS,
    token_id=st.none() | st.integers(),
    position=st.none() | st.integers(),
    sample=st.none() | st.integers(),
    masked=st.none() | st.booleans(),
    token=st.none() | TEXTS,
)
STEPS = st.builds(
    StepReport,
    seq=SEQS,
    step=st.integers(-(2**53), 2**53),
    time_s=st.floats(allow_nan=False, allow_infinity=False),
    values=st.dictionaries(TEXTS, FLOATS, max_size=6),
    missing=st.dictionaries(TEXTS, TEXTS, max_size=3),
    extremes=st.dictionaries(TEXTS, EXTREMES, max_size=3),
)
COMPLETIONS = st.builds(
    Text,
    seq=SEQS,
    step=st.integers(),
    sample=st.integers(),
    completion=TEXTS,
    prompt=TEXTS,
    token_ids=st.lists(st.integers(0, 10**6), max_size=5).map(tuple),
    reward=st.none() | FLOATS,
    truncated=st.none() | st.booleans(),
    invalid_utf8=st.none() | st.integers(0, 99),
)
COMMANDS = st.builds(
    Command,
    id=TEXTS,
    kind=st.sampled_from(CommandKind),
    expires_at=TIMES,
    argument=st.none() | FLOATS,
    bounds=st.none() | st.builds(Bounds, low=FLOATS, high=FLOATS),
    who=TEXTS,
)


@given(FLOATS)
def test_every_number_survives_and_is_valid_json(value: float) -> None:
    wire = json.dumps(encode_number(value), allow_nan=False)
    assert same(decode_number(json.loads(wire)), value)


def test_the_four_kinds_are_four_different_things() -> None:
    extremes = [
        Text(seq=1, step=1, sample=0, completion="", reward=r) for r in (math.nan, math.inf, -math.inf, None)
    ]
    wires = [json.loads(dumps(text))["reward"] for text in extremes]
    assert wires == ["NaN", "Infinity", "-Infinity", None]
    back = [there_and_back(text).reward for text in extremes]
    assert math.isnan(back[0])
    assert back[1:] == [math.inf, -math.inf, None]


@given(STEPS)
def test_a_step_survives(step: StepReport) -> None:
    assert same(there_and_back(step), step)


@given(COMPLETIONS)
def test_a_completion_survives_whatever_its_text(text: Text) -> None:
    assert same(there_and_back(text), text)


@given(COMMANDS)
def test_a_command_survives_with_its_time_in_utc(command: Command) -> None:
    assert same(there_and_back(command), command)


@given(
    st.builds(
        Receipt,
        epoch=TEXTS,
        stored_through=st.integers(-1, 2**63 - 1),
        refused=st.lists(st.builds(Refusal, line=st.integers(), field=TEXTS, reason=TEXTS), max_size=2).map(tuple),
        commands=st.lists(COMMANDS, max_size=2).map(tuple),
        heartbeat_s=FLOATS,
    )
)
def test_a_receipt_survives(receipt: Receipt) -> None:
    assert same(there_and_back(receipt), receipt)


def test_a_time_of_another_zone_is_the_same_moment_in_utc() -> None:
    east = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=8)))
    command = Command(id="c", kind=CommandKind.STOP, expires_at=east)
    assert json.loads(dumps(command))["expires_at"] == "2026-01-01T04:00:00Z"
    assert there_and_back(command).expires_at == east


def test_a_naive_time_is_refused_both_ways() -> None:
    with pytest.raises(TypeError, match="naive"):
        encode(datetime(2026, 1, 1))  # noqa: DTZ001 - the point of the test
    with pytest.raises(DecodeError, match="expires_at: expected an ISO 8601 time"):
        decode(Command, {"id": "c", "kind": "stop", "expires_at": "2026-01-01T00:00:00"})


@pytest.mark.parametrize(
    ("cls", "value", "field", "expected"),
    [
        (StepReport, {"step": 1, "time_s": 0, "values": {}}, "seq", "to be present"),
        (StepReport, {"seq": "1", "step": 1, "time_s": 0, "values": {}}, "seq", "a whole number"),
        (StepReport, {"seq": True, "step": 1, "time_s": 0, "values": {}}, "seq", "a whole number"),
        (StepReport, {"seq": 1, "step": 1.0, "time_s": 0, "values": {}}, "step", "a whole number"),
        (StepReport, {"seq": 1, "step": 1, "time_s": 0, "values": {"a": None}}, "values.a", "a number"),
        (StepReport, {"seq": 1, "step": 1, "time_s": 0, "values": {"a": "nan"}}, "values.a", "a number"),
        (StepReport, {"seq": 1, "step": 1, "time_s": 0, "values": {"a": True}}, "values.a", "a number"),
        (StepReport, {"seq": 1, "step": 1, "time_s": 10**400, "values": {}}, "time_s", "range of a double"),
        (StepReport, {"seq": 1, "step": 1, "time_s": 0, "values": []}, "values", "an object"),
        (
            StepReport,
            {"seq": 1, "step": 1, "time_s": 0, "values": {}, "extremes": {"kl.max": {"value": 1, "masked": 0}}},
            "extremes.kl.max.masked",
            "true or false",
        ),
        (Histogram, {"seq": 1, "step": 1, "metric": "m", "edges": [0, "x"], "counts": []}, "edges[1]", "a number"),
        (Event, {"seq": 1, "time_s": 0, "kind": "party"}, "kind", "one of phase, checkpoint"),
        (ReportBatch, {"run": {"project": "p"}, "attempt": "a"}, "run.id", "to be present"),
        (ReportBatch, {"run": [], "attempt": "a"}, "run", "an object (RunInfo)"),
        (Heartbeat, {"time_s": 0, "phase": 3}, "phase", "one of starting"),
        (Outcome, {"seq": 1, "command_id": 5, "state": "applied"}, "command_id", "a string"),
    ],
)
def test_an_error_names_the_field_and_what_was_expected(
    cls: type, value: object, field: str, expected: str
) -> None:
    with pytest.raises(DecodeError) as error:
        decode(cls, value)
    assert error.value.field == field
    assert expected in str(error.value)


def test_unknown_fields_are_left_out_so_that_newer_writers_may_add_some() -> None:
    assert decode(RunInfo, {"id": "r", "shoe_size": 43}) == RunInfo(id="r")


def test_what_was_got_is_shown_short() -> None:
    with pytest.raises(DecodeError) as error:
        decode(RunInfo, {"id": ["x" * 10_000]})
    assert len(str(error.value)) < 200


def test_careless_writers_bare_nan_is_read_as_the_number() -> None:
    assert math.isnan(loads("[NaN]")[0])
    assert loads("[Infinity, -Infinity]") == [math.inf, -math.inf]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", "[" * 200_000])
def test_what_is_no_json_is_told_as_that(body: bytes | str) -> None:
    with pytest.raises(DecodeError, match="a JSON document"):
        loads(body)


def test_a_type_without_a_rule_is_refused_and_never_guessed() -> None:
    with pytest.raises(TypeError, match="no contract type"):
        codec.encode(object())
    with pytest.raises(TypeError, match="no rule"):
        codec.decode(bytes, b"")
