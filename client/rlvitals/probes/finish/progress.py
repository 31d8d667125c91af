"""Where a step's time goes, and the GPU's memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlvitals.probes.finish.tables import Family, Finding

if TYPE_CHECKING:
    from rlvitals.probes.tally import Tally

_PHASE = "phase."
_MEMORY = ("progress.gpu_memory_bytes", "progress.gpu_memory_reserved_bytes", "progress.gpu_memory_peak_bytes")


def _progress(tally: Tally) -> Iterator[Finding]:
    for key, seconds in tally.maxima.items():
        if key.startswith(_PHASE):
            yield f"progress.phase_{key[len(_PHASE) :]}_s", seconds.value
    for name in _MEMORY:
        if name in tally.maxima:
            yield name, tally.maxima[name].value


PROGRESS = Family(findings=_progress)
