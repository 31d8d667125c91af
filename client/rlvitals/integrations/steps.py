"""What one optimizer step has shown, and a step on its way out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rlvitals.integrations.samples import Sample, Shelf
from rlvitals.probes.reduction import Pending, Reduction, on_host
from rlvitals.probes.tally import Tally


@dataclass(slots=True)
class Step:
    """What one optimizer step has shown so far. ``on_device`` waits for its one copy to the host.

    ``entropy_shown`` where the entropy of each token was seen: what the trainer logs of it is not asked then.
    """

    tally: Tally = field(default_factory=Tally.zero)
    on_device: list[Reduction] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    micro_batches: int = 0
    generated: bool = False
    entropy_shown: bool = False
    learning_rate: float | None = None
    began_s: float = field(default_factory=time.perf_counter)

    def add(self, found: Sequence[Reduction]) -> None:
        """On a CPU the sums are taken on the spot; on a device they stay there until the step ends."""
        for reduction in found:
            if on_host(reduction.parts[0]):
                self.tally += reduction.tally()
            else:
                self.on_device.append(reduction)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A step on its way out: its scalars, and a tally that may still lack what is on the device.

    ``shelf`` has the completions that it was trained on, of which those numbered in ``kept`` were told.
    """

    step: int
    values: Mapping[str, float]
    tally: Tally
    pending: Pending | None
    shelf: Shelf | None = None
    kept: frozenset[int] = frozenset()
