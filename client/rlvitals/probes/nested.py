"""Nested tensors as the padded (B, T) that the probes count in.

Ragged rows become a copy padded with 0, as wide as the longest row, and so does their mask: padding never counts.
A jagged tensor that was made without ``max_seqlen`` does not know its longest row; to ask for it is the one thing
here that waits for a GPU.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlvitals.probes.arguments import DeviceError, ShapeError
from rlvitals.probes.arrays import is_tensor


def dense(**named: Tensor | None) -> tuple[Any, ...]:
    """The values in their order, detached; nested ones padded, dense ones and None as they are.

    Raises `ShapeError` where (B, T) tensors are nested and dense side by side, a nested one has more than one
    number a token, or (seen on a CPU only) their rows have other lengths; `DeviceError` for an array among them.
    """
    for name, value in named.items():
        if value is not None and not is_tensor(value):
            raise DeviceError(name, "a tensor", type(value).__name__)
    given = {name: value.detach() if value is not None else None for name, value in named.items()}
    ragged = {name: value for name, value in given.items() if value is not None and value.is_nested}
    if not ragged:
        return tuple(given.values())
    first = next(iter(ragged))
    for name, value in given.items():
        if name not in ragged and value is not None and value.dim() == 2 and value.shape[1] > 1:
            raise ShapeError(name, f"a nested tensor as {first} is", f"a dense one {tuple(value.shape)}")
    padded = {name: _padded(name, value) for name, value in ragged.items()}
    lengths = padded[first][1]
    for name, (_, own) in padded.items():
        if own.shape != lengths.shape or (own.device.type == "cpu" and not torch.equal(own, lengths)):
            raise ShapeError(name, f"rows as long as those of {first}", "other lengths")
    return tuple(padded[name][0] if name in padded else value for name, value in given.items())


def _padded(name: str, value: Any) -> tuple[Tensor, Tensor]:
    """(B, T) and the lengths of its rows."""
    if value.dim() != 2:
        raise ShapeError(name, "one number a token", f"{value.dim()} nested dimensions")
    if value.layout == torch.strided:
        sizes = value._nested_tensor_size().reshape(-1)
        if not sizes.sum():
            return torch.zeros((sizes.numel(), 0), dtype=value.dtype, device=value.device), sizes
        return torch.nested.to_padded_tensor(value, 0), sizes
    values, offsets, lengths = value.values(), value.offsets(), value.lengths()
    starts, lengths = offsets[:-1], lengths if lengths is not None else offsets.diff()
    width = getattr(value, "_maybe_max_seqlen", None)
    if width is None:
        width = int(lengths.max()) if lengths.numel() else 0
    column = torch.arange(width, device=value.device)
    place = (starts.unsqueeze(1) + column).clamp_(0, max(values.shape[0] - 1, 0))
    return values[place].masked_fill_(column >= lengths.unsqueeze(1), 0), lengths
