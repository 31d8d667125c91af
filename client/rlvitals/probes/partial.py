"""Ill-formed UTF-8 in completions that come in parts, as resumed and streamed rollouts do.

A part may begin inside a character; looked at by itself, its first piece would be an orphan. One state a
completion, of one byte, carries over what is pending.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rlvitals.probes.arguments import ShapeError, written
from rlvitals.probes.arrays import Whole, whole
from rlvitals.probes.chosen import within
from rlvitals.probes.scan import RESET_MAP, scan, steps_at
from rlvitals.probes.tokens import TokenTable
from rlvitals.probes.utf8 import STRIDE, TRIVIAL, Maps, State, token_map

States = npt.NDArray[np.uint8]

# bytes that bring a decoder from a border into each state, without an error
_LEADS = {
    State.BORDER: b"a",
    State.ONE: b"\xc3",
    State.TWO: b"\xe4",
    State.AFTER_E0: b"\xe0",
    State.AFTER_ED: b"\xed",
    State.AFTER_F0: b"\xf0",
    State.AFTER_F1_F3: b"\xf1",
    State.AFTER_F4: b"\xf4",
    State.AFTER_EF: b"\xef",
    State.AFTER_EF_BF: b"\xef\xbf",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartCounts:
    """Per completion (B,): ill-formed subparts and literal U+FFFD that came to light in this part, and the state
    to give to the next. A completion that ends in another state than 0 was cut inside a character.
    """

    errors: Whole
    literals: Whole
    states: States


def begin(completions: int) -> States:
    """The states of completions of which nothing was seen yet."""
    return np.zeros(completions, np.uint8)


def count_part(table: TokenTable, ids: Any, lengths: Any, states: States) -> PartCounts:
    """Counts one part of each completion: ``ids`` (B, T), ``lengths`` (B,), which may be 0.

    Over all parts the counts add up to those of `scan.scan` over whole completions. Raises `ShapeError` and
    `DtypeError` for arguments of another shape or kind.
    """
    numbers, sizes = whole(ids, "ids"), whole(lengths, "lengths")
    if numbers.ndim != 2 or {sizes.shape, states.shape} != {numbers.shape[:1]}:
        raise ShapeError("ids, lengths, states", "(B, T), (B,), (B,)", written(numbers.shape))
    maps, first = _with_leads(table.maps)
    rows, width = numbers.shape
    codes = np.full((rows, width + 2), RESET_MAP, np.uint16)
    codes[:, 0] = first + states.astype(np.uint16)
    inside = within(sizes, width)
    codes[:, 1:-1][inside] = table.map_of[table.slots(numbers)][inside]
    found = scan(maps, codes)
    ends = np.arange(rows) * (width + 2) + sizes + 1
    last = steps_at(maps, codes.ravel(), ends) - RESET_MAP * STRIDE
    return PartCounts(errors=found.errors, literals=found.literals, states=last.astype(np.uint8))


def _with_leads(maps: Maps) -> tuple[Maps, int]:
    """The same maps and one for each state behind them, and the number of the first of these."""
    leads = np.zeros((len(State), STRIDE, 3), np.int64)
    for state, text in _LEADS.items():
        leads[state, : len(State)] = TRIVIAL if state is State.BORDER else token_map(text)
    columns = zip((maps.after, maps.errors, maps.literals), leads.reshape(-1, 3).T, strict=True)
    return Maps.of_columns(*(np.concatenate([one, other]) for one, other in columns)), maps.after.size // STRIDE
