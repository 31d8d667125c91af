"""Parquet as trackers export it: a row a step, a column a metric."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlvitals.formats.json_rows import row_of
from rlvitals.formats.row import BadLine, Row

MAGIC = b"PAR1"
ROWS_AT_ONCE = 1_000
_RUNS = ("run_name", "run_id", "run")


def rows(path: Path, run: str | None = None) -> Iterator[Row | BadLine]:
    """One run's rows: ``run`` is its name, else that of the last row. ``line`` counts the file's rows.

    Raises ValueError where pyarrow is not there, the file is damaged, or holds no such run.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ValueError(
            f"{path}: Parquet is read by pyarrow, which is not installed: pip install 'rlvitals[check]'"
        ) from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            column = next((name for name in _RUNS if name in file.schema_arrow.names), None)
            chosen = run if run is not None or column is None else _last(file, column)
            found = 0
            for line, record in enumerate(_records(file), 1):
                if column is None or str(record.get(column)) == chosen:
                    found += 1
                    yield from row_of(line, {name: value for name, value in record.items() if name not in _IDS})
    except pyarrow.ArrowException as error:
        raise ValueError(f"{path}: a sound Parquet file was expected: {error}") from None
    if not found and run is not None:
        raise ValueError(f"{path}: no run called {run!r} in this file")


_IDS = frozenset({"id", "log_id", "timestamp", "space_id", *_RUNS})


def _records(file: Any) -> Iterator[dict[str, Any]]:
    for batch in file.iter_batches(batch_size=ROWS_AT_ONCE):
        yield from batch.to_pylist()


def _last(file: Any, column: str) -> str:
    name = ""
    for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=[column]):
        told = batch.column(0).to_pylist()
        name = str(told[-1]) if told else name
    return name
