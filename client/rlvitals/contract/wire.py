"""The column form of a ReportBatch on the wire: metric names once, then one row a step.

Rows are ``[seq, step, time_s, value, value, …]`` with one value per entry of ``names``; null is a missing metric.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rlvitals.contract.codec import DecodeError, decode, decode_number, encode, encode_number
from rlvitals.contract.command import Outcome
from rlvitals.contract.report import (
    PROTOCOL,
    Event,
    Extreme,
    Histogram,
    Refusal,
    ReportBatch,
    StepReport,
    Text,
)

SEQ_MAX = 2**63 - 1
STEP_MAX = 2**53


def to_wire(batch: ReportBatch) -> dict[str, Any]:
    """The JSON-ready dict of a batch, steps in columns."""
    names = list(dict.fromkeys(name for step in batch.steps for name in step.values))
    wire = {key: encode(getattr(batch, key)) for key in _PLAIN}
    wire["names"] = names
    wire["rows"] = [[s.seq, s.step, s.time_s, *(_cell(s.values.get(name)) for name in names)] for s in batch.steps]
    wire["missing"] = {str(s.seq): dict(s.missing) for s in batch.steps if s.missing}
    wire["extremes"] = {str(s.seq): encode(s.extremes) for s in batch.steps if s.extremes}
    return wire


def from_wire(wire: object) -> tuple[ReportBatch, tuple[Refusal, ...]]:
    """Reads the column form. A row that cannot be read becomes a Refusal; what concerns the whole batch raises."""
    if not isinstance(wire, Mapping):
        raise DecodeError("", "an object", wire)
    protocol = wire.get("protocol", PROTOCOL)
    if protocol != PROTOCOL:
        raise DecodeError("protocol", f"protocol {PROTOCOL}", protocol)
    refused: list[Refusal] = []
    frame = decode(ReportBatch, {k: wire[k] for k in _PLAIN if k in wire and k not in _RECORDS})
    records: dict[str, Any] = {
        key: _records(kind, wire.get(key, []), key, refused) for key, kind in _RECORDS.items()
    }
    names = decode(tuple[str, ...], wire.get("names", ()), "names")
    steps: list[StepReport] = []
    for line, row in enumerate(_rows(wire), start=1):
        try:
            steps.append(_step(row, names, wire))
        except DecodeError as error:
            refused.append(Refusal(line=line, field=error.field, reason=str(error)))
    return replace(frame, steps=tuple(steps), **records), tuple(refused)


def step_from_line(line: object) -> StepReport:
    """One NDJSON line ``{"seq":…,"step":…,"time_s":…,"values":{…}}`` of a hand-written client; null = missing."""
    if not isinstance(line, Mapping):
        raise DecodeError("", "an object", line)
    values = line.get("values", {})
    if not isinstance(values, Mapping):
        raise DecodeError("values", "an object of numbers", values)
    present = {k: v for k, v in values.items() if v is not None}
    return _checked(decode(StepReport, {**line, "values": present}))


_PLAIN = (
    "run",
    "attempt",
    "writer",
    "protocol",
    "epoch",
    "heir_of",
    "texts",
    "histograms",
    "events",
    "outcomes",
    "heartbeat",
)
_RECORDS: dict[str, Any] = {"texts": Text, "histograms": Histogram, "events": Event, "outcomes": Outcome}


def _records(kind: Any, items: object, key: str, refused: list[Refusal]) -> tuple[Any, ...]:
    """The records that can be read; the others become refusals, counted within their own list."""
    if not isinstance(items, list):
        raise DecodeError(key, "a list", items)
    good = []
    for line, item in enumerate(items, start=1):
        try:
            good.append(_numbered(decode(kind, item, key), f"{key}.seq"))
        except DecodeError as error:
            refused.append(Refusal(line=line, field=error.field, reason=str(error)))
    return tuple(good)


def _numbered(record: Any, field: str) -> Any:
    if not 0 <= record.seq <= SEQ_MAX:
        raise DecodeError(field, "0 … 2^63-1", record.seq)
    return record


def _cell(value: float | None) -> float | str | None:
    return None if value is None else encode_number(value)


def _rows(wire: Mapping[Any, Any]) -> list[Any]:
    rows = wire.get("rows", [])
    if not isinstance(rows, list):
        raise DecodeError("rows", "a list of rows", rows)
    return rows


def _step(row: object, names: tuple[str, ...], wire: Mapping[Any, Any]) -> StepReport:
    if not isinstance(row, list) or len(row) != len(names) + 3:
        raise DecodeError("row", f"a list of {len(names) + 3} cells", row)
    seq = decode(int, row[0], "seq")
    values = {n: decode_number(v, n) for n, v in zip(names, row[3:], strict=True) if v is not None}
    return _checked(
        StepReport(
            seq=seq,
            step=decode(int, row[1], "step"),
            time_s=decode_number(row[2], "time_s"),
            values=values,
            missing=_side(wire, "missing", seq, str),
            extremes=_side(wire, "extremes", seq, Extreme),
        )
    )


def _side(wire: Mapping[Any, Any], key: str, seq: int, kind: type) -> Any:
    table = wire.get(key) or {}
    if not isinstance(table, Mapping):
        raise DecodeError(key, "an object by seq", table)
    entry = table.get(str(seq), {})
    return decode(Mapping[str, kind], entry, key)  # type: ignore[valid-type,type-abstract]


def _checked(step: StepReport) -> StepReport:
    _numbered(step, "seq")
    if not -STEP_MAX <= step.step <= STEP_MAX:
        raise DecodeError("step", "a whole number within ±2^53", step.step)
    if not math.isfinite(step.time_s):
        raise DecodeError("time_s", "a finite time in seconds", step.time_s)
    return step
