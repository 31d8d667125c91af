from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.contract.report import Extreme
from rlvitals.record import (
    MARK,
    Kind,
    bitmap_of,
    extremes_payload,
    frame,
    indices_of,
    read_extremes,
    scan,
)

FRAMES = [frame(Kind.EVENT, seq, b"payload %d" % seq) for seq in range(1, 6)]
WHOLE = b"".join(FRAMES)


def test_frames_are_read_back_in_order() -> None:
    found = scan(WHOLE, ended=True)
    assert [f.seq for f in found.frames] == [1, 2, 3, 4, 5]
    assert [f.payload for f in found.frames][2] == b"payload 3"
    assert (found.used, found.torn, found.corrupt) == (len(WHOLE), 0, 0)


@given(st.integers(1, len(FRAMES[-1]) - 1))
def test_a_torn_last_record_is_skipped_and_counted(missing: int) -> None:
    found = scan(WHOLE[:-missing], ended=True)
    assert [f.seq for f in found.frames] == [1, 2, 3, 4]
    assert (found.torn, found.corrupt, found.used) == (1, 0, len(WHOLE) - missing)


@given(st.integers(1, len(FRAMES[-1]) - 1))
def test_a_half_record_waits_while_its_writer_may_go_on(missing: int) -> None:
    found = scan(WHOLE[:-missing], ended=False)
    assert [f.seq for f in found.frames] == [1, 2, 3, 4]
    assert (found.torn, found.corrupt, found.used) == (0, 0, len(WHOLE) - len(FRAMES[-1]))


@given(st.integers(0, len(FRAMES[2]) - 1), st.integers(1, 255))
def test_a_damaged_byte_costs_its_record_only(place: int, change: int) -> None:
    at = len(FRAMES[0]) + len(FRAMES[1]) + place
    damaged = bytearray(WHOLE)
    damaged[at] ^= change
    found = scan(bytes(damaged), ended=True)
    assert [f.seq for f in found.frames] == [1, 2, 4, 5]
    assert (found.torn, found.corrupt) == (0, 1)


def test_damage_is_passed_even_while_the_writer_goes_on() -> None:
    damaged = FRAMES[0] + b"\x00" * 40 + FRAMES[1]
    found = scan(damaged, ended=False)
    assert [f.seq for f in found.frames] == [1, 2]
    assert found.corrupt == 1


def test_damage_without_a_whole_record_after_it_is_skipped_to_the_end_and_counted() -> None:
    found = scan(FRAMES[0] + b"garbage" * 9, ended=True)
    assert [f.seq for f in found.frames] == [1]
    assert (found.torn, found.corrupt) == (0, 1)


@given(st.binary(max_size=400))
def test_any_bytes_can_be_scanned(data: bytes) -> None:
    found = scan(data, ended=True)
    assert found.used == len(data)


def test_the_mark_inside_a_payload_does_not_mislead() -> None:
    tricky = frame(Kind.TEXT, 7, MARK + b"\x01\x02\x00\x00\x00" + MARK)
    assert [f.seq for f in scan(tricky + FRAMES[0], ended=True).frames] == [7, 1]


@given(st.sets(st.integers(0, 300)))
def test_a_bitmap_gives_back_its_indices(indices: set[int]) -> None:
    assert list(indices_of(bitmap_of(sorted(indices)))) == sorted(indices)


_WHOLE_NUMBERS = st.none() | st.integers(-(2**63), 2**63 - 1)


@given(
    st.floats(allow_nan=True, allow_infinity=True),
    st.tuples(_WHOLE_NUMBERS, _WHOLE_NUMBERS, _WHOLE_NUMBERS),
    st.none() | st.booleans(),
    st.none() | st.text(max_size=40),
)
def test_an_extreme_survives_with_what_is_unknown_kept_apart_from_zero(
    value: float, whole: tuple[int | None, int | None, int | None], masked: bool | None, token: str | None
) -> None:
    sent = Extreme(value=value, token_id=whole[0], position=whole[1], sample=whole[2], masked=masked, token=token)
    got = read_extremes(extremes_payload({"a": sent, "b": sent}, {"a": 0, "b": 1}), ["a", "b"])
    for one in got.values():
        assert struct.pack("d", one.value) == struct.pack("d", value) or (
            math.isnan(value) and math.isnan(one.value)
        )
        assert (one.token_id, one.position, one.sample, one.masked, one.token) == (*whole, masked, token)


@pytest.mark.parametrize("length", [2**32 - 1, 17 * 1024 * 1024])
def test_an_absurd_length_is_damage_and_not_waited_for(length: int) -> None:
    lying = struct.pack("<4sBIQ", MARK, Kind.EVENT, length, 9) + b"x" * 50
    assert [f.seq for f in scan(lying + FRAMES[0], ended=False).frames] == [1]
