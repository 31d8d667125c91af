"""Completion lengths and how completions end."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlvitals.probes.finish.tables import NO_COMPLETIONS, Family, Finding
from rlvitals.probes.survival import covering_length

if TYPE_CHECKING:
    from rlvitals.probes.tally import Tally

TOO_FEW = "fewer than two completions in this step"
NO_TOKENS = "every completion is empty: there is no mean to compare the spread with"
AT_LEAST_THE_CAP = "at least the cap: more than 5 % of the answers were still running where they were cut"


def _lengths(tally: Tally) -> Iterator[Finding]:
    if "length.tokens_sq" in tally.counts:
        count, total = tally.counts["length.completions"], tally.counts["length.tokens"]
        yield "length.cv", _variation(count, total, tally.counts["length.tokens_sq"])
    yield from _suggested_cap(tally)


def _variation(count: int, total: int, squares: int) -> float | str:
    """Standard deviation over mean; whole numbers, so that nothing is rounded before the root."""
    if count < 2:
        return TOO_FEW
    if not total:
        return NO_TOKENS
    return math.sqrt((count * squares - total * total) / (count * (count - 1))) * count / total


def _suggested_cap(tally: Tally) -> Iterator[Finding]:
    if "length.ended" not in tally.sketches:
        return
    longest = tally.maxima.get("length.longest_ended")
    cover = covering_length(
        tally.sketches["length.ended"],
        tally.sketches["length.cut"],
        longest=longest.value if longest is not None else 0.0,
    )
    if cover is None:
        yield "length.suggested_cap", NO_COMPLETIONS
        yield "length.suggested_cap_confidence", NO_COMPLETIONS
        return
    yield "length.suggested_cap", AT_LEAST_THE_CAP if cover.length is None else float(cover.length)
    yield "length.suggested_cap_confidence", cover.confidence


LENGTHS = Family(
    quotients={
        "length.mean": ("length.tokens", "length.completions", 1.0, NO_COMPLETIONS),
        "length.truncation_rate": ("length.truncated", "length.completions", 1.0, NO_COMPLETIONS),
        "length.stop_rate": ("length.stopped", "length.completions", 1.0, NO_COMPLETIONS),
        "length.aborted_rate": ("length.aborted", "length.completions", 1.0, NO_COMPLETIONS),
        "length.at_cap_share": ("length.at_cap", "length.capped", 1.0, NO_COMPLETIONS),
        "length.empty_rate": ("length.empty", "length.completions", 1.0, NO_COMPLETIONS),
    },
    counts={
        "length.completions": ("length.completions",),
    },
    extremes={
        "length.min": ("minima", "length.completions", NO_COMPLETIONS),
        "length.max": ("maxima", "length.completions", NO_COMPLETIONS),
    },
    histograms={"length.mean": "length.tokens"},
    findings=_lengths,
)
