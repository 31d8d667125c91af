"""CSV exports: one column a metric, or one row a point (``metric,step,value``)."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable, Iterator

from rlvitals.formats.json_rows import STEP_NAMES, kind_of
from rlvitals.formats.numbers import NOTHING, number, whole
from rlvitals.formats.row import BadLine, Row

_NAME_COLUMNS = ("metric", "key", "name", "tag")
FIELD_MAX = 1 << 17


def rows(lines: Iterable[str]) -> Iterator[Row | BadLine]:
    """Reads a CSV with a header line, by commas or by semicolons (where a comma may be the decimal mark).

    Raises ValueError where there is no header.
    """
    csv.field_size_limit(FIELD_MAX)
    source = iter(lines)
    first = next(source, "")
    semicolons = ";" in first and "," not in first
    table = csv.reader(itertools.chain([first], source), delimiter=";" if semicolons else ",")
    try:
        header = [name.strip().lstrip("\ufeff") for name in next(table, [])]
    except csv.Error as error:
        raise ValueError(f"a header line was expected: {error}") from None
    if len(header) < 2:
        raise ValueError("a header line with two or more columns was expected")
    lower = [name.lower() for name in header]
    step_at = next((lower.index(name) for name in STEP_NAMES if name in lower), None)
    name_at = next((lower.index(name) for name in _NAME_COLUMNS if name in lower), None)
    value_at = lower.index("value") if "value" in lower else None
    while True:
        try:
            cells = next(table)
        except StopIteration:
            return
        except csv.Error as error:
            yield BadLine.of(table.line_num, f"a CSV row was expected: {error}", "")
            continue
        if not cells:
            continue
        if len(cells) != len(header):
            reason = f"{len(header)} columns were expected, got {len(cells)}"
            yield BadLine.of(table.line_num, reason, ",".join(cells))
            continue
        if semicolons:
            cells = [_with_point(cell) for cell in cells]
        step = whole(number(cells[step_at])) if step_at is not None else None
        if name_at is not None and value_at is not None:
            named = [(cells[name_at].strip(), cells[value_at])]
        else:
            named = [
                (name, cell) for at, (name, cell) in enumerate(zip(header, cells, strict=True)) if at != step_at
            ]
        yield from _row(table.line_num, step, named)


def _with_point(cell: str) -> str:
    return cell.replace(",", ".") if cell.count(",") == 1 and "." not in cell else cell


def _row(line: int, step: int | None, named: list[tuple[str, str]]) -> Iterator[Row]:
    values = {name: value for name, cell in named if (value := number(cell)) is not None}
    missing = tuple(name for name, cell in named if cell.strip().lower() in NOTHING)
    if values or missing:
        yield Row(line=line, step=step, values=values, missing=missing, kind=kind_of(values))
