"""Importance ratios: new over old, trainer over sampler, policy over reference."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlvitals.probes.finish.tables import NO_LOSS_TOKENS, Family, Finding

if TYPE_CHECKING:
    from rlvitals.probes.tally import Tally

CLIPPED = ("ratio.clipped_low", "ratio.clipped_high")
PREFIXES = ("ratio.", "ratio.rollout_", "ratio.reference_")


def _ratios(tally: Tally) -> Iterator[Finding]:
    for prefix in PREFIXES:
        if f"{prefix}tokens" in tally.counts:
            yield from _of_kind(tally, prefix)
    yield from _clipped(tally)


def _clipped(tally: Tally) -> Iterator[Finding]:
    """Both sides together, where the clip was looked at."""
    sides = [tally.counts[key] for key in CLIPPED if key in tally.counts]
    if sides and "ratio.tokens" in tally.counts:
        tokens = tally.counts["ratio.tokens"]
        yield "ratio.clip_share", sum(sides) / tokens if tokens else NO_LOSS_TOKENS


def _of_kind(tally: Tally, prefix: str) -> Iterator[Finding]:
    tokens = tally.counts[f"{prefix}tokens"]
    if not tokens:
        yield from ((f"{prefix}{name}", NO_LOSS_TOKENS) for name in ("ess", "log_abs_p999", "beyond_count"))
        return
    excess, excess_sq = tally.sums[f"{prefix}excess"], tally.sums[f"{prefix}excess_sq"]
    yield f"{prefix}ess", _effective_sample_size(tokens, excess, excess_sq)
    yield f"{prefix}beyond_count", float(tally.counts[f"{prefix}beyond"])
    largest = tally.maxima[f"{prefix}log_abs"].value
    quantile = tally.sketches[f"{prefix}log_abs"].quantile(0.999, largest=largest)
    yield f"{prefix}log_abs_p999", NO_LOSS_TOKENS if quantile is None else quantile


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
        "ratio.rollout_logp_diff": ("rollout.difference", "ratio.rollout_tokens", 1.0, NO_LOSS_TOKENS),
        "ratio.rollout_prob_diff": ("rollout.probability", "ratio.rollout_tokens", 1.0, NO_LOSS_TOKENS),
        "ratio.rollout_approx_kl": ("ratio.rollout_k3", "ratio.rollout_tokens", 1.0, NO_LOSS_TOKENS),
    },
    extremes={
        f"{prefix}{name}": (side, f"{prefix}tokens", NO_LOSS_TOKENS)
        for prefix in PREFIXES
        for name, side in (("max", "maxima"), ("min", "minima"))
    },
    histograms={f"{prefix}log_abs_p999": f"{prefix}log_abs" for prefix in PREFIXES},
    findings=_ratios,
)
