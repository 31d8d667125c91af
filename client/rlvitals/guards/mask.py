"""A loss mask that trains on what the policy did not choose, above all a turn end that a rollout appended."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlvitals.contract.report import Extreme
from rlvitals.guard import Guard
from rlvitals.probes.arguments import ProbeArgumentError, ShapeError, written
from rlvitals.probes.arrays import Flags, Whole, flags, floats, whole
from rlvitals.probes.ledger import LEDGER
from rlvitals.probes.tally import Tally

FLOOR = -20.0
"""Nats: a policy samples a token of such a log-prob once in half a billion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForcedTokens:
    """How many there are, and the first of them."""

    count: int
    token_id: int
    sample: int
    position: int

    def __str__(self) -> str:
        return (
            f"{self.count} tokens that the policy did not choose are under the loss mask, the first of them id "
            f"{self.token_id} at position {self.position} of sample {self.sample}: mask what the rollout appends"
        )


class ForcedTokensError(ValueError):
    """The loss mask does not cover tokens that were forced on the policy; ``found`` says which."""

    def __init__(self, found: ForcedTokens) -> None:
        super().__init__(found)
        self.found = found

    def __str__(self) -> str:
        return str(self.found)


def check_loss_mask(
    ids: Any,
    mask: Any,
    *,
    chosen: Any = None,
    logp: Any = None,
    turn_ends: Collection[int] = (),
    floor: float = FLOOR,
    raises: bool = True,
) -> ForcedTokens | None:
    """Refuses a batch whose loss mask trains on tokens that were forced on the policy; None where there are none.

    ``ids`` and ``mask`` (B, T). With ``chosen`` (B, T), non-zero where the policy chose the id, the answer is
    exact. Without it ``logp`` (B, T), the policy's log-probs, tell: an id of ``turn_ends`` under the mask below
    ``floor`` nats was hardly sampled. Copies of the batch go to the host, so on a GPU this waits.

    Raises `ForcedTokensError`, and `ProbeArgumentError` where it cannot tell; with ``raises=False`` neither: it
    only reports.
    """
    if raises:
        found, forced = _find(ids, mask, chosen, logp, turn_ends, floor)
        _tell(found, forced)
        if found is not None:
            raise ForcedTokensError(found)
        return None
    with Guard("checking the loss mask"):
        found, forced = _find(ids, mask, chosen, logp, turn_ends, floor)
        _tell(found, forced)
        return found
    return None


def _find(
    ids: Any, mask: Any, chosen: Any, logp: Any, turn_ends: Collection[int], floor: float
) -> tuple[ForcedTokens | None, int]:
    numbers, trained = whole(ids), flags(mask)
    forced = trained & _not_chosen(numbers, chosen, logp, turn_ends, floor)
    count = int(forced.sum())
    if not count:
        return None, 0
    sample, position = (int(place) for place in np.unravel_index(int(forced.argmax()), forced.shape))
    first = ForcedTokens(count=count, token_id=int(numbers[sample, position]), sample=sample, position=position)
    return first, count


def _not_chosen(ids: Whole, chosen: Any, logp: Any, turn_ends: Collection[int], floor: float) -> Flags:
    if chosen is not None:
        own = flags(chosen)
        _check_shape("chosen", own.shape, ids.shape)
        return ~own
    if logp is None or not turn_ends:
        raise ProbeArgumentError("chosen", "who chose each token, or logp and turn_ends", "neither")
    likely = floats(logp)
    _check_shape("logp", likely.shape, ids.shape)
    # NaN is below nothing: it is another fault
    hardly: Flags = np.isin(ids, list(turn_ends)) & (likely < floor)
    return hardly


def _check_shape(name: str, got: tuple[int, ...], expected: tuple[int, ...]) -> None:
    if got != expected or len(expected) != 2:
        raise ShapeError(name, written(expected), written(got))


def _tell(found: ForcedTokens | None, count: int) -> None:
    with Guard("telling of forced tokens"):
        tally = Tally(counts={"guard.forced": count})
        if found is not None:
            place = Extreme(
                value=1.0,
                token_id=found.token_id,
                sample=found.sample,
                position=found.position,
                masked=False,
            )
            tally += Tally(firsts={"guard.forced": place})
        LEDGER.put(tally)
