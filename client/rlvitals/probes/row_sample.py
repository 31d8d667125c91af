"""Which completions the costlier text signals look at, decided by a completion's number in the step alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rlvitals.probes import arguments
from rlvitals.probes.arrays import Flags, Whole
from rlvitals.probes.mixing import STRIDE, WORD, mixed

TOKENS = 3 << 15
LEAST_COMPLETIONS = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReadRows:
    """Completions ``ids`` (R, T) that are read in full: ``rows`` of their batch, numbers ``samples`` in the step.

    ``mask`` (R, T) are the tokens that the policy chose, None where it chose them all.
    """

    ids: Whole
    mask: Flags | None
    rows: Whole
    samples: Whole

    def places(self) -> Iterator[Whole]:
        """Of each completion the positions of its chosen tokens."""
        for row in range(self.rows.size):
            yield np.arange(self.ids.shape[1]) if self.mask is None else np.flatnonzero(self.mask[row])


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSample:
    """About ``share`` of the step's completions, drawn by a hash of ``seed`` and of each one's number.

    Micro-batches, workers and ranks therefore look at the same completions however the step is cut, as long as
    they agree on seed and share. No random state is read or written. Give another seed at each step (its number
    will do) where the order of the completions repeats.
    """

    seed: int = 20210823
    share: float = 1.0

    def __post_init__(self) -> None:
        arguments.check_at_least("share", self.share, 0.0)

    @classmethod
    def of_step(cls, completions: int, tokens: int, *, seed: int = 20210823) -> RowSample:
        """For a step of that many completions and tokens, all parts together.

        As many completions as hold about ``TOKENS`` tokens, but no fewer than ``LEAST_COMPLETIONS`` on average.
        """
        enough = max(TOKENS / max(tokens, 1), LEAST_COMPLETIONS / max(completions, 1))
        return cls(seed=seed, share=min(1.0, enough))

    def take(self, ids: Whole, mask: Flags | None, sample_offset: int = 0) -> ReadRows:
        """The rows to read of a part ``ids`` (B, T) whose chosen tokens are ``mask`` (B, T), None for all."""
        rows = self.rows(ids.shape[0], sample_offset)
        return ReadRows(
            ids=ids[rows], mask=None if mask is None else mask[rows], rows=rows, samples=rows + sample_offset
        )

    def rows(self, count: int, sample_offset: int = 0) -> Whole:
        """The rows to look at of a part of ``count`` completions whose first is number ``sample_offset``."""
        if self.share >= 1.0:
            return np.arange(count)
        numbers = np.arange(count, dtype=np.uint64) + np.uint64(sample_offset % WORD)
        drawn = mixed(numbers + np.uint64(self.seed * STRIDE % WORD))
        return np.flatnonzero((drawn >> np.uint64(11)).astype(np.float64) < self.share * 2.0**53)
