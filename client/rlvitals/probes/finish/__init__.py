"""From a merged Tally to the registry's metrics: the only place where the probes divide, one module a family.

A probe that ran has left its count, even of 0; a metric whose count is 0 is *missing* with a reason, never 0
and never NaN. A metric whose probe did not run is in neither ``values`` nor ``missing``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from rlvitals.contract.report import Extreme
from rlvitals.probes.finish.gradient import GRADIENT
from rlvitals.probes.finish.guards import GUARDS
from rlvitals.probes.finish.kl import KL
from rlvitals.probes.finish.lengths import LENGTHS
from rlvitals.probes.finish.numerics import NUMERICS
from rlvitals.probes.finish.policy import POLICY
from rlvitals.probes.finish.progress import PROGRESS
from rlvitals.probes.finish.ratios import RATIOS
from rlvitals.probes.finish.rewards import REWARDS
from rlvitals.probes.finish.text import TEXT
from rlvitals.probes.measured import Measured

if TYPE_CHECKING:
    from rlvitals.probes.tally import Tally

FAMILIES = (TEXT, LENGTHS, REWARDS, KL, RATIOS, POLICY, GRADIENT, NUMERICS, GUARDS, PROGRESS)


def finish(tally: Tally) -> Measured:
    """All metrics that ``tally`` can answer for."""
    findings = {name: found for family in FAMILIES for name, found in family.all_findings(tally)}
    values = {name: found for name, found in findings.items() if not isinstance(found, str)}
    reasons = {name: found for name, found in findings.items() if isinstance(found, str)}
    return Measured(
        values=values,
        missing={name: why for name, why in {**reasons, **tally.missing}.items() if name not in values},
        extremes={name: extreme for name, extreme in _extremes(tally) if name in values},
        histograms={name: found for family in FAMILIES for name, found in family.all_histograms(tally)},
    )


def _extremes(tally: Tally) -> Iterator[tuple[str, Extreme]]:
    for family in FAMILIES:
        yield from family.all_extremes(tally)
    for name, sums in tally.by_id.items():
        top = sums.top()
        if top:
            of_loss = name == "kl.grad_top_id_share"
            place = Extreme(value=top[1], token_id=top[0], masked=False if of_loss else None)
            witness = tally.maxima.get("kl.grad_max")
            if of_loss and witness is not None and witness.token_id == top[0]:
                place = witness
            yield name, replace(place, value=top[1])
    yield from tally.firsts.items()
