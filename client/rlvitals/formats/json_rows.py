"""JSON that trainers and trackers write: a record a line, or one document with a history."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from rlvitals.formats.numbers import number, whole
from rlvitals.formats.row import BadLine, Found, Row, RowKind

STEP_NAMES = (
    "step",
    "global_step",
    "_step",
    "train/global_step",
    "training/global_step",
    "iteration",
    "current_steps",
)
HISTORIES = ("log_history", "history", "metrics")
_NESTED = ("data", "metrics", "logs")
_ENVELOPE = frozenset({"step", "epoch", "time", "timestamp", "wall_time", "run", "run_name", "run_id"})


class JsonLines:
    """Reads one object a line; a line that is none is told and passed over."""

    def read(self, line: int, text: str) -> Found:
        stripped = text.strip().lstrip("\ufeff")
        if not stripped:
            return
        try:
            record = json.loads(stripped)
        except (ValueError, RecursionError) as error:
            yield BadLine.of(line, f"a JSON object was expected: {_reason(error)}", stripped)
            return
        if not isinstance(record, dict):
            yield BadLine.of(line, f"a JSON object was expected, got {type(record).__name__}", stripped)
            return
        yield from row_of(line, record)

    def end(self) -> Found:
        return ()


def document(text: str) -> Iterator[Row | BadLine]:
    """The rows of a whole document: transformers' ``trainer_state.json``, or a list of records.

    ``line`` counts the records. Raises ValueError where it is no such document.
    """
    try:
        tree = json.loads(text.lstrip("\ufeff"))
    except RecursionError as error:
        raise ValueError("a document of moderate depth was expected") from error
    records = tree
    if isinstance(tree, dict):
        records = next((tree[name] for name in HISTORIES if isinstance(tree.get(name), list)), None)
    if not isinstance(records, list):
        raise ValueError(f"a list of records, or an object with one of {', '.join(HISTORIES)}, was expected")
    for place, record in enumerate(records, 1):
        if isinstance(record, dict):
            yield from row_of(place, record)
        else:
            yield BadLine.of(place, f"an object was expected, got {type(record).__name__}", str(record))


def row_of(line: int, record: Mapping[str, Any]) -> Iterator[Row]:
    """The row of one record, if it has numbers.

    verl's file logger ``{"step": 1, "data": {…}}`` writes null where a number was not finite, so there it is NaN;
    elsewhere null means missing.
    """
    inner = next((record[name] for name in _NESTED if isinstance(record.get(name), dict)), None)
    is_verl = inner is record.get("data") and inner is not None and set(record) <= {"step", "data"}
    body = record if inner is None or set(record) - set(_NESTED) - _ENVELOPE else inner
    pairs = list(_pairs(body, ""))
    values = {name: value for name, value in pairs if value is not None and name not in STEP_NAMES}
    missing = tuple(name for name, value in pairs if value is None)
    if is_verl:
        values |= dict.fromkeys(missing, math.nan)
        missing = ()
    numbers = dict(_pairs({**body, **record} if body is not record else record, ""))
    step = next((found for name in STEP_NAMES if (found := whole(numbers.get(name))) is not None), None)
    if values or missing:
        yield Row(line=line, step=step, values=values, missing=missing, kind=kind_of(values))


def kind_of(values: Mapping[str, float]) -> RowKind:
    """Evaluation rows hold evaluation metrics only; a summary tells of the whole training."""
    if "train_runtime" in values:
        return RowKind.SUMMARY
    told = [name for name in values if name not in _ENVELOPE]
    evaluation = told and all(name.startswith(("eval_", "eval/", "val-", "val/")) for name in told)
    return RowKind.EVAL if evaluation else RowKind.TRAIN


def _pairs(record: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, float | None]]:
    for key, value in record.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _pairs(value, f"{name}/")
        elif value is None:
            yield name, None
        elif isinstance(value, (bool, int, float)):
            yield name, _double(value)
        elif isinstance(value, str) and len(value) < 40:
            spelt = number(value)
            if spelt is not None:
                yield name, spelt


def _double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, ValueError) else "it is nested too deep"
