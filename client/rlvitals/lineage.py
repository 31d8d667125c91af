"""Which earlier attempts of its run a process answers for: what they did with a command, it can read or knows.

The service hands what it gave to one attempt only to another that says so here. Of any other nobody could know
whether the first one, of which nothing is heard, has carried it out.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection
from pathlib import Path

from rlvitals.journal import Writer
from rlvitals.spool import has_ended, journals, network_file_system, run_folder, segments

HEIR_OF_MAX = 64
_ALONE = re.compile(r"[0-9a-f]{16}")
"""The folder of an attempt that one process wrote; of several, one may still live elsewhere."""


class Lineage:
    """Attempts of this process share its mailbox. Any other must have ended on this machine since that started, so
    that the disk has all that was written, and its journal must be whole.
    """

    def __init__(self, spool: Path, *, mounts: Callable[[], str], booted_s: Callable[[], float]) -> None:
        self._spool, self._mounts, self._booted_s = spool, mounts, booted_s
        self._own: list[str] = []
        self._ended: dict[str, None] = {}

    def begin(self, writer: Writer) -> None:
        """This process goes on as this attempt."""
        if writer.writer == "main":
            self._own.append(writer.attempt)

    def look(self, run: str, own: Collection[Path]) -> bool:
        """Finds what has ended; True where there is more than before, whose commands are then to be read."""
        before, base = len(self._ended), run_folder(self._spool, run)
        known = {*self._ended, *self._own}
        found = [f for f in journals(self._spool) if f.parent == base and f not in own]
        new = [f for f in found if _ALONE.fullmatch(f.name) and f.name not in known]
        if new and not network_file_system(self._spool.absolute(), self._mounts()):
            booted_s = self._booted_s()
            self._ended |= dict.fromkeys(f.name for f in new if _is_whole(f, booted_s) and has_ended(f))
        return len(self._ended) > before

    def before(self, writer: Writer) -> tuple[str, ...]:
        """The attempts that ``writer`` answers for beside its own, the newest `HEIR_OF_MAX`."""
        if writer.writer != "main":
            return ()
        others = [attempt for attempt in (*self._ended, *self._own) if attempt != writer.attempt]
        return tuple(others[-HEIR_OF_MAX:])


def booted_s() -> float:
    """When the machine started, by the clock that files are dated with."""
    return time.time() - time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _is_whole(folder: Path, since_s: float) -> bool:
    kept = segments(folder)
    return bool(kept) and kept[0].first_seq == 1 and kept[-1].modified_s >= since_s
