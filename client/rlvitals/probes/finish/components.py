"""Reward functions one by one, under the user's own names ``rewards/<function>/…``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlvitals.contract.report import Extreme
from rlvitals.probes.finish.tables import Finding
from rlvitals.probes.sketch import Moments

if TYPE_CHECKING:
    from rlvitals.probes.tally import Tally

OWN, PART, BOTH, TOTAL = "component/", "component_part/", "component_both/", "component_total"
EQUAL_WITHIN = 1e-6
NO_VALUE = "this reward function gave no finite value in this step"
ONE_VALUE = "this reward function gave fewer than two finite values in this step"
NO_VARIANCE = "the total reward does not vary in this step: there is no variance to share"
TOO_FEW = "no reward function gave two or more finite values in this step"
CONSTANT = "reward.components_constant"


def component_findings(tally: Tally) -> Iterator[Finding]:
    """Of each reward function mean, deviation and share of the total's variance; and how many are constant."""
    if TOTAL not in tally.moments:
        return
    total = tally.moments[TOTAL]
    functions = _functions(tally)
    for name, own in functions.items():
        yield f"rewards/{name}/mean", own.mean if own.count else NO_VALUE
        yield f"rewards/{name}/std", own.std if own.std is not None else ONE_VALUE
        share = _share(tally.moments[PART + name], tally.moments[BOTH + name], total)
        yield f"rewards/{name}/variance_share", NO_VARIANCE if share is None else share
    judged = any(own.count > 1 for own in functions.values())
    yield CONSTANT, float(len(constant_components(tally))) if judged else TOO_FEW


def component_places(tally: Tally) -> Iterator[tuple[str, Extreme]]:
    """Which reward functions are constant, by name."""
    names = constant_components(tally)
    if names:
        yield CONSTANT, Extreme(value=float(len(names)), token=", ".join(names))


def constant_components(tally: Tally) -> tuple[str, ...]:
    """Names of the reward functions with two or more finite values that are all equal (within 1e-6)."""
    return tuple(name for name, own in sorted(_functions(tally).items()) if own.count > 1 and _flat(own))


def _functions(tally: Tally) -> dict[str, Moments]:
    return {key[len(OWN) :]: own for key, own in tally.moments.items() if key.startswith(OWN)}


def _flat(moments: Moments) -> bool:
    return moments.std is not None and moments.std <= EQUAL_WITHIN * max(1.0, abs(moments.mean))


def _share(part: Moments, both: Moments, total: Moments) -> float | None:
    """Cov(w r, t) / Var(t) by polarisation: the shares of all functions add up to 1."""
    if total.count < 2 or _flat(total):
        return None
    return (both.spread - part.spread - total.spread) / (2.0 * total.spread)
