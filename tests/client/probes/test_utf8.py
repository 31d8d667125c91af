"""The transducer against Python's own UTF-8 decoder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.probes.utf8 import RESET, STRIDE, TRIVIAL, Maps, State, run, token_map

# bytes at every edge of the grammar, so that random strings meet its corners
EDGES = [0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBD, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF]
EDGES += [0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF]
edge_bytes = st.lists(st.sampled_from(EDGES), max_size=12).map(bytes)


def counted(text: bytes) -> int:
    state, errors, literals = run(text)
    return errors + literals + (state != State.BORDER)


@given(st.one_of(st.binary(max_size=24), edge_bytes))
def test_errors_tail_and_literals_are_the_replacement_characters_of_pythons_decoder(text: bytes) -> None:
    assert counted(text) == text.decode("utf-8", "replace").count("\ufffd")


@given(st.text(max_size=20))
def test_well_formed_text_has_no_error_and_no_tail(text: str) -> None:
    state, errors, literals = run(text.encode("utf-8", "replace"))
    assert (state, errors) == (State.BORDER, 0)
    assert literals == text.count("\ufffd")


@pytest.mark.parametrize(
    ("text", "errors"),
    [(b"\x80", 1), (b"\x80\x80", 2), (b"\xff", 1), (b"\xe4\xbdA", 1), (b"\xc0\x80", 2), (b"\xed\xa0\x80", 3)],
)
def test_each_maximal_ill_formed_subpart_is_one_error(text: bytes, errors: int) -> None:
    assert run(text) == (State.BORDER, errors, 0)


def test_a_replacement_character_spelt_byte_by_byte_is_a_literal_and_no_error() -> None:
    assert run(b"\xef\xbf\xbd") == (State.BORDER, 0, 1)
    assert run(b"\xbd", State.AFTER_EF_BF) == (State.BORDER, 0, 1)


@given(edge_bytes, edge_bytes)
def test_the_map_of_a_token_does_what_its_bytes_do_wherever_it_stands(before: bytes, token: bytes) -> None:
    state, errors, literals = run(before)
    after, more_errors, more_literals = token_map(token)[state]
    assert run(before + token) == (after, errors + more_errors, literals + more_literals)


@given(st.text(min_size=1, max_size=6).filter(lambda t: "\ufffd" not in t))
def test_whole_text_shares_the_trivial_map(text: str) -> None:
    assert token_map(text.encode("utf-8", "replace")) == TRIVIAL


def test_tables_hold_the_maps_at_map_times_stride_plus_state() -> None:
    maps = Maps.of([TRIVIAL, RESET, token_map(b"\xe4")])
    assert maps.after[2 * STRIDE + State.BORDER] == State.TWO
    assert maps.errors[2 * STRIDE + State.ONE] == 1
    assert maps.errors[0 * STRIDE + State.ONE] == 1
    assert maps.errors[1 * STRIDE + State.ONE] == 0
