"""Stands in for ``flash_attn.bert_padding``: plain indexing, which needs no GPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def unpad_input(values: Tensor, mask: Tensor) -> tuple[Any, ...]:
    """(B, S, …) → (tokens, …), their places, the rows' offsets, the longest row."""
    lengths = mask.sum(1, dtype=torch.int32)
    places = mask.flatten().nonzero().flatten()
    offsets = torch.nn.functional.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0))
    return values.flatten(0, 1)[places], places, offsets, int(lengths.max())


def index_first_axis(values: Tensor, places: Tensor) -> Tensor:
    return values[places]


def pad_input(values: Tensor, places: Tensor, rows: int, width: int) -> Tensor:
    whole = values.new_zeros(rows * width, *values.shape[1:])
    whole[places] = values
    return whole.reshape(rows, width, *values.shape[1:])


def rearrange(values: Tensor, *_: Any, **__: Any) -> Tensor:
    return values
