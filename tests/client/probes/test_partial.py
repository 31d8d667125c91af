"""Completions in parts: the same counts as of whole ones, wherever they are parted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models

from rlvitals.probes.arguments import DtypeError, ShapeError
from rlvitals.probes.partial import begin, count_part
from rlvitals.probes.scan import code_rows, scan
from rlvitals.probes.text import pack
from rlvitals.probes.tokens import TokenTable
from rlvitals.probes.utf8 import State
from rlvitals.probes.vocabulary import byte_alphabet

BYTES = [0x41, 0x80, 0x90, 0x9F, 0xA0, 0xBD, 0xBF, 0xC0, 0xC3, 0xE0, 0xE4, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xFF, 700]


@pytest.fixture(scope="module")
def bytes_table() -> TokenTable:
    tokenizer = Tokenizer(models.BPE(vocab={text: byte for byte, text in byte_alphabet().items()}, merges=[]))
    tokenizer.decoder = decoders.ByteLevel()
    return TokenTable.read(tokenizer)


parts = st.lists(
    st.lists(st.lists(st.sampled_from(BYTES), max_size=5), min_size=3, max_size=3), min_size=1, max_size=8
)


@settings(max_examples=30, deadline=None)
@given(parts)
def test_counts_of_parts_add_up_to_those_of_whole_completions(
    bytes_table: TokenTable, rows: list[list[list[int]]]
) -> None:
    states = begin(len(rows))
    errors, literals = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    for part in zip(*rows, strict=True):
        counts = count_part(bytes_table, *pack(part), states)
        errors, literals, states = errors + counts.errors, literals + counts.literals, counts.states
    ids, lengths = pack([[i for part in row for i in part] for row in rows])
    mask = np.arange(ids.shape[1]) < lengths[:, None]
    found = scan(bytes_table.maps, code_rows(bytes_table.map_of, bytes_table.slots(ids), mask))
    assert errors.tolist() == found.errors.tolist()
    assert literals.tolist() == found.literals.tolist()
    assert (states != State.BORDER).tolist() == (found.tails > 0).tolist()


def test_a_part_that_begins_inside_a_character_is_no_orphan(bytes_table: TokenTable) -> None:
    first = count_part(bytes_table, *pack([[0x41, 0xE4], [0xE4], []]), begin(3))
    assert first.states.tolist() == [State.TWO, State.TWO, State.BORDER]
    assert first.states.nbytes == 3
    second = count_part(bytes_table, *pack([[0xBD, 0xA0], [], [0xBD]]), first.states)
    assert second.errors.tolist() == [0, 0, 1]
    assert second.states.tolist() == [State.BORDER, State.TWO, State.BORDER]


def test_the_state_is_kept_where_a_vocabulary_has_hundreds_of_maps() -> None:
    alphabet = byte_alphabet()
    pieces = {text: byte for byte, text in alphabet.items()} | {alphabet[0xFF] * n: 254 + n for n in range(2, 260)}
    tokenizer = Tokenizer(models.BPE(vocab=pieces, merges=[]))
    tokenizer.decoder = decoders.ByteLevel()
    table = TokenTable.read(tokenizer)
    assert not table.mismatch
    first = count_part(table, *pack([[0xE4, 0xBD], [300]]), begin(2))
    assert first.errors.tolist() == [0, 46]
    assert first.states.tolist() == [State.ONE, State.BORDER]
    assert count_part(table, *pack([[0xA0], [0xA0]]), first.states).errors.tolist() == [0, 1]


def test_the_states_given_are_not_written_to(bytes_table: TokenTable) -> None:
    states = begin(1)
    count_part(bytes_table, *pack([[0xE4]]), states)
    assert states.tolist() == [0]


def test_arguments_of_the_wrong_kind_or_shape_are_told(bytes_table: TokenTable) -> None:
    with pytest.raises(DtypeError, match="ids: expected integers"):
        count_part(bytes_table, np.zeros((1, 2)), [2], begin(1))
    for shape, rows in (((2,), 1), ((2, 2), 2), ((1, 2), 3)):
        with pytest.raises(ShapeError, match="states"):
            count_part(bytes_table, np.zeros(shape, int), [2], begin(rows))
