"""What happened in this process beside the hooks: guards write it down, the end of the step takes it.

One for the process, since a guard is made before there is a trainer to tell. Where nobody takes it, only its
sums grow.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Protocol

from rlvitals.probes.tally import Tally

if TYPE_CHECKING:
    from rlvitals.probes.reduction import Pending, Reduction

WAITING_MAX = 64


class Source(Protocol):
    """Counts by itself, on a device perhaps, until it is asked."""

    def counted(self) -> Reduction | None:
        """What came since the last time; None for nothing."""
        ...


class Ledger:
    """Thread-safe. ``take`` never waits for a device: what is not ready yet is told a step later."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tally = Tally.zero()
        self._waiting: deque[Pending] = deque(maxlen=WAITING_MAX)
        self._sources: weakref.WeakSet[Source] = weakref.WeakSet()

    def put(self, tally: Tally) -> None:
        with self._lock:
            self._tally += tally

    def launch(self, reduction: Reduction) -> None:
        """On a CPU it is counted on the spot, on a device when that has got there."""
        from rlvitals.probes.reduction import Pending

        if any(part.is_cuda for part in reduction.parts):
            self._waiting.append(Pending([reduction]))
        else:
            self.put(reduction.tally())

    def watch(self, source: Source) -> None:
        """Asks ``source`` at each `take`, as long as it lives."""
        self._sources.add(source)

    def take(self) -> Tally:
        """All that is known by now and was not taken before."""
        for source in list(self._sources):
            found = source.counted()
            if found is not None:
                self.launch(found)
        while self._waiting and self._waiting[0].ready():
            self.put(self._waiting.popleft().tally())
        with self._lock:
            taken, self._tally = self._tally, Tally.zero()
        return taken


LEDGER = Ledger()
