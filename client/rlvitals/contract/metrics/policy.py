"""The policy itself: loss, entropy, learning rate, and what it is trained on."""

from __future__ import annotations

from rlvitals.contract.metrics.metric import Merge, Metric, Worse

ENTROPIES = "per-token entropies of the full softmax and loss mask (B, T)"
NO_ENTROPIES = (
    "Missing where the trainer shows no per-token entropies, and where no token under the mask has a finite one "
    "(NaN and infinities are left out)."
)

POLICY: tuple[Metric, ...] = (
    Metric(
        name="policy.loss",
        unit="1",
        merge=Merge.LAST,
        worse=Worse.NEITHER,
        meaning="The loss as computed, before any log filter hides a NaN.",
        formula="sum of the micro-batches' losses, mean over ranks",
        shape="a scalar for each micro-batch",
        edge="NaN and infinities are told as they are.",
        source="the trainer",
    ),
    Metric(
        name="policy.entropy",
        unit="nat",
        merge=Merge.LAST,
        worse=Worse.BOTH,
        meaning="Mean entropy of the policy's next-token distribution.",
        formula="(sum H) / N, H = -sum over the vocabulary of p log p, at the training temperature",
        shape=f"{ENTROPIES}, or the trainer's own mean",
        edge=(
            "From per-token entropies where they are shown (NaN and infinities left out), else as the trainer "
            "logs it; missing where it does neither."
        ),
        source="Shannon 1948; TRL entropy, verl actor/entropy",
    ),
    Metric(
        name="policy.entropy_low_tail",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of tokens of which the policy is certain: entropy below 0.01 nat.",
        formula="(tokens with H < 0.01) / N",
        shape=ENTROPIES,
        edge=f"{NO_ENTROPIES} An entropy that rounds below 0 is certain too.",
    ),
    Metric(
        name="policy.entropy_p01",
        unit="nat",
        merge=Merge.TALLY,
        worse=Worse.DOWN,
        meaning="1 % quantile of the tokens' entropies.",
        formula="upper edge of its bin of 96 log bins over [1e-6, 16), at most 22.6 % too high",
        shape=ENTROPIES,
        edge=f"{NO_ENTROPIES} 1e-6 where it is less.",
    ),
    Metric(
        name="policy.entropy_p10",
        unit="nat",
        merge=Merge.TALLY,
        worse=Worse.DOWN,
        meaning="10 % quantile of the tokens' entropies.",
        formula="upper edge of its bin of 96 log bins over [1e-6, 16), at most 22.6 % too high",
        shape=ENTROPIES,
        edge=f"{NO_ENTROPIES} 1e-6 where it is less.",
    ),
    Metric(
        name="policy.learning_rate",
        unit="1",
        merge=Merge.LAST,
        worse=Worse.NEITHER,
        meaning="Learning rate in force.",
        formula="the first parameter group's, at the optimizer's step",
        shape="a scalar",
        edge="Missing where the trainer shows none.",
        source="the trainer",
    ),
    Metric(
        name="policy.loss_tokens",
        unit="{token}",
        merge=Merge.SUM,
        worse=Worse.DOWN,
        meaning="Tokens under the loss mask.",
        formula="N = tokens with a mask that is not 0",
        shape="loss mask (B, T)",
        edge="A true 0 where everything is masked: then nothing is trained.",
    ),
    Metric(
        name="policy.forced_loss_tokens",
        unit="{token}",
        merge=Merge.SUM,
        worse=Worse.UP,
        meaning=(
            "Tokens that the policy did not choose (a tool, the environment or the template wrote them) and that "
            "the loss trains on all the same: the loss mask does not cover them. Shown with the id that is forced "
            "most often (masked = no: the mask does not hide it)."
        ),
        formula="tokens with a mask that is not 0 and chosen = 0",
        shape="chosen, loss mask and token ids (B, T)",
        edge=(
            "A true 0 where the mask hides all of them. Missing where nobody says who wrote a token; the reason "
            "then names the id that owns most of the squared KL gradient, where one does."
        ),
        source="AgentR1/Agent-R1#30",
    ),
)
