"""What the mask hides changes nothing, wherever it stands: beside the tokens, between turns, or everywhere."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from rlvitals.contract.report import Extreme
from rlvitals.probes.measured import Measured
from rlvitals.probes.tally import Tally
from tests.client.probes.catalogue import NAMES, PROBES, TOKENS, batch, given

MASKED = [name for name in NAMES if "mask" in PROBES[name].reads and "logits" not in name]
BY_PLACE = [name for name in MASKED if name not in ("text by mask", "content")]
"""A turn's text ends with it, so text with a hole is not the text without."""
PADDING = "numerics.nonfinite_padding"
"""Counts what lies outside the mask."""
HOSTILE = {"zeros": 0.0, "NaN": math.nan, "minus infinity": -math.inf, "far off": -80.0}


def found(name: str, tensors: dict[str, Tensor]) -> Tally:
    return PROBES[name].measure(given(PROBES[name], tensors)).tally()


def widened(tensors: dict[str, Tensor], at: int, columns: int, fill: float) -> dict[str, Tensor]:
    """``columns`` more of them in front of column ``at``, outside the mask, with ``fill`` as each number."""
    wide = dict(tensors)
    for key in TOKENS:
        old = tensors[key]
        value = fill if old.is_floating_point() else 0 if key in ("mask", "chosen") else 65
        new = torch.full((old.shape[0], columns), value, dtype=old.dtype)
        wide[key] = torch.cat([old[:, :at], new, old[:, at:]], 1)
    return wide


def moved(extreme: Extreme, at: int, columns: int) -> int | None:
    place = extreme.position
    return place + columns if place is not None and place >= at else place


def assert_told_alike(wide: Measured, narrow: Measured, at: int, columns: int) -> None:
    kept = narrow.values.keys() - {PADDING}
    assert wide.values.keys() == narrow.values.keys()
    assert wide.missing == narrow.missing
    for metric in kept:
        assert wide.values[metric] == pytest.approx(narrow.values[metric], rel=1e-12, nan_ok=True), metric
    assert wide.extremes.keys() - {PADDING} == narrow.extremes.keys() - {PADDING}
    for metric in narrow.extremes.keys() - {PADDING}:
        told, wanted = wide.extremes[metric], narrow.extremes[metric]
        assert (told.token_id, told.sample) == (wanted.token_id, wanted.sample), metric
        assert told.position == moved(wanted, at, columns), metric


@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize(("left", "right"), [(4, 0), (0, 5), (3, 2)])
def test_padding_on_either_side_changes_nothing_but_positions(name: str, left: int, right: int) -> None:
    for fill in HOSTILE.values():
        narrow = batch()
        wide = widened(widened(narrow, 9, right, fill), 0, left, fill)
        assert_told_alike(found(name, wide).measured(), found(name, narrow).measured(), 0, left)


@pytest.mark.parametrize("name", BY_PLACE)
@pytest.mark.parametrize("fill", HOSTILE.values(), ids=HOSTILE)
def test_what_a_tool_wrote_between_two_turns_changes_nothing_but_positions(name: str, fill: float) -> None:
    narrow = batch()
    wide = widened(narrow, 5, 3, fill)
    assert_told_alike(found(name, wide).measured(), found(name, narrow).measured(), 5, 3)


# completions without tokens are duplicates of each other
@pytest.mark.parametrize("name", [name for name in MASKED if name != "content"])
def test_where_all_is_masked_no_number_stands_for_what_was_not_measured(name: str) -> None:
    tensors = batch() | {"mask": torch.zeros(6, 9, dtype=torch.long)}
    told = found(name, tensors).measured()
    assert all(value == 0 for metric, value in told.values.items() if metric != PADDING), told.values
    assert not told.extremes.keys() - {PADDING}


@pytest.mark.parametrize("name", [name for name in MASKED if name != "content"])
def test_batches_of_one_completion_add_up_to_the_batch(name: str) -> None:
    tensors = batch()
    whole = found(name, tensors).measured()
    rows = [{key: value[row : row + 1] for key, value in tensors.items()} for row in range(6)]
    told = sum((found(name, one) for one in rows), Tally.zero()).measured()
    assert told.missing == whole.missing
    assert told.values == pytest.approx(dict(whole.values), rel=1e-9, nan_ok=True)
