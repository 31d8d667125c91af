"""Entropy of the policy's next-token distribution, token by token: mean and low tail.

The mean alone hides a collapse: most tokens of a text are certain anyway, and exploration lives in the few that
are not. The tail says how many tokens have become certain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlvitals.probes.arguments import check_floating, check_tokens
from rlvitals.probes.arrays import Floats, is_tensor
from rlvitals.probes.finish.policy import NO_ENTROPIES
from rlvitals.probes.log_bins import ENTROPY_BINS
from rlvitals.probes.tally import Tally
from rlvitals.probes.uncompiled import uncompiled

if TYPE_CHECKING:
    from torch import Tensor

    from rlvitals.probes.reduction import Reduction

METRICS = ("policy.entropy", "policy.entropy_low_tail", "policy.entropy_p01", "policy.entropy_p10")
CERTAIN = 0.01
"""Nats below which a token counts as certain: the policy gives it more than 99.8 %."""


def tally_entropy(entropy: Any, mask: Any) -> Tally:
    """Tallies the entropies of one micro-batch, of tensors (on a GPU this waits) or of arrays.

    See `measure_entropy`; without ``entropy`` all is missing.
    """
    if entropy is None:
        return Tally.absent(METRICS, NO_ENTROPIES)
    if is_tensor(entropy):
        return measure_entropy(entropy, mask).tally()
    from rlvitals.probes import entropy_numpy

    _check(entropy, mask)
    return _build(*entropy_numpy.summed(entropy, mask, CERTAIN))


@uncompiled
def measure_entropy(entropy: Tensor, mask: Tensor) -> Reduction:
    """Launches the sums and returns at once.

    ``entropy`` (B, T) in nats, of the full softmax at the training temperature; ``mask`` (B, T) the loss mask, on
    one device. NaN and infinities are left out and counted as nonfinite.entropy.

    Raises `ProbeArgumentError` naming the argument of a wrong shape, device or dtype.
    """
    from rlvitals.probes import entropy_torch
    from rlvitals.probes.nested import dense

    entropy, mask = dense(entropy=entropy, mask=mask)
    _check(entropy, mask)
    return entropy_torch.launch(entropy, mask, CERTAIN, _build)


def _check(entropy: Any, mask: Any) -> None:
    check_tokens(entropy=entropy, mask=mask)
    check_floating(entropy=entropy)


def _build(rows: Floats, bins: Floats, unused: int) -> Tally:
    """Rows of (tokens, non-finite ones under the mask, sum, certain ones); bins with ``unused`` and the tokens."""
    tokens, bad, total, low = rows.reshape(-1, 4).sum(axis=0).tolist()
    return Tally(
        counts={"entropy.tokens": int(tokens), "entropy.low": int(low), "nonfinite.entropy": int(bad)},
        sums={"entropy.sum": total},
        sketches={"entropy": ENTROPY_BINS.sketch(bins.tolist(), unused - int(tokens))},
    )
