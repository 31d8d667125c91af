"""Token weights, policy pull and counts of `gradients` and `forced` for arrays; needs no torch."""

from __future__ import annotations

import numpy as np

from rlvitals.probes.arrays import Floats
from rlvitals.probes.differences_numpy import Array, blocks, by_token
from rlvitals.probes.id_sums import IdSums


def number_on(mask: Array, number: float) -> Floats:
    """A double; ``mask`` is not read."""
    return np.asarray(number, np.float64)


def tokens_of_rows(mask: Array) -> Floats:
    """(B,) tokens under the mask, at least 1, as doubles."""
    tokens: Floats = np.maximum(np.count_nonzero(mask, axis=1), 1).astype(np.float64)
    return tokens


def tokens_of_batch(mask: Array) -> Floats:
    """Tokens under the mask, at least 1, as a double."""
    return np.asarray(max(np.count_nonzero(mask), 1), np.float64)


def policy_pull(
    logp: Array,
    old: Array | None,
    advantages: Array,
    mask: Array,
    weight: Array,
    *,
    clip: tuple[float, float] | None = None,
    cap: float | None = None,
) -> float:
    """Sum of (w A r)^2 of the tokens whose pull is known; a clipped one pulls nothing, r is at most ``cap``."""
    total, pulls, weights = 0.0, by_token(advantages), by_token(weight)
    for rows in blocks(logp.shape):
        now = logp[rows].astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            ratio = np.exp(now - old[rows]) if old is not None else np.isfinite(now).astype(np.float64)
            if old is not None and clip is not None:
                above, below = ratio > 1.0 + clip[1], ratio < 1.0 - clip[0]
                ratio[(above & (pulls[rows] > 0)) | (below & (pulls[rows] < 0))] = 0.0
            ratio = np.minimum(ratio, np.inf if cap is None else cap)
            pull = ratio * pulls[rows] * (weights[rows] if weights.shape[0] > 1 else weights)
            square = pull * pull
        total += float(square[(mask[rows] != 0) & ~np.isnan(square)].sum())
    return total


def forced(chosen: Array, mask: Array, ids: Array) -> tuple[Floats, IdSums]:
    """(tokens, flat index, id) of those under the mask that were not chosen, one row; and how many by id."""
    index = np.flatnonzero((mask != 0) & (chosen == 0))
    if not index.size:
        return np.zeros(0), IdSums()
    found = ids.reshape(-1)[index]
    return np.asarray([index.size, index[0], found[0]], np.float64), IdSums.of(found, np.ones(index.size))
