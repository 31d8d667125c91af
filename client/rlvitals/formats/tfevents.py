"""TensorBoard's event files: framed records, each a protocol buffer with a step and scalars."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

from rlvitals.formats import protobuf
from rlvitals.formats.json_rows import kind_of
from rlvitals.formats.row import BadLine, Row

RECORD_MAX = 1 << 26
_FLOAT, _DOUBLE = 1, 2


def rows(file: BinaryIO) -> Iterator[Row | BadLine]:
    """All scalars, one row a record; ``line`` counts records. A record that is cut is the end for now."""
    count = 0
    while True:
        start = file.tell()
        head = file.read(12)
        if len(head) < 12:
            file.seek(start)
            return
        (size,) = struct.unpack("<Q", head[:8])
        count += 1
        if size > RECORD_MAX:
            yield BadLine.of(count, f"a record of at most {RECORD_MAX} bytes was expected, got {size}", "")
            return
        body = file.read(size + 4)
        if len(body) < size + 4:
            file.seek(start)
            return
        try:
            yield from _event(count, body[:size])
        except ValueError as error:
            yield BadLine.of(count, str(error), "")


def _event(count: int, data: bytes) -> Iterator[Row]:
    step, values = 0, dict[str, float]()
    for number, value in protobuf.fields(data):
        if number == 2:
            step = protobuf.signed(value)
        elif number == 5 and isinstance(value, bytes):
            values |= dict(_summary(value))
    if values:
        yield Row(line=count, step=max(step, 0), values=values, kind=kind_of(values))


def _summary(data: bytes) -> Iterator[tuple[str, float]]:
    for number, item in protobuf.fields(data):
        if number == 1 and isinstance(item, bytes):
            tag, found = "", None
            for inner, value in protobuf.fields(item):
                if inner == 1 and isinstance(value, bytes):
                    tag = value.decode("utf-8", "replace")
                elif inner == 2:
                    found = protobuf.single(value)
                elif inner == 8 and isinstance(value, bytes):
                    found = _tensor(value)
            if tag and found is not None:
                yield tag, found


def _tensor(data: bytes) -> float | None:
    """The scalar of a tensor of one single or double, else None."""
    kind, content, spelt = 0, b"", None
    for number, value in protobuf.fields(data):
        if number == 1 and isinstance(value, int):
            kind = value
        elif number == 4 and isinstance(value, bytes):
            content = value
        elif number in (5, 6) and isinstance(value, bytes):
            spelt = value
    data = content or spelt or b""
    if kind == _FLOAT and len(data) == 4:
        return protobuf.single(data)
    return protobuf.double(data) if kind == _DOUBLE and len(data) == 8 else None
