"""What an optimizer step did to the weights, seen on a small sample of them: how far they moved, or not at all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from rlvitals.contract.report import Extreme
from rlvitals.probes.arguments import check_at_least
from rlvitals.probes.arrays import Floats
from rlvitals.probes.finish.gradient import shown
from rlvitals.probes.parameters import Named, plain_name
from rlvitals.probes.reduction import Reduction, moved, stack
from rlvitals.probes.tally import Tally
from rlvitals.probes.uncompiled import uncompiled

PARAMETERS, ELEMENTS = 16, 4096
NO_SCALER = "no gradient scaler: the training is not in float16"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A few neighbouring rows of one parameter; ``copy`` are their values as they were, ours alone."""

    start: int
    rows: int
    copy: Tensor = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Slices by parameter name, taken before an optimizer step (see `sample_weights`)."""

    slices: Mapping[str, Slice]


@uncompiled
def sample_weights(
    named_parameters: Named, *, seed: int = 0, parameters: int = PARAMETERS, elements: int = ELEMENTS
) -> Sample:
    """Copies up to ``elements`` neighbouring weights of each of up to ``parameters`` trainable parameters.

    The parameters lie evenly over the model; where each slice begins follows from ``seed`` alone. The copies stay
    on the weights' own devices, 256 KiB in all by default in float32.
    """
    check_at_least("parameters", parameters, 1)
    check_at_least("elements", elements, 1)
    found = [(name, local(p)) for name, p in named_parameters if p.requires_grad]
    found = [(name, weights) for name, weights in found if weights.numel()]
    count = min(parameters, len(found))
    picked = [found[int((place + 0.5) * len(found) / count)] for place in range(count)]
    slices = {}
    for place, (name, weights) in enumerate(picked):
        whole = weights.view(1) if weights.dim() == 0 else weights
        rows = max(1, min(whole.shape[0], elements * whole.shape[0] // whole.numel()))
        start = (seed * 2654435761 + place * 40503) % (whole.shape[0] - rows + 1)
        slices[plain_name(name)] = Slice(start=start, rows=rows, copy=_cut(whole, start, rows, elements).clone())
    return Sample(slices=slices)


@uncompiled
def measure_update(before: Sample, named_parameters: Named) -> Reduction:
    """Launches the comparison of ``before`` with the weights after the optimizer's step; returns at once.

    Non-finite weights are counted, the first of their parameters is named, and they are left out of the norms.
    On several ranks with the same weights only one of them may ask.
    """
    names, rows = [], []
    for name, old, new in _pairs(before, named_parameters):
        names.append(name)
        rows.append(_compare(old, new))
    home = rows[0].device if rows else torch.device("cpu")
    part = torch.stack([moved(row, home) for row in rows]) if rows else torch.zeros((0, 6)).double()
    return Reduction(parts=(part.reshape(-1),), build=partial(_build, tuple(names)))


@uncompiled
def measure_scaler(
    scale: Tensor | float, *, before: Tensor | float | None = None, found_inf: Tensor | float | None = None
) -> Reduction:
    """Launches the reading of a gradient scaler after its update; returns at once.

    The step counts as skipped where ``found_inf`` is not 0, or where ``scale`` is less than it was ``before``.
    """
    given = [value for value in (scale, before, found_inf) if isinstance(value, Tensor)]
    device = given[0].device if given else torch.device("cpu")
    # NaN stands for what was not given: it is less than nothing and compares as not found
    now, was, found = (
        _number(value, device) for value in (scale, before, 0.0 if found_inf is None else found_inf)
    )
    known = before is not None or found_inf is not None
    return Reduction(parts=(stack([now, (now < was) | (found != 0)]),), build=partial(_scaler, known))


def _number(value: Tensor | float | None, device: torch.device) -> Tensor:
    if isinstance(value, Tensor):
        return moved(value, device).double().reshape(())
    # filled there: a number that is copied there would be waited for
    return torch.full((), math.nan if value is None else value, dtype=torch.float64, device=device)


def local(tensor: Tensor) -> Tensor:
    """This rank's part of a sharded tensor, else the tensor; without its graph."""
    shard = getattr(tensor, "to_local", None)
    part: Tensor = (tensor if shard is None else shard()).detach()
    return part


def _pairs(before: Sample, named_parameters: Named) -> Iterator[tuple[str, Tensor, Tensor]]:
    for name, parameter in named_parameters:
        plain = plain_name(name)
        kept = before.slices.get(plain)
        if kept is not None:
            whole = local(parameter)
            whole = whole.view(1) if whole.dim() == 0 else whole
            yield plain, kept.copy, _cut(whole, kept.start, kept.rows, kept.copy.numel())


def _cut(weights: Tensor, start: int, rows: int, elements: int) -> Tensor:
    return weights.narrow(0, start, rows).reshape(-1)[:elements]


def _compare(old: Tensor, new: Tensor) -> Tensor:
    """(elements, of these the same, squared movement, squared weight, non-finite ones, the first of these)"""
    was, now = old.double(), new.double()
    good = was.isfinite() & now.isfinite()
    moved = (now - was).masked_fill_(~good, 0.0)
    bad = ~now.isfinite()
    first = now.gather(0, bad.to(torch.uint8).argmax().view(1))[0]
    weight = was.masked_fill(~good, 0.0)
    return stack([good.sum(), (good & (now == was)).sum(), moved.dot(moved), weight.dot(weight), bad.sum(), first])


def _build(names: Sequence[str], parts: Sequence[Floats]) -> Tally:
    rows = parts[0].reshape(-1, 6)
    elements, same, moved, weight, bad = (float(rows[:, column].sum()) for column in range(5))
    tally = Tally(
        counts={
            "update.steps": 1,
            "update.elements": int(elements),
            "update.same": int(same),
            "update.still": int(same == elements > 0),
            "nonfinite.weights": int(bad),
        },
        sums={"update.moved_sq": moved, "update.weight_sq": weight},
    )
    if not bad:
        return tally
    place = int((rows[:, 4] > 0).argmax())
    first = Extreme(value=float(rows[place, 5]), position=place, token=shown(names[place]))
    return tally + Tally(firsts={"numerics.nonfinite_weights": first})


def _scaler(known: bool, parts: Sequence[Floats]) -> Tally:
    scale, skipped = parts[0].tolist()
    counts = {"scaler.steps": 1, "scaler.skipped": int(skipped)} if known else {}
    return Tally(counts=counts, minima={"gradient.loss_scale": Extreme(value=scale)})
