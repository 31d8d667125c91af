"""Importance ratios, new over old and trainer over sampler."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlvitals.probes.finish.tables import NO_LOSS_TOKENS, Family, Finding

if TYPE_CHECKING:
    from rlvitals.probes.tally import Tally


def _ratio(tally: Tally) -> Iterator[Finding]:
    if "ratio.tokens" not in tally.counts:
        return
    tokens = tally.counts["ratio.tokens"]
    if not tokens:
        yield "ratio.ess", NO_LOSS_TOKENS
        yield "ratio.log_abs_p999", NO_LOSS_TOKENS
        return
    yield "ratio.ess", _effective_sample_size(tokens, tally.sums["ratio.excess"], tally.sums["ratio.excess_sq"])
    largest = tally.maxima["ratio.log_abs"].value
    quantile = tally.sketches["ratio.log_abs"].quantile(0.999, largest=largest)
    yield "ratio.log_abs_p999", NO_LOSS_TOKENS if quantile is None else quantile


def _effective_sample_size(tokens: int, excess: float, excess_sq: float) -> float:
    """(sum r)^2 / (N sum r^2) from sums of e = r - 1 and e^2, which keep the digits where all r are near 1.

    Where a sum overflows, one token outweighs all others and the limit is 1 / N.
    """
    ratios, squares = tokens + excess, tokens + 2 * excess + excess_sq
    if not math.isfinite(ratios * ratios) or not math.isfinite(squares):
        return 1.0 / tokens
    least = 1.0 / tokens
    return min(1.0, max(least, ratios / tokens * (ratios / squares))) if squares > 0 else least


RATIOS = Family(
    quotients={
        "ratio.clip_low_share": ("ratio.clipped_low", "ratio.tokens", 1.0, NO_LOSS_TOKENS),
        "ratio.clip_high_share": ("ratio.clipped_high", "ratio.tokens", 1.0, NO_LOSS_TOKENS),
        "ratio.approx_kl": ("ratio.k3", "ratio.tokens", 1.0, NO_LOSS_TOKENS),
        "ratio.rollout_logp_diff": ("rollout.difference", "rollout.tokens", 1.0, NO_LOSS_TOKENS),
        "ratio.rollout_prob_diff": ("rollout.probability", "rollout.tokens", 1.0, NO_LOSS_TOKENS),
    },
    extremes={
        "ratio.max": ("maxima", "ratio.tokens", NO_LOSS_TOKENS),
        "ratio.min": ("minima", "ratio.tokens", NO_LOSS_TOKENS),
    },
    histograms={"ratio.log_abs_p999": "ratio.log_abs"},
    findings=_ratio,
)
