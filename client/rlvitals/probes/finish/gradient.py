"""Gradients by parameter, and what the optimizer made of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlvitals.contract.report import Extreme
from rlvitals.probes.finish.tables import Family, Finding

if TYPE_CHECKING:
    from rlvitals.probes.tally import Tally

SQUARE = "gradient.sq/"
TOP, NONFINITE = "gradient.top_parameter_share", "gradient.nonfinite_parameters"
LABEL_CHARS = 64
NO_GRADIENT = "no parameter has a gradient"
ALL_ZERO = "all finite gradients are zero"
NO_WEIGHTS = "no finite weight was looked at"
ALL_WEIGHTS_ZERO = "all weights that were looked at were zero"


def largest_parameters(tally: Tally, count: int = 5) -> tuple[tuple[str, float], ...]:
    """The parameters with the largest gradients: (name, share of the squared norm of all finite ones)."""
    total = tally.sums.get("gradient.finite_sq", 0.0)
    if not total:
        return ()
    squares = [(key[len(SQUARE) :], square) for key, square in tally.sums.items() if key.startswith(SQUARE)]
    return tuple((name, square / total) for name, square in sorted(squares, key=lambda s: (-s[1], s[0]))[:count])


def _gradients(tally: Tally) -> Iterator[Finding]:
    if "gradient.parameters" not in tally.counts:
        return
    measured = bool(tally.counts["gradient.parameters"])
    yield "gradient.norm", math.sqrt(tally.sums["gradient.norm_sq"]) if measured else NO_GRADIENT
    top = largest_parameters(tally, 1)
    yield TOP, top[0][1] if top else ALL_ZERO if measured else NO_GRADIENT


def shown(name: str) -> str:
    """A parameter's name as it fits into a label; its end tells more than its beginning."""
    return name if len(name) <= LABEL_CHARS else "…" + name[1 - LABEL_CHARS :]


def _places(tally: Tally) -> Iterator[tuple[str, Extreme]]:
    for name, share in largest_parameters(tally, 1):
        yield TOP, Extreme(value=share, token=shown(name))
    if NONFINITE in tally.firsts:
        yield "numerics.nonfinite_gradient", tally.firsts[NONFINITE]


def _updates(tally: Tally) -> Iterator[Finding]:
    if "update.elements" in tally.counts:
        elements, weight = tally.counts["update.elements"], tally.sums["update.weight_sq"]
        moved = math.sqrt(tally.sums["update.moved_sq"])
        missing = NO_WEIGHTS if not elements else ALL_WEIGHTS_ZERO
        yield "gradient.update_ratio", moved / math.sqrt(weight) if weight else missing
        yield "gradient.unchanged_share", tally.counts["update.same"] / elements if elements else NO_WEIGHTS
    skipped = [tally.counts[key] for key in ("update.still", "scaler.skipped") if key in tally.counts]
    if skipped:
        yield "gradient.skipped_steps", float(max(skipped))
    if "gradient.loss_scale" in tally.minima:
        yield "gradient.loss_scale", tally.minima["gradient.loss_scale"].value


def _findings(tally: Tally) -> Iterator[Finding]:
    yield from _gradients(tally)
    yield from _updates(tally)


GRADIENT = Family(
    counts={NONFINITE: (NONFINITE,)},
    findings=_findings,
    places=_places,
)
