"""Tokens that the policy did not choose and that the loss trains on all the same.

What a tool, the environment or the template writes is no action of the policy. Under the loss mask it is pushed up
or down by advantages that it did not earn, every time it is written, without end: the classic case is the end of
turn that a rollout appends after a tool call. Nothing here is a guess: ``chosen`` says who wrote a token.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rlvitals.probes.arguments import check_ids, check_tokens
from rlvitals.probes.arrays import Floats, is_tensor
from rlvitals.probes.finish.policy import FORCED, NOT_TOLD
from rlvitals.probes.id_sums import IdSums
from rlvitals.probes.place import Place
from rlvitals.probes.tally import Tally
from rlvitals.probes.uncompiled import uncompiled

if TYPE_CHECKING:
    from torch import Tensor

    from rlvitals.probes.reduction import Reduction

METRICS = (FORCED,)


def tally_forced(chosen: Any, mask: Any, ids: Any, *, sample_offset: int = 0) -> Tally:
    """Tallies policy.forced_loss_tokens, of tensors (on a GPU this waits) or of arrays; see `measure_forced`.

    Without ``chosen`` it is missing.
    """
    if chosen is None:
        return Tally.absent(METRICS, NOT_TOLD)
    if is_tensor(mask):
        return measure_forced(chosen, mask, ids, sample_offset=sample_offset).tally()
    from rlvitals.probes import pulls_numpy

    _check(chosen, mask, ids)
    return _build(*pulls_numpy.forced(chosen, mask, ids), place=Place(mask.shape[1], sample_offset))


@uncompiled
def measure_forced(
    chosen: Tensor, mask: Tensor, ids: Tensor, *, sample_offset: int = 0, vocabulary: int | None = None
) -> Reduction:
    """Launches the counts and returns at once.

    All (B, T) on one device: ``chosen`` non-zero where the policy chose the id, ``mask`` the loss mask (non-zero =
    trained on). ``sample_offset`` is added to rows; ``vocabulary`` is a hint of how many ids there are.

    Raises `ProbeArgumentError` naming the argument of a wrong shape, device or dtype.
    """
    from rlvitals.probes import pulls_torch
    from rlvitals.probes.nested import dense

    chosen, mask, ids = dense(chosen=chosen, mask=mask, ids=ids)
    _check(chosen, mask, ids)
    build = partial(_build, place=Place(mask.shape[1], sample_offset))
    return pulls_torch.forced(chosen, mask, ids, vocabulary, build)


def _check(chosen: Any, mask: Any, ids: Any) -> None:
    check_tokens(chosen=chosen, mask=mask, ids=ids)
    check_ids("ids", ids)


def _build(found: Floats, by_id: IdSums, *, place: Place) -> Tally:
    rows = found.reshape(-1, 3)
    count = int(rows[:, 0].sum())
    seen = rows[rows[:, 0] > 0]
    return Tally(
        counts={"policy.forced": count},
        firsts={"policy.forced": replace(place.extreme(seen[:1]), value=1.0)} if count else {},
        by_id={"policy.forced": by_id},
    )
