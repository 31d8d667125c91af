"""From a merged Tally to the registry's metrics: the only place where the probes divide.

A probe that ran has left its count, even of 0; a metric whose count is 0 is *missing* with a reason, never 0
and never NaN. A metric whose probe did not run is in neither ``values`` nor ``missing``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rlvitals.contract.report import Extreme

if TYPE_CHECKING:
    from rlvitals.probes.tally import Tally

Buckets = tuple[tuple[float, ...], tuple[int, ...]]
Finding = tuple[str, "float | str"]

NO_LOSS_TOKENS = "no token under the loss mask with finite log-probs"
NO_TEXT = "no token chosen by the policy"
NO_COMPLETIONS = "no completion in this step"
NO_REWARDS = "no finite reward in this step"
NO_GROUPS = "no group with two or more finite rewards"
NO_ADVANTAGES = "no finite advantage in this step"
NO_PULL = "all advantages are zero: there is no policy pull to compare with"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One step's metrics by registry name; a name is in ``values`` or in ``missing``, never in both.

    ``histograms`` holds (edges, counts) with one edge more than counts; the last edge may be +Inf.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    extremes: Mapping[str, Extreme] = field(default_factory=dict)
    histograms: Mapping[str, Buckets] = field(default_factory=dict)


# metric: (what is summed, the count that divides it, factor, why it is missing where that count is 0)
_QUOTIENTS: dict[str, tuple[str, str, float, str]] = {
    "text.invalid_utf8_per_1k": ("text.errors", "text.tokens", 1000.0, NO_TEXT),
    "text.invalid_utf8_completions": ("text.error_completions", "text.completions", 1.0, NO_COMPLETIONS),
    "text.literal_replacement_per_1k": ("text.literals", "text.tokens", 1000.0, NO_TEXT),
    "text.cut_char_completions": ("text.tail_completions", "text.completions", 1.0, NO_COMPLETIONS),
    "text.never_trained_rate": ("text.never_trained", "text.tokens", 1.0, NO_TEXT),
    "text.byte_piece_ratio": ("text.byte_pieces", "text.tokens", 1.0, NO_TEXT),
    "text.byte_fallback_ratio": ("text.byte_fallback", "text.tokens", 1.0, NO_TEXT),
    "text.id0_share": ("text.id0", "text.tokens", 1.0, NO_TEXT),
    "length.mean": ("length.tokens", "length.completions", 1.0, NO_COMPLETIONS),
    "length.truncation_rate": ("length.truncated", "length.completions", 1.0, NO_COMPLETIONS),
    "length.stop_rate": ("length.stopped", "length.completions", 1.0, NO_COMPLETIONS),
    "length.empty_rate": ("length.empty", "length.completions", 1.0, NO_COMPLETIONS),
    "reward.group_std": ("reward.group_std", "reward.groups", 1.0, NO_GROUPS),
    "reward.zero_std_groups": ("reward.zero_std_groups", "reward.groups", 1.0, NO_GROUPS),
    "kl.k1": ("kl.k1", "kl.tokens", 1.0, NO_LOSS_TOKENS),
    "kl.k2": ("kl.k2", "kl.tokens", 1.0, NO_LOSS_TOKENS),
    "kl.k3": ("kl.k3", "kl.tokens", 1.0, NO_LOSS_TOKENS),
    "kl.capped": ("kl.capped", "kl.tokens", 1.0, NO_LOSS_TOKENS),
    "kl.clamped_share": ("kl.clamped", "kl.tokens", 1.0, NO_LOSS_TOKENS),
    "ratio.clip_low_share": ("ratio.clipped_low", "ratio.tokens", 1.0, NO_LOSS_TOKENS),
    "ratio.clip_high_share": ("ratio.clipped_high", "ratio.tokens", 1.0, NO_LOSS_TOKENS),
    "ratio.approx_kl": ("ratio.k3", "ratio.tokens", 1.0, NO_LOSS_TOKENS),
    "ratio.rollout_logp_diff": ("rollout.difference", "rollout.tokens", 1.0, NO_LOSS_TOKENS),
    "ratio.rollout_prob_diff": ("rollout.probability", "rollout.tokens", 1.0, NO_LOSS_TOKENS),
}

# metric: the counts that add up to it
_COUNTS: dict[str, tuple[str, ...]] = {
    "text.invalid_utf8_count": ("text.errors",),
    "text.replacement_char_count": ("text.errors", "text.literals"),
    "text.out_of_range_count": ("text.out_of_range",),
    "length.completions": ("length.completions",),
    "policy.loss_tokens": ("policy.loss_tokens",),
    "numerics.nonfinite_loss": ("nonfinite.loss",),
    "numerics.nonfinite_gradient": ("nonfinite.gradient",),
    "numerics.nonfinite_logprobs": ("nonfinite.logp", "nonfinite.ref", "nonfinite.old"),
    "numerics.nonfinite_advantages": ("nonfinite.advantages",),
    "numerics.nonfinite_rewards": ("nonfinite.rewards",),
    "numerics.nonfinite_padding": ("nonfinite.padding",),
    "numerics.nonfinite": (
        "nonfinite.loss",
        "nonfinite.gradient",
        "nonfinite.logp",
        "nonfinite.ref",
        "nonfinite.old",
        "nonfinite.advantages",
    ),
}

# metric: (largest or least, the count that says that its probe ran, why it is missing)
_EXTREMES: dict[str, tuple[str, str, str]] = {
    "length.min": ("minima", "length.completions", NO_COMPLETIONS),
    "length.max": ("maxima", "length.completions", NO_COMPLETIONS),
    "reward.min": ("minima", "reward.seen", NO_REWARDS),
    "reward.max": ("maxima", "reward.seen", NO_REWARDS),
    "reward.advantage_abs_max": ("maxima", "advantage.seen", NO_ADVANTAGES),
    "kl.grad_max": ("maxima", "kl.tokens", NO_LOSS_TOKENS),
    "ratio.max": ("maxima", "ratio.tokens", NO_LOSS_TOKENS),
    "ratio.min": ("minima", "ratio.tokens", NO_LOSS_TOKENS),
}

_TOP_IDS: dict[str, tuple[str, str]] = {
    "text.top_id_share": ("text.tokens", NO_TEXT),
    "kl.grad_top_id_share": ("kl.tokens", NO_LOSS_TOKENS),
}

_HISTOGRAMS = {"length.mean": "length.tokens", "ratio.log_abs_p999": "ratio.log_abs"}


def finish(tally: Tally) -> Measured:
    """All metrics that ``tally`` can answer for."""
    findings = dict(_findings(tally))
    values = {name: found for name, found in findings.items() if not isinstance(found, str)}
    reasons = {name: found for name, found in findings.items() if isinstance(found, str)}
    missing = {name: why for name, why in {**reasons, **tally.missing}.items() if name not in values}
    return Measured(
        values=values,
        missing=missing,
        extremes={name: extreme for name, extreme in _extremes(tally) if name in values},
        histograms={
            name: tally.sketches[key].histogram()
            for name, key in _HISTOGRAMS.items()
            if key in tally.sketches and tally.sketches[key].total
        },
    )


def _findings(tally: Tally) -> Iterator[Finding]:
    yield from _quotients(tally)
    yield from _counts(tally)
    yield from _largest_and_least(tally)
    yield from _top_ids(tally)
    yield from _rewards(tally)
    yield from _kl_gradient(tally)
    yield from _ratio(tally)


def _quotients(tally: Tally) -> Iterator[Finding]:
    for name, (above, below, factor, reason) in _QUOTIENTS.items():
        total = tally.sums.get(above, tally.counts.get(above))
        if total is not None and below in tally.counts:
            yield name, factor * total / tally.counts[below] if tally.counts[below] else reason


def _counts(tally: Tally) -> Iterator[Finding]:
    for name, keys in _COUNTS.items():
        found = [tally.counts[key] for key in keys if key in tally.counts]
        if found:
            yield name, float(sum(found))


def _largest_and_least(tally: Tally) -> Iterator[Finding]:
    for name, (side, count, reason) in _EXTREMES.items():
        extremes = tally.maxima if side == "maxima" else tally.minima
        if name in extremes:
            yield name, extremes[name].value
        elif count in tally.counts:
            yield name, reason


def _top_ids(tally: Tally) -> Iterator[Finding]:
    for name, (count, reason) in _TOP_IDS.items():
        if name in tally.by_id:
            top = tally.by_id[name].top()
            yield name, top[1] if top else (reason if not tally.counts.get(count) else "the quantity is zero")


def _rewards(tally: Tally) -> Iterator[Finding]:
    if "reward" not in tally.moments:
        return
    moments = tally.moments["reward"]
    yield "reward.mean", moments.mean if moments.count else NO_REWARDS
    yield "reward.std", moments.std if moments.std is not None else "fewer than two finite rewards in this step"


def _kl_gradient(tally: Tally) -> Iterator[Finding]:
    if "kl.grad_sq" not in tally.sums:
        return
    tokens = tally.counts.get("kl.tokens", 0)
    if not tokens:
        yield from ((name, NO_LOSS_TOKENS) for name in ("kl.grad_norm", "kl.grad_l2", "kl.grad_rms"))
        return
    plain = math.sqrt(tally.sums["kl.grad_sq"])
    pull = math.sqrt(tally.sums["kl.pull_sq"])
    yield "kl.grad_norm", pull
    yield "kl.grad_l2", plain
    yield "kl.grad_rms", plain / math.sqrt(tokens)
    if "policy.pull_sq" in tally.sums:
        policy = math.sqrt(tally.sums["policy.pull_sq"])
        yield "kl.pull_ratio", _over(pull, policy)


def _over(pull: float, policy: float) -> float | str:
    if policy == 0:
        return NO_PULL
    return pull / policy if math.isfinite(policy) else "the policy pull overflows"


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


def _extremes(tally: Tally) -> Iterator[tuple[str, Extreme]]:
    for name, (side, _, _) in _EXTREMES.items():
        extremes = tally.maxima if side == "maxima" else tally.minima
        if name in extremes:
            yield name, extremes[name]
    for name, sums in tally.by_id.items():
        top = sums.top()
        if top:
            witness = tally.maxima.get("kl.grad_max")
            same = name == "kl.grad_top_id_share" and witness is not None and witness.token_id == top[0]
            place = witness if same and witness is not None else Extreme(value=top[1], token_id=top[0])
            yield name, replace(place, value=top[1])
    yield from tally.firsts.items()
    for name, key in (("text.invalid_utf8_count", "text.worst_errors"),):
        if key in tally.maxima:
            yield name, tally.maxima[key]
