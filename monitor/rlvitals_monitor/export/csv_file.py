"""Frames as CSV (RFC 4180): an empty cell is missing, ``NaN``, ``Infinity`` and ``-Infinity`` are themselves."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from datetime import timezone

from rlvitals.contract.codec import NAN, NEG_INF, POS_INF
from rlvitals_monitor.export.columns import STEP, TIME, column_names
from rlvitals_monitor.store.frames import Frame, Source
from rlvitals_monitor.store.numbers import from_micros

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_SPELT = {"nan": NAN, "inf": POS_INF, "-inf": NEG_INF}


def write_csv(source: Source, frames: Iterable[Frame]) -> Iterator[bytes]:
    """The file piece by piece. A name that a spreadsheet would take for a formula begins with an apostrophe;
    numbers are written so that they are read back as the very same double.
    """
    yield _lines([[STEP, TIME, *map(_name, column_names(source.metrics))]])
    for frame in frames:
        yield _lines(_rows(frame))


def _rows(frame: Frame) -> Iterator[list[str]]:
    steps, times, timed = frame.step.tolist(), frame.time_us.tolist(), frame.timed.tolist()
    for place, (values, present) in enumerate(zip(frame.value.tolist(), frame.present.tolist(), strict=True)):
        cells = [_number(value) if there else "" for value, there in zip(values, present, strict=True)]
        yield [str(steps[place]), _time(times[place]) if timed[place] else "", *cells]


def _number(value: float) -> str:
    text = repr(value)
    return _SPELT.get(text, text)


def _time(micros: int) -> str:
    return from_micros(micros).astimezone(timezone.utc).isoformat(timespec="microseconds")


def _name(name: str) -> str:
    return f"'{name}" if name.startswith(_FORMULA) else name


def _lines(rows: Iterable[Iterable[str]]) -> bytes:
    written = io.StringIO()
    csv.writer(written).writerows(rows)
    return written.getvalue().encode("utf-8", "backslashreplace")
