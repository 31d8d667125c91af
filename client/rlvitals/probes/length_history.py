"""How answers ended over the last steps: one step alone holds too few to choose a limit by."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from rlvitals.probes.tally import Tally

STEPS = 50
_ENDS = ("length.ended", "length.cut")
_LONGEST = "length.longest_ended"


@dataclass(slots=True)
class LengthHistory:
    """The last ``steps`` tallies of `lengths.tally_lengths`, as far as the suggested limit needs them.

    With ranks that add up, each keeps its own.
    """

    steps: int = STEPS
    _past: deque[Tally] = field(default_factory=deque)

    def add(self, tally: Tally) -> Tally:
        """``tally`` (of one whole step) with the ends of the steps before it, and nothing else of theirs."""
        own = {name: sketch for name, sketch in tally.sketches.items() if name in _ENDS}
        if not own:
            return tally
        longest = {name: extreme for name, extreme in tally.maxima.items() if name == _LONGEST}
        self._past.append(Tally(sketches=own, maxima=longest))
        while len(self._past) > self.steps:
            self._past.popleft()
        ends = sum(self._past, Tally.zero())
        return replace(tally, sketches={**tally.sketches, **ends.sketches}, maxima={**tally.maxima, **ends.maxima})
