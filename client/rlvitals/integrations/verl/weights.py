"""The weight that verl's aggregation gives each token of a batch."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rlvitals.guard import attempt


def token_weights(mode: str, mask: Tensor, *, mini_batches: int = 1, scale: float | None = None) -> Tensor | None:
    """Doubles that broadcast to ``mask`` (B, T), for one of verl's ``loss_agg_mode``; None for one not known.

    The batch counts as one mini-batch; where it is cut into ``mini_batches``, weights grow by their square root,
    so that a norm over the batch is the root of the mini-batches' mean square. ``scale``: ``loss_scale_factor``.
    """
    counted = mask.double()
    tokens, rows = counted.sum(), (counted.sum(1) > 0).sum().double()
    if mode == "token-mean":
        weight = torch.ones(1, 1, dtype=torch.float64) / tokens.clamp(min=1)
    elif mode == "token-sum":
        # a sum over one mini-batch of m has no 1/m to make good
        weight = torch.ones(1, 1, dtype=torch.float64) / mini_batches
    elif mode == "seq-mean-token-sum":
        weight = torch.ones(1, 1, dtype=torch.float64) / rows.clamp(min=1)
    elif mode == "seq-mean-token-sum-norm":
        horizon = mask.shape[1] if scale is None else scale
        weight = torch.ones(1, 1, dtype=torch.float64) / (rows.clamp(min=1) * max(horizon, 1e-9))
    elif mode == "seq-mean-token-mean":
        weight = 1.0 / (counted.sum(1, keepdim=True).clamp(min=1) * rows.clamp(min=1))
    else:
        return None
    scaled: Tensor = weight * math.sqrt(mini_batches)
    return scaled


def scale_factor(value: object) -> float | None:
    return None if value is None else attempt(float, value)
