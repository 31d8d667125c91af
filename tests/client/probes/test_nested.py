"""Nested and jagged tensors are taken as padded rows whose padding never counts."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rlvitals.probes.arguments import ShapeError
from rlvitals.probes.nested import dense

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
ROWS = ([1.0, 2.0, 3.0], [], [4.0, 5.0, 6.0, 7.0, 8.0])
PADDED = torch.tensor([[1.0, 2.0, 3.0, 0.0, 0.0], [0.0] * 5, [4.0, 5.0, 6.0, 7.0, 8.0]])
LAYOUTS = [torch.strided, torch.jagged]


def nested(rows: Any, layout: torch.layout, **options: Any) -> torch.Tensor:
    return torch.nested.nested_tensor([torch.tensor(row) for row in rows], layout=layout, **options)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.int64, torch.bool], ids=str
)
def test_ragged_rows_are_padded_with_zero(layout: torch.layout, dtype: torch.dtype) -> None:
    (padded,) = dense(logp=nested(ROWS, layout, dtype=dtype))
    assert padded.dtype is dtype
    assert torch.equal(padded, PADDED.to(dtype))


def test_a_jagged_tensor_that_does_not_know_its_longest_row_is_as_wide_as_it() -> None:
    values, offsets = torch.arange(1.0, 9.0), torch.tensor([0, 3, 3, 8])
    (padded,) = dense(logp=torch.nested.nested_tensor_from_jagged(values, offsets))
    assert torch.equal(padded, PADDED)


def test_holes_between_jagged_rows_are_left_out() -> None:
    jagged = torch.nested.nested_tensor_from_jagged(
        torch.arange(10.0), torch.tensor([0, 5, 10]), lengths=torch.tensor([2, 4])
    )
    (padded,) = dense(logp=jagged)
    assert padded.tolist() == [[0, 1, 0, 0], [5, 6, 7, 8]]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_rows_without_tokens_have_width_0(layout: torch.layout) -> None:
    (padded,) = dense(logp=nested([[], []], layout, dtype=torch.float32))
    assert padded.shape == (2, 0)


def test_dense_values_and_none_pass_as_they_are_without_their_graph() -> None:
    leaf = torch.ones(2, 3, requires_grad=True)
    logp, ref = dense(logp=leaf * 2, ref=None)
    assert ref is None
    assert not logp.requires_grad
    (padded,) = dense(logp=nested(ROWS, torch.jagged, requires_grad=True))
    assert not padded.requires_grad


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_numbers_per_row_may_stand_beside_ragged_tokens(layout: torch.layout) -> None:
    weight = torch.ones(3)
    _, beside, column = dense(logp=nested(ROWS, layout), weight=weight, other=weight.unsqueeze(1))
    assert beside.shape == (3,)
    assert column.shape == (3, 1)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_ragged_and_dense_tokens_do_not_mix(layout: torch.layout) -> None:
    logp = nested(ROWS, layout)
    with pytest.raises(ShapeError, match=r"^mask: expected a nested tensor as logp is, got a dense one \(3, 5\)$"):
        dense(logp=logp, mask=PADDED)
    with pytest.raises(ShapeError, match=r"^mask: expected rows as long as those of logp"):
        dense(logp=logp, mask=nested(([1.0, 2.0], [3.0], [4.0] * 5), layout))
    with pytest.raises(ShapeError, match=r"^logits: expected one number a token, got 3 nested dimensions$"):
        dense(logits=nested(([[1.0, 2.0]], [[3.0, 4.0]]), layout))
