"""Kaplan-Meier by hand, and the incomplete beta function against binomial sums."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.probes.beta import beta_share
from rlvitals.probes.sketch import Sketch
from rlvitals.probes.survival import Cover, covering_length


def lengths(values: npt.ArrayLike) -> Sketch:
    return Sketch.of(values, low=1.0, high=float(1 << 18), bins=288)


def test_the_estimate_is_kaplan_and_meiers() -> None:
    # at risk 4, 2, 1: S = 3/4, then 3/4 * 1/2, then 0; a plain share would be 2/4 after the second
    ended, cut = lengths([1, 3, 8]), lengths([2])
    cover = covering_length(ended, cut, longest=8.0, coverage=0.62, confidence=0.0)
    assert cover is not None
    assert cover.length == 3
    cover = covering_length(ended, cut, longest=8.0, coverage=0.63)
    assert cover is not None
    assert cover.length == 8
    # Greenwood: the variance of S = 3/8 is S^2 (1/(4*3) + 1/(2*1)), as of 20/7 uncut answers
    assert cover.confidence == pytest.approx(1 - 0.63 ** (20 / 7))


def test_answers_of_no_token_count_as_length_0() -> None:
    cover = covering_length(lengths([0] * 100), lengths([]), longest=0.0)
    assert cover is not None
    assert cover.length == 0
    assert cover.confidence == pytest.approx(1 - 0.95**100)


def test_beyond_the_bins_the_longest_answer_is_what_is_known() -> None:
    cover = covering_length(lengths([1 << 19] * 80), lengths([]), longest=float(1 << 19))
    assert cover is not None
    assert cover.length == 1 << 19


def test_nothing_seen_is_nothing_and_nothing_ended_is_no_confidence() -> None:
    assert covering_length(lengths([]), lengths([]), longest=0.0) is None
    assert covering_length(lengths([]), lengths([9]), longest=0.0) == Cover(length=None, confidence=0.0)


@given(st.integers(1, 60), st.data())
def test_the_incomplete_beta_function_is_a_binomial_tail(n: int, data: st.DataObject) -> None:
    k, x = data.draw(st.integers(1, n)), data.draw(st.sampled_from([0.01, 0.05, 0.3, 0.5, 0.9]))
    tail = sum(math.comb(n, i) * x**i * (1 - x) ** (n - i) for i in range(k, n + 1))
    assert beta_share(k, n - k + 1, x) == pytest.approx(tail, rel=1e-10, abs=1e-13)


@pytest.mark.parametrize(("a", "b", "x", "share"), [(1, 1, 0, 0), (1, 1, 1, 1), (0, 2, 0.5, 1), (2, 0, 0.5, 0)])
def test_the_ends_of_the_beta_distribution_are_exact(a: float, b: float, x: float, share: float) -> None:
    assert beta_share(a, b, x) == share


@pytest.mark.parametrize("cap", [1 << 17, 900])
def test_the_suggestion_covers_as_often_as_it_is_sure(cap: int) -> None:
    dice = np.random.default_rng(0)
    many = dice.lognormal(5.5, 0.6, 100_000)
    covered = []
    for _ in range(100):
        answers = dice.lognormal(5.5, 0.6, 200).astype(int)
        ended, cut = answers[answers <= cap], np.full((answers > cap).sum(), cap)
        cover = covering_length(lengths(ended), lengths(cut), longest=float(ended.max()))
        if cover is not None and cover.length is not None and cover.confidence >= 0.95:
            covered.append((many < cover.length + 1).mean() >= 0.95)
    assert len(covered) > 50
    assert np.mean(covered) >= 0.95
