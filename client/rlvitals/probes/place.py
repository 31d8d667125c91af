"""Where in a batch a value was seen: a flat index back to sample and position."""

from __future__ import annotations

from dataclasses import dataclass

from rlvitals.contract.report import Extreme
from rlvitals.probes.arrays import Floats


@dataclass(frozen=True, slots=True)
class Place:
    """``width`` is T of (B, T); ``sample_offset`` is added to rows."""

    width: int
    sample_offset: int

    def extreme(self, candidates: Floats) -> Extreme:
        """The largest of ``candidates``, rows of (quantity, flat index, token id or -1), the first of equals.

        Candidates are taken under the loss mask, so what is named is trained on: ``masked`` is False.
        """
        quantity, index, token = candidates[int(candidates[:, 0].argmax())].tolist()
        row, position = divmod(int(index), max(self.width, 1))
        return Extreme(
            value=quantity,
            token_id=int(token) if token >= 0 else None,
            position=position,
            sample=row + self.sample_offset,
            masked=False,
        )
