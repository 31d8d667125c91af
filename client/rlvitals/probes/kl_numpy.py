"""The sums of `kl` for arrays; needs no torch."""

from __future__ import annotations

import math

import numpy as np

from rlvitals.probes.arrays import Floats
from rlvitals.probes.differences_numpy import Array, Block, differences
from rlvitals.probes.id_sums import IdAdder, IdSums
from rlvitals.probes.kl_form import CAP, Form


def summed(
    logp: Array, ref: Array, mask: Array, weight: Array, *, form: Form, ids: Array | None
) -> tuple[Floats, IdSums | None, float]:
    """The rows of `kl.STATS` and peaks, k'^2 by id, and the largest d whose exp does not overflow."""
    overflow = math.log(np.finfo(np.result_type(logp, ref)).max)
    rows, by_id = [], IdAdder()
    for block in differences(ref, logp, mask):
        with np.errstate(over="ignore", invalid="ignore"):
            sums, squares = _block(block, weight, form, overflow)
        rows.append([*sums, *block.peak(block.difference, ids), *block.peak(-block.difference, ids)])
        if ids is not None:
            by_id.add(ids.reshape(-1)[block.index], squares)
    return np.asarray(rows, np.float64).reshape(-1), by_id.sums() if ids is not None else None, overflow


def _block(block: Block, weight: Array, form: Form, overflow: float) -> tuple[list[float], Floats]:
    d = block.difference
    growth = np.expm1(d)
    k3 = growth - d
    each = {"k1": -d, "k2": d * d / 2, "abs": np.abs(d)}.get(form.estimator, k3)
    slope = {"k1": np.ones_like(d), "k2": d, "abs": np.sign(d), "k3+": d}.get(form.estimator, growth)
    dead = np.abs(each) > CAP if form.lets_go else np.zeros(d.shape, np.bool_)
    weights = block.of(weight).astype(np.float64)
    pulls = (dead | (weights == 0), weights * weights * slope * slope)
    squares: Floats = slope * slope
    sums = [
        float(d.size),
        float((k3 > CAP).sum()),
        float(dead.sum()),
        float(-d.sum()),
        float((d * d).sum() / 2),
        float(k3.sum()),
        float(np.abs(d).sum()),
        float(np.minimum(k3, CAP).sum()),
        float((each.clip(-CAP, CAP) if form.clamped else each).sum()),
        float((d > overflow).sum()) if form.poisonous else 0.0,
        float(squares.sum()),
        float(np.where(pulls[0], 0.0, pulls[1]).sum()),
    ]
    return sums, squares
