"""What may leave the disk: acknowledged segments by age and size; what nobody took only when the spool is full."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from rlvitals.spool import ACKED_FILE, LOCK_FILE, Lock, Segment, journals, read_acked, segments


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    kept_bytes: int
    kept_age_s: float
    spool_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A segment as retention sees it. ``records`` is how many are lost if it goes."""

    segment: Segment
    acked: bool
    records: int


def held(kept: list[Segment], stored_through: int, *, complete: bool) -> list[Held]:
    """Judges a journal's segments, oldest first; the last one of a journal that may grow is left out. Pure."""
    found = []
    for segment, after in pairwise(kept):
        acked = after.first_seq - 1 <= stored_through
        records = 0 if acked else after.first_seq - max(segment.first_seq, stored_through + 1)
        found.append(Held(segment=segment, acked=acked, records=records))
    if complete and kept:
        found.append(Held(segment=kept[-1], acked=True, records=0))
    return found


def choose(all_held: Iterable[Held], bounds: Retention, now_s: float) -> list[Held]:
    """The segments to delete, the oldest first. Pure."""
    by_age = sorted(all_held, key=lambda h: h.segment.modified_s)
    gone: list[Held] = []
    for acked, limit, age_s in ((True, bounds.kept_bytes, bounds.kept_age_s), (False, bounds.spool_bytes, None)):
        some = [h for h in by_age if h.acked is acked]
        total = sum(h.segment.size for h in some)
        for one in some:
            old = age_s is not None and now_s - one.segment.modified_s > age_s
            if old or total > limit:
                gone.append(one)
                total -= one.segment.size
    return gone


def tidy(spool: Path, own: Iterable[Path], bounds: Retention, now_s: float) -> int:
    """Deletes what the bounds say; touches own and dead journals only. Returns how many untaken records went."""
    mine = set(own)
    found: list[Held] = []
    for folder in journals(spool):
        if folder in mine or _is_dead(folder):
            acked = read_acked(folder)
            complete = acked.complete and folder not in mine
            found += held(segments(folder), acked.stored_through, complete=complete)
            if complete and not segments(folder):
                _remove_folder(folder)
    gone = choose(found, bounds, now_s)
    for one in gone:
        _ignoring_errors(lambda path=one.segment.path: path.unlink(missing_ok=True))  # type: ignore[misc]
    return sum(one.records for one in gone)


def _is_dead(folder: Path) -> bool:
    try:
        lock = Lock.take(folder)
    except OSError:
        return False
    if lock is None:
        return False
    lock.release()
    return True


def _remove_folder(folder: Path) -> None:
    for name in (ACKED_FILE, LOCK_FILE):
        _ignoring_errors(lambda path=folder / name: path.unlink(missing_ok=True))  # type: ignore[misc]
    _ignoring_errors(lambda: os.rmdir(folder))
    _ignoring_errors(lambda: os.rmdir(folder.parent))


def _ignoring_errors(action: Callable[[], None]) -> None:
    try:
        action()
    except OSError:
        return
