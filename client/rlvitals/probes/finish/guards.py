"""What guards did in this step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from rlvitals.contract.report import Extreme
from rlvitals.probes.finish.tables import Family, Finding

if TYPE_CHECKING:
    from rlvitals.probes.tally import Tally

FORCED = "guard.forced_loss_tokens"
NO_REWARDS = "no reward was asked for in this step"
NO_LOGITS = "no token was sampled under the clamp in this step"
NO_ADVANTAGES = "all advantages were zero"


def _removed(tally: Tally) -> Iterator[Finding]:
    total = tally.sums.get("guard.advantage")
    if total is not None:
        removed = tally.sums["guard.advantage_removed"]
        yield "guard.advantage_removed_share", removed / total if total else NO_ADVANTAGES


def _forced(tally: Tally) -> Iterator[tuple[str, Extreme]]:
    first = tally.firsts.get("guard.forced")
    if first is not None:
        yield FORCED, replace(first, value=float(tally.counts["guard.forced"]))


GUARDS = Family(
    quotients={
        "guard.garbled_share": ("guard.garbled", "guard.scored", 1.0, NO_REWARDS),
        "guard.clamped_share": ("guard.clamped_rows", "guard.rows", 1.0, NO_LOGITS),
    },
    counts={
        "guard.garbled_rewards": ("guard.garbled",),
        "guard.replaced_rewards": ("guard.replaced",),
        "guard.truncated_advantages": ("guard.truncated",),
        "guard.clamped_logits": ("guard.clamped",),
        "guard.nan_logits": ("guard.nan",),
        FORCED: ("guard.forced",),
    },
    findings=_removed,
    places=_forced,
)
