"""The journal's binary records: frame, step, missing, extremes. Pure: bytes in, bytes out.

A frame is ``mark | kind | payload length | seq | payload | CRC-32`` (little endian, the CRC over all before it).
The mark begins with a byte that no UTF-8 text contains, so that a reader can find its way again after damage.
A step's payload is ``step | time | bitmap of the names that are present | one double each``.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from rlvitals.contract.report import Extreme

MARK = b"\xf5RV1"
HEAD = struct.Struct("<4sBIQ")
TAIL = struct.Struct("<I")
STEP = struct.Struct("<qdH")
EXTREME = struct.Struct("<HdqqqBH")
PAYLOAD_BYTES_MAX = 16 * 1024 * 1024
TOKEN_CHARS_MAX = 256
OVERHEAD_BYTES = HEAD.size + TAIL.size


class Kind(IntEnum):
    SCHEMA = 1
    NAMES = 2
    STEP = 3
    MISSING = 4
    EXTREMES = 5
    HISTOGRAM = 6
    TEXT = 7
    EVENT = 8
    COMMAND = 9
    OUTCOME = 10


@dataclass(frozen=True, slots=True)
class Frame:
    kind: int
    seq: int
    payload: bytes
    size: int


@dataclass(slots=True)
class Scan:
    """What a stretch of a segment holds. ``used`` bytes are settled; the rest waits for more."""

    frames: list[Frame]
    used: int = 0
    torn: int = 0
    corrupt: int = 0


def frame(kind: int, seq: int, payload: bytes) -> bytes:
    """One framed record."""
    body = HEAD.pack(MARK, kind, len(payload), seq) + payload
    return body + TAIL.pack(zlib.crc32(body))


def scan(data: bytes, *, ended: bool, limit: int = 1 << 30) -> Scan:
    """Reads up to ``limit`` frames. ``ended``: nothing will be added, so a half record at the end is torn.

    A damaged record is counted and skipped up to the next one that is whole; without one the rest is skipped if
    ``ended`` and left waiting if not.
    """
    found = Scan([])
    while found.used < len(data) and len(found.frames) < limit:
        one = _frame_at(data, found.used)
        if one is not None:
            found.frames.append(one)
            found.used += one.size
            continue
        onward = _resync(data, found.used + 1)
        if onward is not None:
            found.corrupt += 1
            found.used = onward
        elif ended:
            half = data.startswith(MARK[: len(data) - found.used], found.used)
            found.torn, found.corrupt = found.torn + half, found.corrupt + (not half)
            found.used = len(data)
        else:
            break
    return found


def _frame_at(data: bytes, at: int) -> Frame | None:
    if at + OVERHEAD_BYTES > len(data):
        return None
    mark, kind, length, seq = HEAD.unpack_from(data, at)
    body_end = at + HEAD.size + length
    if mark != MARK or length > PAYLOAD_BYTES_MAX or body_end + TAIL.size > len(data):
        return None
    if TAIL.unpack_from(data, body_end)[0] != zlib.crc32(memoryview(data)[at:body_end]):
        return None
    return Frame(kind, seq, bytes(data[at + HEAD.size : body_end]), body_end + TAIL.size - at)


def _resync(data: bytes, start: int) -> int | None:
    at = data.find(MARK, start)
    while at >= 0:
        if _frame_at(data, at) is not None:
            return at
        at = data.find(MARK, at + 1)
    return None


def bitmap_of(indices: Sequence[int]) -> bytes:
    """Bit i of byte i // 8 is set where name i is present."""
    bits = bytearray(max(indices, default=-1) // 8 + 1)
    for index in indices:
        bits[index // 8] |= 1 << index % 8
    return bytes(bits)


def indices_of(bitmap: bytes) -> Iterator[int]:
    """The inverse of `bitmap_of`, in rising order."""
    for place, byte in enumerate(bitmap):
        for bit in range(8):
            if byte >> bit & 1:
                yield place * 8 + bit


def read_step(payload: bytes) -> tuple[int, float, bytes, tuple[float, ...]]:
    """A step's payload as (step, time_s, bitmap, values in the order of the bitmap)."""
    step, time_s, width = STEP.unpack_from(payload)
    bitmap = payload[STEP.size : STEP.size + width]
    rest = len(payload) - STEP.size - width
    return step, time_s, bitmap, struct.unpack_from(f"<{rest // 8}d", payload, STEP.size + width)


def missing_payload(reasons: Mapping[str, str]) -> bytes:
    """Metric → reason, as JSON; goes before its step with the step's seq in front."""
    return json.dumps(dict(reasons), separators=(",", ":")).encode("ascii")


def extremes_payload(extremes: Mapping[str, Extreme], index: Mapping[str, int]) -> bytes:
    """Packs extremes; a whole number that is None is told by a flag bit, so that every number stays possible.

    One that 64 bits can't hold counts as None: the step that it came with is worth more.
    """
    parts = []
    for name, extreme in extremes.items():
        whole = tuple(_held(n) for n in (extreme.token_id, extreme.position, extreme.sample))
        flags = sum(1 << i for i, n in enumerate(whole) if n is not None)
        flags |= 0 if extreme.masked is None else 8 | (16 if extreme.masked else 0)
        flags |= 0 if extreme.token is None else 32
        token = (extreme.token or "")[:TOKEN_CHARS_MAX].encode("utf-8", "surrogatepass")
        numbers = (n if n is not None else 0 for n in whole)
        parts.append(EXTREME.pack(index[name], extreme.value, *numbers, flags, len(token)) + token)
    return b"".join(parts)


def _held(number: int | None) -> int | None:
    return number if number is None or -(1 << 63) <= number < 1 << 63 else None


def read_extremes(payload: bytes, names: Sequence[str | None]) -> dict[str, Extreme]:
    """The inverse of `extremes_payload`."""
    found: dict[str, Extreme] = {}
    at = 0
    while at + EXTREME.size <= len(payload):
        index, value, token_id, position, sample, flags, size = EXTREME.unpack_from(payload, at)
        at += EXTREME.size + size
        name = names[index] if index < len(names) else None
        if name is None:
            continue
        found[name] = Extreme(
            value=value,
            token_id=token_id if flags & 1 else None,
            position=position if flags & 2 else None,
            sample=sample if flags & 4 else None,
            masked=bool(flags & 16) if flags & 8 else None,
            token=payload[at - size : at].decode("utf-8", "surrogatepass") if flags & 32 else None,
        )
    return found
