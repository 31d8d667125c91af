"""Exported numbers as frames. Missing and NaN stay two things in each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import csv, parquet

if TYPE_CHECKING:
    import pandas
    import polars

STEP, TIME = "step", "time"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def read_parquet(body: bytes) -> pa.Table:
    """A Parquet file of ``GET /export``."""
    return parquet.read_table(pa.BufferReader(body))


def read_csv(body: bytes) -> pa.Table:
    """A CSV file of ``GET /export`` as the same table, but for units and meanings."""
    read = csv.open_csv(pa.BufferReader(body))
    names = read.schema.names
    read.close()
    types = {name: pa.float64() for name in names} | {STEP: pa.int64(), TIME: pa.timestamp("us", tz="UTC")}
    convert = csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True)
    table = csv.read_csv(pa.BufferReader(body), convert_options=convert)
    return table.rename_columns([_without_apostrophe(name) for name in names])


def to_pandas(table: pa.Table) -> pandas.DataFrame:
    """With ``ArrowDtype`` columns: ``isna()`` is missing alone."""
    import pandas

    return table.to_pandas(types_mapper=pandas.ArrowDtype)


def to_polars(table: pa.Table) -> polars.DataFrame:
    """``is_null()`` is missing, ``is_nan()`` is NaN."""
    import polars

    frame = polars.from_arrow(table)
    if not isinstance(frame, polars.DataFrame):
        raise TypeError(f"a table makes a frame, not a {type(frame).__name__}")
    return frame


def _without_apostrophe(name: str) -> str:
    """What a spreadsheet would have taken for a formula was led by one."""
    return name[1:] if name.startswith("'") and name[1:].startswith(_FORMULA) else name
