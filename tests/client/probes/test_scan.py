"""The vectorised transducer against the bytes themselves, however dense the pieces and however many the maps."""

from __future__ import annotations

import numpy as np
import pytest

from rlvitals.probes.scan import BLOCK, RowCounts, code_rows, scan
from rlvitals.probes.utf8 import PAIRED, RESET, TRIVIAL, Maps, State, run, token_map

# bytes and pieces at the edges of the grammar
FRAGMENTS = [bytes([b]) for b in (0x80, 0x90, 0x9F, 0xA0, 0xBD, 0xBF, 0xC3, 0xE0, 0xE4, 0xED, 0xEF)]
FRAGMENTS += [bytes([b]) for b in (0xF0, 0xF1, 0xF4, 0xFF)]
FRAGMENTS += [b" \xe5", b"\xbd\xa0", b"\xa0 x", b"\x80\xe4\xbd", b"\xf0\x9f", b"\xf0\x9f\x98", b"\xef\xbf"]
FRAGMENTS += ["a\ufffd".encode()]
# each with another number of errors, so that no two share a map
MANY = [*FRAGMENTS, *(b"\xff" * n for n in range(2, 2 + PAIRED))]


def counted(pieces: list[bytes], ids: np.ndarray, lengths: np.ndarray) -> RowCounts:
    own: dict[object, int] = {TRIVIAL: 0, RESET: 1}
    map_of = np.asarray([own.setdefault(token_map(piece), len(own)) for piece in pieces], np.uint16)
    maps = Maps.of(list(own))  # type: ignore[arg-type]
    assert (maps.pairs is None) == (len(own) > PAIRED)
    chosen = np.arange(ids.shape[1]) < lengths[:, None]
    return scan(maps, code_rows(map_of, ids, chosen))


@pytest.mark.parametrize("fragments", [FRAGMENTS, MANY], ids=["few maps", "more maps than pairs allow"])
@pytest.mark.parametrize("share", [0.02, 0.3, 1.0])
def test_counts_are_those_of_the_joined_bytes(fragments: list[bytes], share: float) -> None:
    pieces = [*fragments, *(f"word{n}".encode() for n in range(50))]
    draw = np.random.default_rng(7)
    shape = (40, 50)
    ids = np.where(
        draw.random(shape) < share,
        draw.integers(0, len(fragments), shape),
        draw.integers(len(fragments), len(pieces), shape),
    )
    lengths = draw.integers(0, shape[1] + 1, shape[0])
    lengths[:2] = 0, shape[1]
    found = counted(pieces, ids, lengths)
    for row, length in enumerate(lengths.tolist()):
        state, errors, literals = run(b"".join(pieces[i] for i in ids[row, :length]))
        assert found.errors[row] == errors
        assert found.literals[row] == literals
        assert found.tails[row] == (state != State.BORDER)


def test_errors_are_named_by_the_token_at_which_they_came_to_light() -> None:
    pieces = [b"ok", b"\xe4", b"\xbd", b"\xa0"]
    ids = np.asarray([[0, 1, 2, 3, 0], [1, 2, 0, 0, 0], [3, 3, 0, 1, 2]])
    found = counted(pieces, ids, np.asarray([5, 5, 5]))
    assert found.error_rows.tolist() == [1, 2, 2]
    assert found.error_positions.tolist() == [2, 0, 1]
    assert found.tails.tolist() == [0, 0, 1]


def test_rows_longer_than_a_block_and_no_rows_at_all_are_scanned() -> None:
    long = np.zeros((1, BLOCK + 5), np.int64)
    long[0, -2:] = 1, 0
    assert counted([b"ok", b"\xe4"], long, np.asarray([BLOCK + 5])).errors.tolist() == [1]
    for shape in ((0, 5), (3, 0), (0, 0)):
        found = counted([b"ok", b"\xe4"], np.zeros(shape, np.int64), np.zeros(shape[0], np.int64))
        assert found.errors.tolist() == [0] * shape[0]
