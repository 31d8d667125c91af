"""What one step's probes say, by registry name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlvitals.contract.report import Extreme

Buckets = tuple[tuple[float, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One step's metrics by registry name; a name is in ``values`` or in ``missing``, never in both.

    ``histograms`` holds (edges, counts) with one edge more than counts; the last edge may be +Inf.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    extremes: Mapping[str, Extreme] = field(default_factory=dict)
    histograms: Mapping[str, Buckets] = field(default_factory=dict)
