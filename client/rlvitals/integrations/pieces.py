"""What every micro-batch tells whatever the trainer: its loss, the gradient norm, and what cannot be measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from rlvitals.probes import gradients, nonfinite
from rlvitals.probes.arrays import Floats
from rlvitals.probes.reduction import Reduction
from rlvitals.probes.tally import Tally
from rlvitals.probes.updates import local

LOSS, GRADIENT = "policy.loss", "gradient.norm"
Piece = tuple[str, Callable[[], Reduction]]
"""What is measured, and the call that launches it: each may fail without the others."""


def of_loss(loss: Tensor) -> Reduction:
    """Sum of the micro-batch losses, as computed: the trainer's log replaces a NaN by 0 or by a mean."""
    return Reduction(parts=(loss.detach().double().reshape(-1),), build=_loss)


def of_gradient(norm: Any) -> Reduction:
    """The global norm before clipping, as the clipping returned it.

    Of a rank's part of it nothing is told: made whole it would be a collective, in which the others take no part.
    Where gradients are looked at by parameter their squares give the norm.
    """
    value = local(norm) if isinstance(norm, Tensor) else torch.tensor(float(norm), dtype=torch.float64)
    if not all(placement.is_replicate() for placement in getattr(norm, "placements", ())):
        return Reduction(parts=(), build=lambda parts: Tally.zero())
    return Reduction(parts=(value.double().reshape(-1),), build=_gradient)


def absent(names: tuple[str, ...], reason: str, like: Tensor) -> Reduction:
    """Says that ``names`` could not be measured, in the form of the rest."""
    nothing = torch.zeros(0, dtype=torch.float64, device=like.device)
    return Reduction(parts=(nothing,), build=lambda parts: Tally.absent(names, reason))


def _loss(parts: Sequence[Floats]) -> Tally:
    losses = parts[0]
    return Tally(sums={LOSS: float(losses.sum())}) + nonfinite.tally_nonfinite(loss=losses)


def _gradient(parts: Sequence[Floats]) -> Tally:
    return Tally(sums={GRADIENT: float(parts[0].sum())}) + gradients.tally_gradient_norm(parts[0])
