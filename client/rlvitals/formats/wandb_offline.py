"""W&B's offline files: a log of framed protocol buffers, whose history items hold JSON texts."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from typing import BinaryIO

from rlvitals.formats import protobuf
from rlvitals.formats.json_rows import kind_of
from rlvitals.formats.row import BadLine, Row

MAGIC = b":W&B"
BLOCK = 1 << 15
_HEAD = 7
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


def rows(file: BinaryIO) -> Iterator[Row | BadLine]:
    """The history of a run; ``line`` counts records. Raises ValueError where it is no such file."""
    if file.read(len(MAGIC)) != MAGIC:
        raise ValueError("a W&B offline file was expected")
    file.seek(_HEAD)
    for count, record in enumerate(_records(file), 1):
        try:
            yield from _history(count, record)
        except ValueError as error:
            yield BadLine.of(count, str(error), "")


def _records(file: BinaryIO) -> Iterator[bytes]:
    """The framing of LevelDB's log: blocks of 32 KiB, a record may span them; a cut tail ends it."""
    parts: list[bytes] = []
    while True:
        room = BLOCK - file.tell() % BLOCK
        if room < _HEAD:
            file.seek(room, 1)
        head = file.read(_HEAD)
        if len(head) < _HEAD:
            return
        _, size, kind = struct.unpack("<IHB", head)
        data = file.read(size)
        if len(data) < size or kind not in (_FULL, _FIRST, _MIDDLE, _LAST):
            return
        parts = [data] if kind in (_FULL, _FIRST) else [*parts, data]
        if kind in (_FULL, _LAST):
            yield b"".join(parts)
            parts = []


def _history(count: int, record: bytes) -> Iterator[Row]:
    for number, value in protobuf.fields(record):
        if number == 2 and isinstance(value, bytes):
            yield from _row(count, value)


def _row(count: int, data: bytes) -> Iterator[Row]:
    step: int | None = None
    values: dict[str, float] = {}
    for number, value in protobuf.fields(data):
        if number == 1 and isinstance(value, bytes):
            name, found = _item(value)
            if found is not None:
                values[name] = found
        elif number == 2 and isinstance(value, bytes):
            step = next((protobuf.signed(inner) for n, inner in protobuf.fields(value) if n == 1), step)
    own = values.pop("_step", None)
    if own is not None and math.isfinite(own):
        step = int(own)
    told = {name: value for name, value in values.items() if not name.startswith("_")}
    if told:
        yield Row(line=count, step=step, values=told, kind=kind_of(told))


def _item(data: bytes) -> tuple[str, float | None]:
    names: list[str] = []
    text = ""
    for number, value in protobuf.fields(data):
        if number in (1, 2) and isinstance(value, bytes):
            names.append(value.decode("utf-8", "replace"))
        elif number == 16 and isinstance(value, bytes):
            text = value.decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except ValueError:
        return "/".join(names), None
    return "/".join(names), float(found) if isinstance(found, (int, float)) else None
