"""UTF-8 as a transducer over tokens: how many ill-formed subparts and literal U+FFFD a stream of ids spells.

A decoder of ten states. One error is one maximal ill-formed subpart, which is what Unicode recommends to replace
by one U+FFFD and what Python's ``errors="replace"`` does. The last two states exist only to see a well-formed
U+FFFD (EF BF BD) that is spelt across tokens. A token is then a map from state to (state, errors, literals), and
all whole-text tokens share one map.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt


class State(IntEnum):
    """What the decoder waits for."""

    BORDER = 0
    ONE = 1
    TWO = 2
    AFTER_E0 = 3
    AFTER_ED = 4
    AFTER_F0 = 5
    AFTER_F1_F3 = 6
    AFTER_F4 = 7
    AFTER_EF = 8
    AFTER_EF_BF = 9


# state: (first and last byte that continues, the state after it)
_CONTINUES: dict[State, tuple[int, int, State]] = {
    State.ONE: (0x80, 0xBF, State.BORDER),
    State.TWO: (0x80, 0xBF, State.ONE),
    State.AFTER_E0: (0xA0, 0xBF, State.ONE),
    State.AFTER_ED: (0x80, 0x9F, State.ONE),
    State.AFTER_F0: (0x90, 0xBF, State.TWO),
    State.AFTER_F1_F3: (0x80, 0xBF, State.TWO),
    State.AFTER_F4: (0x80, 0x8F, State.TWO),
    State.AFTER_EF: (0x80, 0xBF, State.ONE),
    State.AFTER_EF_BF: (0x80, 0xBF, State.BORDER),
}

# first and last byte of a character's start, and the state after it
_STARTS: tuple[tuple[int, int, State], ...] = (
    (0x00, 0x7F, State.BORDER),
    (0xC2, 0xDF, State.ONE),
    (0xE0, 0xE0, State.AFTER_E0),
    (0xE1, 0xEC, State.TWO),
    (0xED, 0xED, State.AFTER_ED),
    (0xEE, 0xEE, State.TWO),
    (0xEF, 0xEF, State.AFTER_EF),
    (0xF0, 0xF0, State.AFTER_F0),
    (0xF1, 0xF3, State.AFTER_F1_F3),
    (0xF4, 0xF4, State.AFTER_F4),
)

Step = tuple[int, int, int]
TokenMap = tuple[Step, ...]


def _start(byte: int) -> Step:
    for first, last, state in _STARTS:
        if first <= byte <= last:
            return state, 0, 0
    return State.BORDER, 1, 0


def _step(state: State, byte: int) -> Step:
    """(next state, errors, literals): a byte that does not continue ends the subpart and is read again."""
    if state is State.BORDER:
        return _start(byte)
    first, last, after = _CONTINUES[state]
    if first <= byte <= last:
        if state is State.AFTER_EF and byte == 0xBF:
            return State.AFTER_EF_BF, 0, 0
        return after, 0, int(state is State.AFTER_EF_BF and byte == 0xBD)
    then, errors, literals = _start(byte)
    return then, errors + 1, literals


_STEPS: tuple[tuple[Step, ...], ...] = tuple(tuple(_step(state, byte) for byte in range(256)) for state in State)


def run(text: bytes, state: int = State.BORDER) -> Step:
    """(state after, errors, literals) of ``text`` read from ``state``; a pending subpart is no error yet."""
    errors = literals = 0
    for byte in text:
        state, error, literal = _STEPS[state][byte]
        errors += error
        literals += literal
    return int(state), errors, literals


def token_map(text: bytes) -> TokenMap:
    """What a token with these bytes does from each state."""
    return tuple(run(text, state) for state in State)


TRIVIAL: TokenMap = tuple((int(State.BORDER), int(state is not State.BORDER), 0) for state in State)
"""Whole text; also a token that breaks a character without adding bytes (special, unassigned, out of range)."""

RESET: TokenMap = tuple((int(State.BORDER), 0, 0) for _ in State)
"""The end of a completion: what is pending was cut, which is no error."""

# rows are 16 apart so that a lookup is a shift
STRIDE = 16
_RESET_ROW = 1
# up to this many maps two of them fit in one 16-bit number together with a state
PAIRED = 64


@dataclass(frozen=True, slots=True)
class Maps:
    """Token maps as flat tables, indexed by ``map * STRIDE + state``. Map 0 is TRIVIAL, map 1 is RESET."""

    after: npt.NDArray[np.int64]
    errors: npt.NDArray[np.uint16]
    literals: npt.NDArray[np.uint16]
    notable: npt.NDArray[np.bool_]
    """whether the step counts an error or a literal, or cuts a character at the end of a completion"""
    pairs: Pairs | None
    """the same of two maps at once; None where there are more than ``PAIRED``"""

    @classmethod
    def of(cls, maps: list[TokenMap]) -> Maps:
        table = np.zeros((len(maps), STRIDE, 3), np.int64)
        table[:, : len(State)] = np.asarray(maps)
        return cls.of_columns(*table.reshape(-1, 3).T)

    @classmethod
    def of_columns(
        cls, after: npt.NDArray[np.integer], errors: npt.NDArray[np.integer], literals: npt.NDArray[np.integer]
    ) -> Maps:
        """From the three flat tables; raises ValueError where they are no maps."""
        if not (after.shape == errors.shape == literals.shape == (after.size,)) or after.size % STRIDE:
            raise ValueError(f"maps: expected three tables of a multiple of {STRIDE}, got {after.shape}")
        if int(after.min(initial=0)) < 0 or int(after.max(initial=0)) >= len(State):
            raise ValueError("maps: a state that is none")
        notable = (errors + literals) > 0
        notable[_RESET_ROW * STRIDE + 1 : _RESET_ROW * STRIDE + len(State)] = True
        return cls(
            after=np.ascontiguousarray(after, np.int64),
            errors=errors.astype(np.uint16),
            literals=literals.astype(np.uint16),
            notable=notable,
            pairs=Pairs.of(after.reshape(-1, STRIDE), notable.reshape(-1, STRIDE)),
        )


@dataclass(frozen=True, slots=True)
class Pairs:
    """Two maps one after the other, numbered ``first * PAIRED + second``."""

    after: npt.NDArray[np.uint16]
    """by pair: the state after both, from a border"""
    notable: npt.NDArray[np.bool_]
    """by ``pair * STRIDE + state``: whether the second of them is notable"""

    @classmethod
    def of(cls, after: npt.NDArray[np.integer], notable: npt.NDArray[np.bool_]) -> Pairs | None:
        """From tables (maps, STRIDE)."""
        count = after.shape[0]
        if count > PAIRED:
            return None
        states = np.zeros((PAIRED, PAIRED), np.uint16)
        states[:count, :count] = after[:, after[:, State.BORDER]].T
        flags = np.zeros((PAIRED, PAIRED, STRIDE), bool)
        flags[:count, :count] = notable[:, after].transpose(1, 0, 2)
        return cls(after=states.ravel(), notable=flags.ravel())
