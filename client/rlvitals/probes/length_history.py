"""How answers ended over the last steps: one step alone holds too few to choose a limit by."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rlvitals.probes.tally import Tally

STEPS = 50
_ENDS = ("length.ended", "length.cut")
_LONGEST = "length.longest_ended"


@dataclass(slots=True)
class LengthHistory:
    """The last ``steps`` tallies of `lengths.tally_lengths`, as far as the suggested limit needs them.

    With ranks that add up, each keeps its own. A window of sums by two stacks: a step costs the same however long
    the window is.
    """

    steps: int = STEPS
    # sums of the older steps, each with all that came after it in the stack; the newer steps; and their sum
    _older: list[Tally] = field(default_factory=list)
    _newer: list[Tally] = field(default_factory=list)
    _newer_sum: Tally = field(default_factory=Tally.zero)

    def add(self, tally: Tally) -> Tally:
        """``tally`` (of one whole step) with the ends of the steps before it, and nothing else of theirs."""
        own = {name: sketch for name, sketch in tally.sketches.items() if name in _ENDS}
        if not own:
            return tally
        longest = {name: extreme for name, extreme in tally.maxima.items() if name == _LONGEST}
        step = Tally(sketches=own, maxima=longest)
        self._newer.append(step)
        self._newer_sum += step
        if len(self._older) + len(self._newer) > self.steps:
            self._drop_oldest()
        ends = self._older[-1] + self._newer_sum if self._older else self._newer_sum
        return replace(tally, sketches={**tally.sketches, **ends.sketches}, maxima={**tally.maxima, **ends.maxima})

    def _drop_oldest(self) -> None:
        if not self._older:
            total = Tally.zero()
            while self._newer:
                total += self._newer.pop()
                self._older.append(total)
            self._newer_sum = Tally.zero()
        self._older.pop()
