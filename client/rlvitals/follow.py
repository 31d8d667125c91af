"""Reads a journal back: frames become contract records, in order, while the writer may still be writing."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

from rlvitals.contract import codec
from rlvitals.contract.command import Command, CommandState, Outcome
from rlvitals.contract.report import Event, Extreme, Histogram, RunInfo, StepReport, Text
from rlvitals.record import (
    OVERHEAD_BYTES,
    PAYLOAD_BYTES_MAX,
    Frame,
    Kind,
    Scan,
    indices_of,
    read_extremes,
    read_step,
    scan,
)
from rlvitals.spool import Segment, journals, run_folder, segments

CHUNK_BYTES = 256 * 1024
Record: TypeAlias = StepReport | Text | Histogram | Event | Outcome
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A command that the journal says was taken at ``step``."""

    command: Command
    step: int


class Assembler:
    """Turns frames into records; keeps the names, the run and the parts of a step that go before it.

    ``live_names`` is the writer's own table, which is never behind what it has written.
    """

    def __init__(self, live_names: list[str | None] | None = None) -> None:
        self.run: RunInfo | None = None
        self.attempt = self.writer = ""
        self.names: list[str | None] = [] if live_names is None else live_names
        self._names_are_live = live_names is not None
        self.corrupt = 0
        self._missing: tuple[int, dict[str, str]] = (-1, {})
        self._extremes: tuple[int, dict[str, Extreme]] = (-1, {})

    def read(self, frame: Frame) -> Record | Taken | None:
        """The record of a frame; None for one that only prepares others, or that cannot be read (counted)."""
        reader = _READERS.get(frame.kind)
        try:
            return reader(self, frame) if reader else None
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, struct.error):
            self.corrupt += 1
            return None

    def schema(self, frame: Frame) -> None:
        facts = codec.loads(frame.payload)
        self.run = codec.decode(RunInfo, facts["run"])
        self.attempt, self.writer = str(facts["attempt"]), str(facts["writer"])
        if not self._names_are_live:
            self.names = [str(name) for name in facts["names"]]

    def more_names(self, frame: Frame) -> None:
        if self._names_are_live:
            return
        facts = codec.loads(frame.payload)
        first = int(facts["first"])
        self.names += [None] * (first - len(self.names))
        self.names[first:] = [str(name) for name in facts["names"]]

    def missing(self, frame: Frame) -> None:
        reasons = codec.loads(frame.payload)
        self._missing = frame.seq, {str(name): str(reason) for name, reason in reasons.items()}

    def extremes(self, frame: Frame) -> None:
        self._extremes = frame.seq, read_extremes(frame.payload, self.names)

    def step(self, frame: Frame) -> StepReport:
        step, time_s, bitmap, numbers = read_step(frame.payload)
        values: dict[str, float] = {}
        for index, number in zip(indices_of(bitmap), numbers, strict=True):
            name = self.names[index] if index < len(self.names) else None
            if name is None:
                self.corrupt += 1
            else:
                values[name] = number
        return StepReport(
            seq=frame.seq,
            step=step,
            time_s=time_s,
            values=values,
            missing=self._missing[1] if self._missing[0] == frame.seq else {},
            extremes=self._extremes[1] if self._extremes[0] == frame.seq else {},
        )


def _plain(kind: type[T]) -> Callable[[Assembler, Frame], T]:
    return lambda assembler, frame: codec.decode(kind, codec.loads(frame.payload))


_READERS: Mapping[int, Callable[[Assembler, Frame], Record | Taken | None]] = {
    Kind.SCHEMA: Assembler.schema,
    Kind.NAMES: Assembler.more_names,
    Kind.MISSING: Assembler.missing,
    Kind.EXTREMES: Assembler.extremes,
    Kind.STEP: Assembler.step,
    Kind.HISTOGRAM: _plain(Histogram),
    Kind.TEXT: _plain(Text),
    Kind.EVENT: _plain(Event),
    Kind.OUTCOME: _plain(Outcome),
    Kind.COMMAND: _plain(Taken),
}


@dataclass(frozen=True, slots=True)
class Item:
    """A record with the bytes that it takes in the journal."""

    record: Record | Taken | None
    seq: int
    size: int


class Follower:
    """Follows one journal's segments from just after ``after_seq``; each seq is handed out once, in rising order.

    ``live``: the writer may add to the last segment. ``memory``: frames that it holds while its disk fails.
    """

    def __init__(
        self,
        folder: Path,
        *,
        after_seq: int = 0,
        live: Callable[[], bool] = lambda: False,
        memory: Callable[[int], bytes] = lambda seq: b"",
        assembler: Assembler | None = None,
    ) -> None:
        self.folder, self.seq = folder, after_seq
        self.assembler = assembler or Assembler()
        self.torn = self.corrupt = self.lost = 0
        self._live, self._memory = live, memory
        self._fd = -1
        self._first = -1
        self._offset = 0
        self._ahead = b""

    def seek(self, after_seq: int) -> None:
        """Goes back (or on) to just after ``after_seq``, as far as segments are kept."""
        self.close()
        self.seq, self._first, self._offset = after_seq, -1, 0

    def read(self, limit: int) -> list[Item]:
        """Up to ``limit`` frames more, fewer at the journal's present end."""
        found: list[Item] = []
        while len(found) < limit:
            frames = self._from_disk(limit - len(found))
            if frames is None:
                found += self._keep(scan(self._memory(self.seq), ended=True).frames, limit - len(found))
                break
            found += self._keep(frames, limit)
        return found

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._ahead = b""

    def _keep(self, frames: list[Frame], limit: int) -> list[Item]:
        kept: list[Item] = []
        for frame in frames:
            if len(kept) == limit:
                break
            if frame.kind in _PART_OF_STEP:
                self.assembler.read(frame)
                continue
            if frame.seq <= self.seq:
                continue
            kept.append(Item(self.assembler.read(frame), frame.seq, frame.size))
            self.seq = frame.seq
        return kept

    def _from_disk(self, limit: int) -> list[Frame] | None:
        """The next frames on disk; an empty list means "went on to the next segment", None "nothing more now".

        What was read and not asked for yet is kept for the next call: each look at the disk is one more moment at
        which the training has to give the interpreter's lock away.
        """
        found = scan(self._ahead, ended=False, limit=limit)
        if found.frames:
            self._pass(found, self._ahead)
            return found.frames
        if self._fd < 0 and not self._open_next():
            return None
        newer = self._next_segment() is not None
        live = self._live() and not newer
        chunk = CHUNK_BYTES
        while True:
            data = os.pread(self._fd, chunk, self._offset)
            found = scan(data, ended=len(data) < chunk and not live, limit=limit)
            if found.used or len(data) < chunk or chunk > PAYLOAD_BYTES_MAX + OVERHEAD_BYTES:
                break
            chunk *= 8
        self._pass(found, data)
        if found.frames:
            return found.frames
        if not newer:
            return None
        self.close()
        return []

    def _pass(self, found: Scan, data: bytes) -> None:
        self._offset += found.used
        self._ahead = data[found.used :]
        self.torn, self.corrupt = self.torn + found.torn, self.corrupt + found.corrupt

    def _open_next(self) -> bool:
        ahead = self._next_segment()
        if ahead is None:
            return False
        self._fd = os.open(ahead.path, os.O_RDONLY)
        if ahead.first_seq > self.seq + 1:
            self.lost += ahead.first_seq - self.seq - 1
        self._first, self._offset = ahead.first_seq, 0
        return True

    def _next_segment(self) -> Segment | None:
        """The segment after the present one; at the start, the last one that may hold the next seq."""
        kept = segments(self.folder)
        if self._first >= 0:
            return next((s for s in kept if s.first_seq > self._first), None)
        early = [s for s in kept if s.first_seq <= self.seq + 1]
        return early[-1] if early else (kept[0] if kept else None)


_PART_OF_STEP = frozenset({Kind.SCHEMA, Kind.NAMES, Kind.MISSING, Kind.EXTREMES})


def commands_taken(spool: Path, run: str) -> dict[str, bool]:
    """Ids of all commands that any attempt of the run journalled → whether an outcome was journalled too."""
    found: dict[str, bool] = {}
    for record in _of_commands(spool, run):
        if isinstance(record, Taken):
            found.setdefault(record.command.id, False)
        else:
            found[record.command_id] = True
    return found


def commands_applied(spool: Path, run: str) -> list[Taken]:
    """What any attempt of the run took and did not refuse; of one without an outcome it may have been done."""
    found: dict[str, Taken] = {}
    for record in _of_commands(spool, run):
        if isinstance(record, Taken):
            found.setdefault(record.command.id, record)
        elif record.state is not CommandState.APPLIED:
            found.pop(record.command_id, None)
    return list(found.values())


def _of_commands(spool: Path, run: str) -> Iterator[Taken | Outcome]:
    """Of all the run's journals, those of one in their order."""
    base = run_folder(spool, run)
    for folder in (f for f in journals(spool) if f.parent == base):
        follower = Follower(folder)
        while items := follower.read(1000):
            yield from (item.record for item in items if isinstance(item.record, (Taken, Outcome)))
        follower.close()
