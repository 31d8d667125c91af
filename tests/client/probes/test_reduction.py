"""What is added up on a device reaches the host in one copy, whatever the parts are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from rlvitals.probes.arrays import Floats
from rlvitals.probes.reduction import Pending, Reduction, per_token
from rlvitals.probes.tally import Tally


def counting(name: str) -> object:
    def build(parts: Sequence[Floats]) -> Tally:
        return Tally(sums={name: float(sum(part.sum() for part in parts))}, counts={name: len(parts)})

    return build


def reduction(name: str, *parts: torch.Tensor) -> Reduction:
    return Reduction(parts=parts, build=counting(name))  # type: ignore[arg-type]


def test_nothing_pending_is_nothing() -> None:
    assert Pending([]).ready()
    assert Pending([]).tally() == Tally.zero()


def test_parts_of_any_dtype_and_shape_go_together() -> None:
    parts = (torch.tensor([2], dtype=torch.int32), torch.ones(2, 2, dtype=torch.bool), torch.tensor(0.5))
    tally = Pending([reduction("a", *parts), reduction("b", torch.ones(3, dtype=torch.bfloat16))]).tally()
    assert tally.sums == {"a": 6.5, "b": 3.0}
    assert tally.counts == {"a": 3, "b": 1}


def test_doubles_keep_all_their_bits() -> None:
    value = torch.tensor([np.nextafter(1.0, 2.0), -0.0], dtype=torch.float64)
    assert reduction("a", value[:1]).tally().sums["a"] == np.nextafter(1.0, 2.0)


def test_a_reduction_without_parts_is_built_too() -> None:
    assert reduction("a").tally().counts == {"a": 0}


def test_a_graph_does_not_follow_a_part_to_the_host() -> None:
    assert reduction("a", torch.ones(2, requires_grad=True) * 2).tally().sums == {"a": 4.0}


def test_numbers_and_rows_broadcast_over_tokens() -> None:
    assert per_token(torch.tensor(2.0)).shape == (1, 1)
    assert per_token(torch.ones(4)).shape == (4, 1)
    assert per_token(torch.ones(4, 3)).shape == (4, 3)
