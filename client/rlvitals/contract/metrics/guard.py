"""What a guard did, where one is switched on (docs/guards.md): each of them changes the training."""

from __future__ import annotations

from rlvitals.contract.metrics.metric import Merge, Metric, Worse

_REWARDS = "completions as text, and their ids where they are told, of each guarded reward function"
_LOGITS = "logits (B, V) of each sampled token"

GUARD: tuple[Metric, ...] = (
    Metric(
        name="guard.garbled_rewards",
        unit="{completion}",
        merge=Merge.SUM,
        worse=Worse.UP,
        meaning="Rewards that a guarded function was asked for and whose completion is garbled.",
        formula="completions with more ill-formed characters or never-trained ids than are allowed",
        shape=_REWARDS,
        edge="A completion counts once for each guarded function. Missing where no reward guard is switched on.",
    ),
    Metric(
        name="guard.garbled_share",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Their share of all rewards that guarded functions were asked for.",
        formula="garbled / scored",
        shape=_REWARDS,
        edge="Missing where no reward guard is switched on, and in a step without rewards.",
    ),
    Metric(
        name="guard.replaced_rewards",
        unit="{completion}",
        merge=Merge.SUM,
        worse=Worse.UP,
        meaning="Rewards that the guard gave in place of the function: a penalty, or none.",
        formula="garbled completions in the modes penalise and drop",
        shape=_REWARDS,
        edge="0 in the mode clean, which scores the cleaned text.",
    ),
    Metric(
        name="guard.truncated_advantages",
        unit="{completion}",
        merge=Merge.SUM,
        worse=Worse.UP,
        meaning="Truncated completions whose advantage the guard scaled down.",
        formula="completions that the length limit cut",
        shape="advantages (B,) or (B, T), truncated (B,)",
        edge="Missing where no advantage guard is switched on.",
    ),
    Metric(
        name="guard.advantage_removed_share",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="How much of the step's advantages the guard took away.",
        formula="sum over truncated ones of (1 - weight) |A| / sum of |A|",
        shape="advantages (B,) or (B, T), truncated (B,)",
        edge="Non-finite advantages are left out. Missing where all advantages are zero.",
    ),
    Metric(
        name="guard.clamped_logits",
        unit="{value}",
        merge=Merge.SUM,
        worse=Worse.UP,
        meaning="Logits beyond the limit that the clamp set to it while completions were sampled.",
        formula="finite logits with |l| > limit, and +Inf",
        shape=_LOGITS,
        edge="-Inf stays, since it is how tokens are ruled out. On a GPU told up to a step late.",
    ),
    Metric(
        name="guard.clamped_share",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of the sampled tokens whose distribution the clamp changed.",
        formula="tokens with a clamped or replaced logit / sampled tokens",
        shape=_LOGITS,
        edge="Missing where no clamp is switched on, and in a step that samples nothing.",
    ),
    Metric(
        name="guard.nan_logits",
        unit="{value}",
        merge=Merge.SUM,
        worse=Worse.UP,
        meaning="NaN logits that the clamp took out of the choice: the model is broken, whatever it still writes.",
        formula="NaN in rows that hold a number too",
        shape=_LOGITS,
        edge="A row without any number is left as it is, and sampling fails as it would have.",
    ),
    Metric(
        name="guard.forced_loss_tokens",
        unit="{token}",
        merge=Merge.SUM,
        worse=Worse.UP,
        meaning="Tokens under the loss mask that the mask check takes for forced; the first is named.",
        formula="mask = 1 and chosen = 0; or a turn end under the mask with a log-prob below the floor",
        shape="ids and loss mask (B, T), and chosen or log-probs (B, T)",
        edge="Missing where the mask is not checked.",
        source="AgentR1/Agent-R1#30",
    ),
)
