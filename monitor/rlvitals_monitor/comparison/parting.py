"""Where one curve leaves another: the test, as it is told in docs/dashboard.md. Pure.

Two points belong together where they lie at the same step; on another axis the other curve is read at the place
of each point of the reference, straight between two numbers, as its last value beside what is none. The noise of
a curve is its robust spread from point to point, which a trend does not widen. The curves are apart from the
first of `WINDOW` common points on whose median distance is more than `WIDTH` times the noise of both together; or
from the first point at which one is a number and the other is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlvitals.contract.comparison import Likeness

WINDOW = 10
WIDTH = 2.0
ROUNDING = 1e-9
"""Values closer together than this share of their size are equal, but for being the same."""
_MAD_TO_SIGMA = 1.4826

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_WORDS = ("a number", "NaN", "+Inf", "−Inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A curve: ``at`` ascends; values may be NaN or infinite, and what is missing is not there."""

    at: Floats
    step: Ints
    value: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``here`` and ``there`` are positions in the reference and in the other curve."""

    likeness: Likeness
    reason: str
    here: int | None = None
    there: int | None = None
    points: int = 0


def judge(reference: Course, other: Course, *, by_step: bool) -> Verdict:
    here, there = _pairs(reference, other, by_step=by_step)
    if not len(here):
        return Verdict(likeness=Likeness.NOT_JUDGED, reason="the two have no point in common")
    a, b = reference.value[here], other.value[there] if by_step else _between(reference.at[here], other, there)
    kinds = _kinds(a), _kinds(b)
    unlike = np.flatnonzero(kinds[0] != kinds[1])
    apart, again = _apart(a, b, (kinds[0] == 0) & (kinds[1] == 0))
    points = len(here)
    first = min((int(i) for i in (*unlike[:1], *apart)), default=None)
    if first is not None:
        odd = len(unlike) > 0 and first == int(unlike[0])
        reason = (
            f"{_WORDS[kinds[1][first]]} where the first run has {_WORDS[kinds[0][first]]}"
            if odd
            else f"further apart than {WIDTH:g} times the noise of both"
        )
        rejoined = again and not (len(unlike) and points - 1 - int(unlike[-1]) < WINDOW)
        likeness = Likeness.REJOINED if rejoined else Likeness.APART
        more = ", and together again at the end" if rejoined else ""
        return Verdict(
            likeness=likeness, reason=reason + more, here=int(here[first]), there=int(there[first]), points=points
        )
    if np.array_equal(a, b, equal_nan=True):
        return Verdict(likeness=Likeness.SAME, reason=f"equal in all {points:,} common points", points=points)
    if points < WINDOW:
        words = f"{points} of {WINDOW} common points"
        return Verdict(likeness=Likeness.NOT_JUDGED, reason=words, points=points)
    reason = f"within the noise of both in {points:,} common points"
    return Verdict(likeness=Likeness.TOGETHER, reason=reason, points=points)


def _pairs(reference: Course, other: Course, *, by_step: bool) -> tuple[Ints, Ints]:
    if by_step:
        _, here, there = np.intersect1d(reference.step, other.step, assume_unique=True, return_indices=True)
        return here, there
    if not len(reference.at) or not len(other.at):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    there = np.searchsorted(other.at, reference.at, "right") - 1
    here = np.flatnonzero((there >= 0) & (reference.at <= other.at[-1]))
    return here, there[here]


def _between(at: Floats, other: Course, there: Ints) -> Floats:
    after = np.minimum(there + 1, len(other.at) - 1)
    one, two = other.value[there], other.value[after]
    width = other.at[after] - other.at[there]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(width > 0, (at - other.at[there]) / width, 0.0)
        straight = one * (1.0 - share) + two * share
    return np.where(np.isfinite(one) & np.isfinite(two), straight, one)


def _kinds(values: Floats) -> Ints:
    return np.select([np.isnan(values), values == np.inf, values == -np.inf], [1, 2, 3], 0)


def _apart(a: Floats, b: Floats, finite: NDArray[np.bool_]) -> tuple[list[int], bool]:
    """The first pair of the first window that is apart, if any, and whether the last window is not."""
    at = np.flatnonzero(finite)
    if len(at) < WINDOW:
        return [], False
    size = max(float(np.max(np.abs(a[at]))), float(np.max(np.abs(b[at]))), np.finfo(np.float64).tiny)
    one, two = a[at] / size, b[at] / size  # differences of huge values overflow
    distance = two - one
    limit = np.maximum(WIDTH * np.hypot(_noise(one), _noise(two)), ROUNDING * np.maximum(abs(one), abs(two)))
    windows = np.lib.stride_tricks.sliding_window_view(distance, WINDOW)
    middle = np.median(windows, axis=1)
    far = np.abs(middle) > np.max(np.lib.stride_tricks.sliding_window_view(limit, WINDOW), axis=1)
    found = np.flatnonzero(far)
    if not len(found):
        return [], True
    begin = int(found[0])
    inside = windows[begin] * np.sign(middle[begin]) > limit[begin : begin + WINDOW]
    return [int(at[begin + int(np.argmax(inside))])], not bool(far[-1])


def _noise(values: Floats) -> float:
    """The robust spread of the changes from point to point, as of one point."""
    changes = np.diff(values)
    middle = np.median(changes)
    return float(_MAD_TO_SIGMA * np.median(np.abs(changes - middle)) / np.sqrt(2.0))
