"""Reads what a client sent, column JSON or NDJSON, within bounds; what cannot be read becomes refusals."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from rlvitals.contract import codec, wire
from rlvitals.contract.codec import DecodeError
from rlvitals.contract.report import Refusal, ReportBatch, StepReport
from rlvitals_monitor.errors import BadRequest, TooLarge, WrongMediaType

JSON, NDJSON = "application/json", "application/x-ndjson"
REFUSALS_MAX = 100
"""Refusals that are named in a receipt; a document that is wrong on every line needs no more to be mended."""
NAMES_MAX = 2_500
_RECORD_LISTS = ("texts", "histograms", "events", "outcomes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """``through``: the highest seq in the document, read or not; ``lines``: seq → line, counted from 1."""

    batch: ReportBatch
    refused: tuple[Refusal, ...] = ()
    through: int = -1
    lines: Mapping[int, int] = field(default_factory=dict)


def unpack(body: bytes, encoding: str, limit: int) -> bytes:
    """The body without its gzip; stops at ``limit`` bytes instead of believing a bomb."""
    if encoding in ("", "identity"):
        return body
    if encoding != "gzip":
        raise WrongMediaType(f"expected Content-Encoding gzip or none, got {encoding[:40]!r}")
    plain = bytearray()
    while body:
        inflater = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        try:
            plain += inflater.decompress(body, limit + 1 - len(plain))
        except zlib.error as error:
            raise BadRequest(f"the gzip body cannot be unpacked: {error}") from None
        if len(plain) > limit:
            raise TooLarge(f"expected at most {limit} bytes after gzip")
        if not inflater.eof:
            raise BadRequest("the gzip body is cut off")
        body = inflater.unused_data
    return bytes(plain)


def read_columns(body: bytes, lines_max: int) -> Document:
    """The column form; raises `DecodeError` where the whole of it cannot be read."""
    told = load(body)
    if isinstance(told, Mapping):
        _check_size(told, lines_max)
        if "steps" in told:  # nobody would find out that not one of them was stored
            known = "their columns as names and rows, or NDJSON with a line for each step"
            raise DecodeError("steps", known, told["steps"])
    batch, refused = wire.from_wire(told)
    through, lines = _number(told)
    return Document(batch=batch, refused=refused, through=through, lines=lines)


def read_lines(body: bytes, query: Mapping[str, str], lines_max: int) -> Document:
    """NDJSON: run, attempt, writer, project from the query or from a first line ``{"run": {…}, "attempt": …}``."""
    lines = [(number, line) for number, line in enumerate(body.split(b"\n"), start=1) if line.strip()]
    if len(lines) > lines_max:
        raise TooLarge(f"expected at most {lines_max} lines, got {len(lines)}")
    batch, skip = _header(lines, query)
    steps: list[StepReport] = []
    refused: list[Refusal] = []
    places: dict[int, int] = {}
    through = -1
    for number, line in lines[skip:]:
        try:
            told = load(line)
            through = max(through, _seq(told.get("seq") if isinstance(told, Mapping) else None))
            step = wire.step_from_line(told)
        except DecodeError as error:
            refused.append(Refusal(line=number, field=error.field, reason=str(error)))
        else:
            steps.append(step)
            places.setdefault(step.seq, number)
    whole = replace(batch, steps=tuple(steps))
    return Document(batch=whole, refused=tuple(refused), through=through, lines=places)


def load(body: bytes) -> Any:
    """JSON, fast where it is plain; the slow reader knows the bare words NaN and Infinity and lone surrogates."""
    try:
        return orjson.loads(body)
    except ValueError:
        pass
    try:
        return codec.loads(body)
    except UnicodeDecodeError as error:
        raise DecodeError("", "a JSON document in UTF-8", str(error)) from None


def _check_size(told: Mapping[Any, Any], lines_max: int) -> None:
    for key in ("rows", *_RECORD_LISTS):
        if isinstance(told.get(key), list) and len(told[key]) > lines_max:
            raise TooLarge(f"expected at most {lines_max} {key}, got {len(told[key])}")
    if isinstance(told.get("names"), list) and len(told["names"]) > NAMES_MAX:
        raise TooLarge(f"expected at most {NAMES_MAX} names, got {len(told['names'])}")


def _number(told: Any) -> tuple[int, dict[int, int]]:
    """(highest seq, seq → place in its own list) over all records, also those that could not be read."""
    lines: dict[int, int] = {}
    for line, row in enumerate(told.get("rows", ()), start=1):
        lines.setdefault(_seq(row[0] if isinstance(row, list) and row else None), line)
    for key in _RECORD_LISTS:
        for line, item in enumerate(told.get(key, ()), start=1):
            lines.setdefault(_seq(item.get("seq") if isinstance(item, Mapping) else None), line)
    return max(lines, default=-1), lines


def _seq(value: object) -> int:
    return value if type(value) is int and 0 <= value <= wire.SEQ_MAX else -1


def _header(lines: list[tuple[int, bytes]], query: Mapping[str, str]) -> tuple[ReportBatch, int]:
    told: dict[str, Any] = {"run": {"id": query.get("run", "")}, "attempt": query.get("attempt", "main")}
    told["run"] |= {"project": query["project"]} if "project" in query else {}
    told |= {"writer": query["writer"]} if "writer" in query else {}
    first = load(lines[0][1]) if lines else None
    if isinstance(first, Mapping) and "run" in first:
        told |= {key: first[key] for key in _HEADER_FIELDS if key in first}
        return codec.decode(ReportBatch, told), 1
    return codec.decode(ReportBatch, told), 0


_HEADER_FIELDS = ("run", "attempt", "writer", "epoch", "heartbeat")
