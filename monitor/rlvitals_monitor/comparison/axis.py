"""What an axis counts for the runs at hand: for all of them the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from rlvitals.contract.comparison import Axis
from rlvitals_monitor.comparison.scale import STEPS, Scale
from rlvitals_monitor.store import scales
from rlvitals_monitor.store.scales import Told

Source = tuple[str, Callable[[Connection, int], Told]]

_SOURCES: Mapping[Axis, tuple[Source, ...]] = {
    Axis.TOKENS: (
        ("tokens by the trainer's count", lambda c, n: scales.read_count(c, n, "progress.tokens")),
        ("tokens under the loss mask", lambda c, n: scales.read_sum(c, n, "policy.loss_tokens")),
    ),
    Axis.SAMPLES: (("completions", lambda c, n: scales.read_sum(c, n, "length.completions")),),
    Axis.TIME: (("seconds since an attempt's first report", scales.read_elapsed),),
}
"""The first that all runs have is taken, since two counts of unlike things are no one axis."""
_NEEDS = {
    Axis.TOKENS: "it tells neither progress.tokens nor policy.loss_tokens",
    Axis.SAMPLES: "it does not tell length.completions",
    Axis.TIME: "it has no step yet",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruler:
    """``scales`` by the attempt's number; where there is none, ``fault`` says why."""

    axis: Axis
    counted: str
    scales: Mapping[int, Scale]
    read: Callable[[Connection, int], Told] | None = None

    def scale(self, connection: Connection, attempt: int) -> Scale:
        """Of a compared attempt or of any other."""
        known = self.scales.get(attempt)
        if known is not None:
            return known
        return STEPS if self.read is None else Scale.of(self.read(connection, attempt))

    def fault(self, attempt: int) -> str:
        return _NEEDS.get(self.axis, "") if self.scales[attempt].empty else ""


def lay(connection: Connection, axis: Axis, attempts: Iterable[int]) -> Ruler:
    numbers = list(attempts)
    best: Ruler | None = None
    for counted, read in _SOURCES.get(axis, ()):
        laid = {number: Scale.of(read(connection, number)) for number in numbers}
        ruler = Ruler(axis=axis, counted=counted, scales=laid, read=read)
        if not any(scale.empty for scale in laid.values()):
            return ruler
        if best is None or _placed(ruler) > _placed(best):
            best = ruler
    return best or Ruler(axis=axis, counted="optimizer steps", scales=dict.fromkeys(numbers, STEPS))


def _placed(ruler: Ruler) -> int:
    return sum(not scale.empty for scale in ruler.scales.values())
