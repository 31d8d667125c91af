"""Whatever a trainer holds becomes the same array, or is refused by its dtype."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from rlvitals.probes.arguments import DtypeError
from rlvitals.probes.arrays import flags, floats, whole


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64], ids=str)
def test_whole_numbers_of_any_width_become_64_bits(dtype: torch.dtype) -> None:
    value = torch.arange(6, dtype=dtype).reshape(2, 3)
    for form in (value, value.numpy(), value.tolist(), value.t().contiguous().t()):
        found = whole(form)
        assert found.dtype == np.int64
        assert found.tolist() == value.tolist()


def test_ids_that_lie_on_the_host_are_not_copied() -> None:
    ids = torch.arange(6)
    assert np.shares_memory(whole(ids), ids.numpy())
    assert np.shares_memory(whole(ids.numpy()), ids.numpy())


@pytest.mark.parametrize(
    "value",
    [
        torch.ones(2),
        torch.ones(2, dtype=torch.bfloat16),
        torch.ones(2, dtype=torch.bool),
        np.ones(2),
        np.ones(0, np.float32),
        [1.0, 2.0],
        [1, None],
        [1, math.nan],
        ["1"],
        [True],
    ],
    ids=repr,
)
def test_what_is_no_integer_is_refused_and_named(value: Any) -> None:
    with pytest.raises(DtypeError, match=r"^lengths: expected integers, got "):
        whole(value, "lengths")


def test_no_ids_at_all_are_whole_numbers() -> None:
    assert whole([]).dtype == np.int64
    assert whole([[], []]).shape == (2, 0)


def test_none_becomes_nan_and_infinities_stay() -> None:
    found = floats([None, math.inf, -math.inf, 0.5])
    assert math.isnan(found[0])
    assert found[1:].tolist() == [math.inf, -math.inf, 0.5]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.int64], ids=str)
def test_numbers_become_doubles(dtype: torch.dtype) -> None:
    found = floats(torch.tensor([1, 2]).to(dtype).requires_grad_(dtype.is_floating_point))
    assert found.dtype == np.float64
    assert found.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("dtype", [torch.bool, torch.int32, torch.int64, torch.float32, torch.bfloat16], ids=str)
def test_masks_of_any_dtype_are_flags(dtype: torch.dtype) -> None:
    assert flags(torch.tensor([0, 1]).to(dtype)).tolist() == [False, True]
