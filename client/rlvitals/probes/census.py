"""NaN, +Inf and -Inf counted apart, and the first of them found, in arrays on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rlvitals.contract.report import Extreme
from rlvitals.probes.arrays import Floats, flags, floats, whole
from rlvitals.probes.differences_numpy import blocks
from rlvitals.probes.tally import Tally

KINDS = ("nan", "positive", "negative")
COLUMNS = 7
"""NaN, +Inf, -Inf under the mask; non-finite ones outside it; flat index, id and value of the first under it"""


def census(what: str, values: Floats) -> Tally:
    """NaN, +Inf and -Inf among ``values`` of any shape, apart and together, as ``nonfinite.<what>``."""
    return counts(
        what, (int(np.isnan(values).sum()), int(np.isposinf(values).sum()), int(np.isneginf(values).sum()))
    )


def counts(what: str, found: Sequence[int]) -> Tally:
    """What was ``found`` of each of `KINDS`, as a tally."""
    apart = {f"nonfinite.{what}.{kind}": n for kind, n in zip(KINDS, found, strict=True)}
    return Tally(counts={f"nonfinite.{what}": sum(found), **apart})


def counted(values: Any, mask: Any, ids: Any) -> Floats:
    """Rows of `COLUMNS` numbers of (B, T) ``values``; without a mask all tokens count."""
    rows = [np.zeros((0, COLUMNS))]
    for block in blocks(values.shape):
        inside = None if mask is None else mask[block]
        rows.append(_counted(values[block], inside, ids, block.start * values.shape[1]))
    return np.concatenate(rows)


def _counted(values: Any, mask: Any, ids: Any, start: int) -> Floats:
    """Of some rows of which the first element has the flat index ``start``; nothing where all are finite."""
    numbers = floats(values)
    bad = ~np.isfinite(numbers)
    if not bad.any():
        return np.zeros((0, COLUMNS))
    seen = bad if mask is None else bad & flags(mask)
    index = int(seen.argmax())
    token = -1 if ids is None else int(whole(ids).reshape(-1)[index + start])
    kinds = [int((kind & seen).sum()) for kind in (np.isnan(numbers), np.isposinf(numbers), np.isneginf(numbers))]
    return np.array([[*kinds, (bad & ~seen).sum(), index + start, token, numbers.reshape(-1)[index]]])


def told(what: str, rows: Floats, *, witness: str, width: int, sample_offset: int) -> Tally:
    """The tally of rows of `COLUMNS` numbers, one for each block that had something; the first is named."""
    rows = rows.reshape(-1, COLUMNS)
    found = [int(count) for count in rows[:, :3].sum(axis=0)]
    tally = counts(what, found) + Tally(counts={"nonfinite.padding": int(rows[:, 3].sum())})
    if not any(found):
        return tally
    index, token, value = rows[int(rows[:, :3].any(axis=1).argmax()), 4:].tolist()
    row, position = divmod(int(index), width)
    first = Extreme(
        value=value,
        token_id=int(token) if token >= 0 else None,
        position=position,
        sample=row + sample_offset,
        masked=False,
    )
    return tally + Tally(firsts={witness: first})
