"""Advantages on the device are counted as the arrays are."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.probes import reduction
from rlvitals.probes.advantages import measure_advantages
from rlvitals.probes.groups import tally_advantages
from rlvitals.probes.nonfinite import tally_nonfinite

NAN, INF = math.nan, math.inf
VALUES = st.sampled_from([0.0, -0.0, 1.0, -2.5, 2.5, 1e-30, NAN, INF, -INF])


@settings(max_examples=30)
@given(st.lists(st.tuples(VALUES, st.booleans()), max_size=8), st.sampled_from([torch.float32, torch.float64]))
def test_one_number_a_completion(rows: list[tuple[float, bool]], dtype: torch.dtype) -> None:
    values = torch.tensor([value for value, _ in rows], dtype=dtype)
    equal = torch.tensor([flag for _, flag in rows], dtype=torch.bool)
    host = tally_advantages(values.numpy(), equal=equal.numpy(), sample_offset=3)
    device = measure_advantages(values, equal=equal, sample_offset=3).tally()
    assert device == host + tally_nonfinite(advantages=values)


@settings(max_examples=30)
@given(st.lists(st.tuples(VALUES, st.booleans()), min_size=6, max_size=6))
def test_one_number_a_token_under_a_mask(cells: list[tuple[float, bool]]) -> None:
    values = torch.tensor([value for value, _ in cells]).reshape(2, 3)
    mask = torch.tensor([flag for _, flag in cells]).reshape(2, 3)
    device = measure_advantages(values, mask=mask).tally()
    host = tally_advantages(values, mask=mask) + tally_nonfinite(advantages=values[mask])
    assert device == host


def test_half_precision_is_counted_too() -> None:
    values = torch.tensor([0.5, -3.0, INF], dtype=torch.bfloat16)
    assert measure_advantages(values).tally().measured().values["reward.advantage_abs_max"] == 3.0


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"equal": torch.ones(3)}, r"equal: expected \(2,\)"),
        ({"mask": torch.ones(3)}, "mask"),
    ],
)
def test_arguments_of_other_shapes_are_refused_by_name(arguments: dict[str, torch.Tensor], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        measure_advantages(torch.ones(2), **arguments)
    with pytest.raises(TypeError, match="advantages: expected floating-point"):
        measure_advantages(torch.ones(2, dtype=torch.long))


def test_blocks_of_few_rows_count_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    values = torch.randn(7, 3, generator=torch.Generator().manual_seed(0))
    values[4, 1], values[5, 2], values[0, 0] = NAN, -9.0, 0.0
    equal = torch.tensor([1, 0, 0, 1, 1, 0, 1])
    expected = tally_advantages(values, equal=equal) + tally_nonfinite(advantages=values)
    assert measure_advantages(values, equal=equal).tally() == expected
    monkeypatch.setattr(reduction, "CHUNK", 6)
    assert measure_advantages(values, equal=equal).tally() == expected
    column = tally_advantages(values[:, 2], equal=equal) + tally_nonfinite(advantages=values[:, 2])
    assert measure_advantages(values[:, 2], equal=equal).tally() == column
