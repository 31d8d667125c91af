"""Frames as Parquet, one row group each: null is missing, NaN and the infinities are themselves."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from rlvitals.contract.metrics import find
from rlvitals_monitor.errors import BadRequest
from rlvitals_monitor.export.columns import STEP, TIME, column_names
from rlvitals_monitor.store.frames import Frame, Source

if TYPE_CHECKING:
    import pyarrow

MISSING = "this service has no pyarrow: `pip install 'rlvitals[parquet]'` where it runs, or ask for csv"


class _Sink:
    """A file that is written to, and emptied by whoever passes it on."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._at = 0
        self.closed = False

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._pieces.append(piece)
        self._at += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        """There is nothing beneath it."""

    def close(self) -> None:
        self.closed = True

    def take(self) -> bytes:
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken


def check() -> None:
    """Raises `BadRequest` where Parquet cannot be written."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise BadRequest(MISSING, field="format") from None


def write_parquet(source: Source, frames: Iterable[Frame]) -> Iterator[bytes]:
    """The file piece by piece. Units and meanings of known metrics are in their fields' metadata, the run and
    from which step on raw points were kept in the schema's.
    """
    import pyarrow as pa
    from pyarrow import parquet

    sink, schema = _Sink(), _schema(pa, source)
    writer = parquet.ParquetWriter(pa.PythonFile(sink, mode="w"), schema, compression="zstd")
    try:
        for frame in frames:
            writer.write_table(_table(pa, schema, frame))
            yield sink.take()
    finally:
        writer.close()
    yield sink.take()


def _schema(pa: Any, source: Source) -> pyarrow.Schema:
    told = {"run": source.run, "project": source.project, "attempt": source.attempt}
    if source.raw_from is not None:
        told["raw_from"] = str(source.raw_from)
    names = column_names(source.metrics)
    columns = [pa.field(STEP, pa.int64(), nullable=False), pa.field(TIME, pa.timestamp("us", tz="UTC"))]
    for name, metric in zip(names, source.metrics, strict=True):
        columns.append(pa.field(_storable(name), pa.float64(), metadata=_about(metric)))
    return pa.schema(columns, metadata={"rlvitals": json.dumps(told)})


def _about(metric: str) -> dict[str, str]:
    known = find(metric)
    said = {"metric": _storable(metric)}
    return said if known is None else {**said, "unit": known.unit, "meaning": known.meaning}


def _table(pa: Any, schema: pyarrow.Schema, frame: Frame) -> pyarrow.Table:
    times = pa.array(frame.time_us, pa.timestamp("us", tz="UTC"), mask=~frame.timed)
    columns = [pa.array(frame.step, pa.int64()), times]
    for place in range(frame.value.shape[1]):
        # from_pandas would take NaN for null
        columns.append(
            pa.array(frame.value[:, place], pa.float64(), mask=~frame.present[:, place], from_pandas=False)
        )
    return pa.Table.from_arrays(columns, schema=schema)


def _storable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
