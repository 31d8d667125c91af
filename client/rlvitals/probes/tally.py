"""Tally: what the probes count, in a form that adds up.

Micro-batches, gradient accumulation, ranks and workers each make one; ``+`` is associative and commutative and
``Tally.zero()`` is its identity, so the sum does not depend on how a step was split. Ratios are taken only at
the end, by `Tally.measured`: there are no means of means. (Floating-point sums agree up to rounding, all else
exactly.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TypeVar

from rlvitals.contract import codec
from rlvitals.contract.report import Extreme
from rlvitals.probes.finish import finish
from rlvitals.probes.id_sums import IdSums
from rlvitals.probes.measured import Measured
from rlvitals.probes.sketch import Moments, Sketch

V = TypeVar("V")

_LAST = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Sums of one part of a step, keyed by the probe's own names (see `measured.finish`).

    ``firsts`` keeps a witness where any will do: the one with the least sample and position.
    ``missing`` says why a metric could not be measured; a part that did measure it overrules that.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    sums: Mapping[str, float] = field(default_factory=dict)
    moments: Mapping[str, Moments] = field(default_factory=dict)
    minima: Mapping[str, Extreme] = field(default_factory=dict)
    maxima: Mapping[str, Extreme] = field(default_factory=dict)
    firsts: Mapping[str, Extreme] = field(default_factory=dict)
    sketches: Mapping[str, Sketch] = field(default_factory=dict)
    by_id: Mapping[str, IdSums] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def zero(cls) -> Tally:
        return cls()

    @classmethod
    def absent(cls, names: tuple[str, ...], reason: str) -> Tally:
        """Says of each metric in ``names`` that it could not be measured, and why."""
        return cls(missing=dict.fromkeys(names, reason))

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        return Tally(
            counts=_merge(self.counts, other.counts, lambda a, b: a + b),
            sums=_merge(self.sums, other.sums, lambda a, b: a + b),
            moments=_merge(self.moments, other.moments, lambda a, b: a + b),
            minima=_merge(self.minima, other.minima, lambda a, b: min(a, b, key=_ascending)),
            maxima=_merge(self.maxima, other.maxima, lambda a, b: min(a, b, key=_descending)),
            firsts=_merge(self.firsts, other.firsts, lambda a, b: min(a, b, key=_place)),
            sketches=_merge(self.sketches, other.sketches, lambda a, b: a + b),
            by_id=_merge(self.by_id, other.by_id, lambda a, b: a + b),
            missing=_merge(self.missing, other.missing, min),
        )

    def __radd__(self, other: object) -> Tally:
        """So that ``sum(tallies)`` works."""
        return self if other == 0 else NotImplemented

    def measured(self) -> Measured:
        """The registry's metrics of all that was added up: values, missing with reasons, extremes, histograms."""
        return finish(self)

    def to_dict(self) -> dict[str, object]:
        """JSON-safe: non-finite numbers are spelt out; sums by id are cut to the largest (see `IdSums`)."""
        plain: dict[str, object] = {
            f.name: codec.encode(getattr(self, f.name)) for f in fields(self) if f.name != "by_id"
        }
        return plain | {"by_id": {name: sums.to_dict() for name, sums in self.by_id.items()}}

    @classmethod
    def from_dict(cls, value: Mapping[str, object]) -> Tally:
        """The inverse of `to_dict`. Raises `codec.DecodeError` naming the field."""
        wire = codec.decode(_Wire, value)
        parts = {f.name: getattr(wire, f.name) for f in fields(wire)}
        return cls(**parts | {"by_id": {name: IdSums.from_dict(sums) for name, sums in wire.by_id.items()}})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wire:
    counts: Mapping[str, int]
    sums: Mapping[str, float]
    moments: Mapping[str, Moments]
    minima: Mapping[str, Extreme]
    maxima: Mapping[str, Extreme]
    firsts: Mapping[str, Extreme]
    sketches: Mapping[str, Sketch]
    by_id: Mapping[str, Mapping[str, object]]
    missing: Mapping[str, str]


def _merge(a: Mapping[str, V], b: Mapping[str, V], combine: Callable[[V, V], V]) -> Mapping[str, V]:
    if not a or not b:
        return a or b
    return {**a, **{name: combine(a[name], value) if name in a else value for name, value in b.items()}}


def _place(extreme: Extreme) -> tuple[int, int, int, bool, str]:
    """A total order of places, so that equal values merge to the same one whatever the order of merging."""
    return (
        _LAST if extreme.sample is None else extreme.sample,
        _LAST if extreme.position is None else extreme.position,
        _LAST if extreme.token_id is None else extreme.token_id,
        bool(extreme.masked),
        repr(extreme),
    )


def _ascending(extreme: Extreme) -> tuple[float, tuple[int, int, int, bool, str]]:
    return extreme.value, _place(extreme)


def _descending(extreme: Extreme) -> tuple[float, tuple[int, int, int, bool, str]]:
    return -extreme.value, _place(extreme)
