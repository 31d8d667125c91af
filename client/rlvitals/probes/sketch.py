"""Mergeable summaries of a distribution: counts in fixed bins, and mean with spread."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """Counts in ``bins`` log-spaced bins over [low, high), beside those below and above.

    A quantile is read as the upper edge of its bin, so it is at most ``(high / low) ** (1 / bins) - 1`` too high.
    """

    low: float
    high: float
    counts: tuple[int, ...]
    below: int = 0
    above: int = 0

    @classmethod
    def of(cls, values: npt.ArrayLike, *, low: float, high: float, bins: int) -> Sketch:
        """Counts finite values of any shape; NaN is the caller's to leave out."""
        flat = np.asarray(values, np.float64).ravel()
        edges = _edges(low, high, bins)
        inside = flat[(flat >= low) & (flat < high)]
        where = np.searchsorted(edges, inside, side="right") - 1
        counts = np.bincount(np.minimum(where, bins - 1), minlength=bins)
        return cls(
            low=low,
            high=high,
            counts=tuple(counts.tolist()),
            below=int((flat < low).sum()),
            above=int((flat >= high).sum()),
        )

    def __add__(self, other: Sketch) -> Sketch:
        if (self.low, self.high, len(self.counts)) != (other.low, other.high, len(other.counts)):
            raise ValueError("only sketches with the same bins can be added")
        return Sketch(
            low=self.low,
            high=self.high,
            counts=tuple(a + b for a, b in zip(self.counts, other.counts, strict=True)),
            below=self.below + other.below,
            above=self.above + other.above,
        )

    @property
    def total(self) -> int:
        return self.below + sum(self.counts) + self.above

    def edge(self, index: int) -> float:
        """Lower edge of bin ``index``; ``edge(bins)`` is ``high``."""
        return _edge(self.low, self.high, len(self.counts), index)

    def quantile(self, share: float, *, largest: float) -> float | None:
        """An upper bound of the quantile, never above ``largest``; None where nothing was counted."""
        rank = math.ceil(share * self.total)
        if not self.total:
            return None
        if rank <= self.below:
            return min(self.low, largest)
        for index, seen in enumerate(accumulate(self.counts, initial=self.below)):
            if index and seen >= rank:
                return min(self.edge(index), largest)
        return largest

    def histogram(self) -> tuple[tuple[float, ...], tuple[int, ...]]:
        """Edges and counts without the empty ends; values below the range share one bin that starts at 0."""
        counts = (self.below, *self.counts)
        used = [i for i, n in enumerate(counts) if n]
        first, last = (used[0], used[-1]) if used else (0, 0)
        edges = tuple(0.0 if i == 0 else self.edge(i - 1) for i in range(first, last + 2))
        if not self.above:
            return edges, counts[first : last + 1]
        if used:
            middle = tuple(self.edge(i - 1) for i in range(last + 2, len(counts) + 1))
            return (*edges, *middle, math.inf), (*counts[first:], self.above)
        return (self.high, math.inf), (self.above,)


def signed_histogram(down: Sketch, up: Sketch) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Edges and counts of values of both signs, without the empty ends; what is nearer to zero than ``low`` shares
    one bin around it.

    Args:
        down: of the values below zero, by their size
        up: of all others
    """
    least, bins = up.low, len(up.counts)
    near = [up.edge(index) for index in range(bins + 1)]
    edges = [-math.inf, *(-edge for edge in reversed(near)), *near, math.inf]
    counts = [down.above, *reversed(down.counts), down.below + up.below, *up.counts, up.above]
    used = [index for index, count in enumerate(counts) if count]
    if not used:
        return (-least, least), (0,)
    return tuple(edges[used[0] : used[-1] + 2]), tuple(counts[used[0] : used[-1] + 1])


@cache
def _edges(low: float, high: float, bins: int) -> npt.NDArray[np.float64]:
    return np.array([_edge(low, high, bins, index) for index in range(bins + 1)])


def _edge(low: float, high: float, bins: int, index: int) -> float:
    # powers of two come out exact where low and high are powers of two
    return float(low * 2.0 ** (math.log2(high / low) * index / bins))


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Count, mean and sum of squared deviations; merged by Chan, Golub and LeVeque's update (1979)."""

    count: int = 0
    mean: float = 0.0
    spread: float = 0.0

    @classmethod
    def of(cls, values: npt.NDArray[np.float64]) -> Moments:
        """Of finite values."""
        if not values.size:
            return cls()
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(values.mean())
            return cls(count=values.size, mean=mean, spread=float(np.square(values - mean).sum()))

    def __add__(self, other: Moments) -> Moments:
        if not self.count or not other.count:
            return other if not self.count else self
        count, apart = self.count + other.count, other.mean - self.mean
        return Moments(
            count=count,
            mean=(self.mean * self.count + other.mean * other.count) / count,
            spread=self.spread + other.spread + apart * apart * (self.count / count) * other.count,
        )

    @property
    def std(self) -> float | None:
        """Sample standard deviation (n - 1), as the trainers take it; None for fewer than two values."""
        return math.sqrt(self.spread / (self.count - 1)) if self.count > 1 else None
