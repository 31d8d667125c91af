"""As much of the protocol-buffer wire format as event files need."""

from __future__ import annotations

import struct
from collections.abc import Iterator

Field = tuple[int, "int | bytes"]


def fields(data: bytes) -> Iterator[Field]:
    """(number, value) of each field: whole numbers for varints and fixed fields, bytes for the rest.

    Raises ValueError on what is no message.
    """
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = varint(data, at)
            yield number, value
        elif kind == 2:
            size, at = varint(data, at)
            yield number, data[at : at + size]
            at += size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            yield number, data[at : at + size]
            at += size
        else:
            raise ValueError(f"a protocol buffer was expected, got field kind {kind}")
        if at > len(data):
            raise ValueError("a protocol buffer was expected, its last field is cut")


def varint(data: bytes, at: int) -> tuple[int, int]:
    """(value, index behind it). Raises ValueError where it is cut or too long."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a protocol buffer was expected, a number in it is cut")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def double(value: int | bytes) -> float:
    return float(struct.unpack("<d", value)[0]) if isinstance(value, bytes) and len(value) == 8 else 0.0


def single(value: int | bytes) -> float:
    return float(struct.unpack("<f", value)[0]) if isinstance(value, bytes) and len(value) == 4 else 0.0


def signed(value: int | bytes) -> int:
    """A varint as a signed 64-bit number."""
    if isinstance(value, bytes):
        return 0
    return value - (1 << 64) if value >= 1 << 63 else value
