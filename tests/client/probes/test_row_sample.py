"""Rows drawn by their number in the step: the same however the step is cut."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.probes.arguments import ProbeArgumentError
from rlvitals.probes.row_sample import LEAST_COMPLETIONS, TOKENS, RowSample


@settings(max_examples=30, deadline=None)
@given(
    cuts=st.lists(st.integers(0, 200), max_size=4),
    seed=st.integers(0, 1 << 70),
    share=st.floats(0, 1),
    offset=st.integers(0, 1 << 40),
)
def test_parts_draw_the_rows_that_the_whole_draws(cuts: list[int], seed: int, share: float, offset: int) -> None:
    sample, edges = RowSample(seed=seed, share=share), [0, *sorted(cuts), 200]
    parts = [sample.rows(end - start, offset + start) + start for start, end in pairwise(edges)]
    assert np.concatenate(parts).tolist() == sample.rows(200, offset).tolist()


def test_the_share_is_kept_and_another_seed_draws_others() -> None:
    first, second = (RowSample(seed=seed, share=0.1).rows(20_000) for seed in (1, 2))
    assert abs(first.size - 2_000) < 200
    assert abs(second.size - 2_000) < 200
    assert np.intersect1d(first, second).size < 300


def test_all_rows_are_drawn_where_all_are_few_enough_and_none_at_share_0() -> None:
    assert RowSample.of_step(16, 16 * 512).rows(16).tolist() == list(range(16))
    assert RowSample(share=0.0).rows(1_000).size == 0
    assert RowSample.of_step(0, 0).rows(0).size == 0


def test_a_step_is_read_up_to_a_number_of_tokens_but_never_below_a_few_completions() -> None:
    assert RowSample.of_step(512, 512 * 4096).share == TOKENS / (512 * 4096)
    assert RowSample.of_step(512, 512 * 100_000).share == LEAST_COMPLETIONS / 512


def test_a_share_below_zero_is_refused_by_name() -> None:
    with pytest.raises(ProbeArgumentError, match=r"share: expected 0\.0 or more"):
        RowSample(share=-0.1)


def test_no_global_random_state_is_touched() -> None:
    before = np.random.get_state()[1].tolist()  # type: ignore[index]
    RowSample(share=0.5).rows(100)
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index]
