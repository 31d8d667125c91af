"""How a family's metrics follow from a merged Tally, as tables; the few that need arithmetic have a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from rlvitals.contract.report import Extreme
from rlvitals.probes.measured import Buckets
from rlvitals.probes.sketch import signed_histogram

if TYPE_CHECKING:
    from rlvitals.probes.tally import Tally

Finding: TypeAlias = tuple[str, "float | str"]
"""A metric's name with its value, or with the reason why it is missing."""

NO_LOSS_TOKENS = "no token under the loss mask with finite log-probs"
NO_TEXT = "no token chosen by the policy"
NO_COMPLETIONS = "no completion in this step"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """``quotients``: metric → (what is summed, the count that divides it, factor, why it is missing at count 0);
    ``counts``: metric → the counts that add up to it; ``extremes``: metric → ("maxima" or "minima", the count that
    says that its probe ran, why it is missing); ``top_ids``: metric → (the count that says that its probe ran, why
    it is missing at count 0); ``witnesses``: metric → the key in ``maxima`` that shows where; ``histograms``:
    metric → the sketch that is drawn with it; ``signed``: the same where values may be below zero, metric → (the
    sketch of those below, of all others). ``findings`` yields what the tables cannot say, ``places``
    where it was seen.
    """

    quotients: Mapping[str, tuple[str, str, float, str]] = field(default_factory=dict)
    counts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    extremes: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)
    top_ids: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    witnesses: Mapping[str, str] = field(default_factory=dict)
    histograms: Mapping[str, str] = field(default_factory=dict)
    signed: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    findings: Callable[[Tally], Iterator[Finding]] | None = None
    places: Callable[[Tally], Iterator[tuple[str, Extreme]]] | None = None

    def all_findings(self, tally: Tally) -> Iterator[Finding]:
        """Every metric of the family that the tally can answer for."""
        yield from _quotients(self.quotients, tally)
        yield from _counts(self.counts, tally)
        yield from _largest_and_least(self.extremes, tally)
        yield from _top_ids(self.top_ids, tally)
        if self.findings is not None:
            yield from self.findings(tally)

    def all_histograms(self, tally: Tally) -> Iterator[tuple[str, Buckets]]:
        """The distributions of what was counted at all."""
        for name, key in self.histograms.items():
            if key in tally.sketches and tally.sketches[key].total:
                yield name, tally.sketches[key].histogram()
        for name, (below, others) in self.signed.items():
            found = [tally.sketches[key] for key in (below, others) if key in tally.sketches]
            if len(found) == 2 and any(sketch.total for sketch in found):
                yield name, signed_histogram(*found)

    def all_extremes(self, tally: Tally) -> Iterator[tuple[str, Extreme]]:
        """Where the extremes of the family were seen."""
        for name, (side, _, _) in self.extremes.items():
            found = tally.maxima if side == "maxima" else tally.minima
            if name in found:
                yield name, found[name]
        for name, key in self.witnesses.items():
            if key in tally.maxima:
                yield name, tally.maxima[key]
        if self.places is not None:
            yield from self.places(tally)


def _quotients(table: Mapping[str, tuple[str, str, float, str]], tally: Tally) -> Iterator[Finding]:
    for name, (above, below, factor, reason) in table.items():
        total = tally.sums.get(above, tally.counts.get(above))
        if total is not None and below in tally.counts:
            yield name, factor * total / tally.counts[below] if tally.counts[below] else reason


def _counts(table: Mapping[str, tuple[str, ...]], tally: Tally) -> Iterator[Finding]:
    for name, keys in table.items():
        found = [tally.counts[key] for key in keys if key in tally.counts]
        if found:
            yield name, float(sum(found))


def _largest_and_least(table: Mapping[str, tuple[str, str, str]], tally: Tally) -> Iterator[Finding]:
    for name, (side, count, reason) in table.items():
        extremes = tally.maxima if side == "maxima" else tally.minima
        if name in extremes:
            yield name, extremes[name].value
        elif count in tally.counts:
            yield name, reason


def _top_ids(table: Mapping[str, tuple[str, str]], tally: Tally) -> Iterator[Finding]:
    for name, (count, reason) in table.items():
        if name in tally.by_id:
            top = tally.by_id[name].top()
            yield name, top[1] if top else (reason if not tally.counts.get(count) else "the quantity is zero")
