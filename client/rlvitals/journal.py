"""The append-only journal of one writer: what `Journal.append` has returned from survives a ``kill -9``.

A folder holds one writer's segments, each named by the first seq in it and opened by a schema record (run,
attempt, writer, names). One report is one ``os.write`` on an O_APPEND descriptor; nothing is ever synced or waited
for. When the disk fails, a bounded queue in memory takes over until `recover` finds it well again.
"""

from __future__ import annotations

import errno
import os
import struct
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from rlvitals import notices
from rlvitals.contract import codec
from rlvitals.contract.report import Extreme, RunInfo
from rlvitals.drops import Drops
from rlvitals.names import NAME_CHARS_MAX, NAMES_MAX, Names, Plan
from rlvitals.record import Kind, extremes_payload, frame, missing_payload
from rlvitals.spool import Lock, make_private_folder, segment_path

SEGMENT_BYTES = 8 * 1024 * 1024
MEMORY_BYTES = 32 * 1024 * 1024
RECOVER_CHUNK_BYTES = 256 * 1024
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Whose journal this is: (run, attempt, writer) make every record's seq unique."""

    run: RunInfo
    attempt: str
    writer: str = "main"

    @property
    def folder(self) -> str:
        """The name of its journal's folder: other writers of the attempt may share the spool."""
        return self.attempt if self.writer == "main" else f"{self.attempt}.{self.writer}"


@dataclass(slots=True)
class _Kept:
    seq: int
    data: bytes


class Journal:
    """Thread-safe. ``own`` names metrics of ours whose values open every step record."""

    def __init__(
        self,
        folder: Path,
        writer: Writer,
        *,
        own: Sequence[str] = (),
        drops: Drops | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self.folder, self.writer = folder, writer
        self.names = Names(own)
        self.drops = drops or Drops()
        self.seq = 0
        self.appended_bytes = self.acked_bytes = 0
        self.forgotten = 0
        self.well = True
        self.closed = False
        self._plan: Plan | None = None
        self._missing: tuple[dict[str, str], bytes] = ({}, b"")
        self._segment_bytes, self._memory_bytes = segment_bytes, memory_bytes
        self._lock = threading.RLock()
        self._busy = False
        self._later: deque[Callable[[], object]] = deque(maxlen=1024)
        self._memory: deque[_Kept] = deque()
        self._remembered_bytes = 0
        self._fd = -1
        self._size = 0
        self._claim: Lock | None = None

    def step(
        self,
        step: int,
        time_s: float,
        values: Mapping[str, float],
        own: tuple[float, ...] = (),
        *,
        missing: Mapping[str, str] | None = None,
        extremes: Mapping[str, Extreme] | None = None,
    ) -> None:
        """Appends one step. ``values`` are ints and floats; raises struct.error for an int beyond a double."""
        with self._lock:
            if self._busy:  # a signal handler or finalizer reports while this very thread is writing
                again = dict(values)
                self._later.append(lambda: self.step(step, time_s, again, own, missing=missing, extremes=extremes))
                return
            self._busy = True
            try:
                plan = self._plan
                if plan is None or plan.names != tuple(values) or missing or extremes:
                    self._step_in_full(step, time_s, values, own, missing, extremes)
                else:
                    seq = self.seq + 1
                    body = plan.pack(plan.head, seq, step, time_s, plan.middle, *own, *values.values())
                    self.seq = seq
                    self._write(body + crc32(body).to_bytes(4, "little"), seq)
            finally:
                self._busy = False
        if self._later:
            self._catch_up()

    def append(self, kind: Kind, payload: Callable[[int], bytes]) -> int:
        """Appends one record of any other kind; ``payload`` gets its seq. Returns the seq (0: put off)."""
        with self._lock:
            if self._busy:
                self._later.append(lambda: self.append(kind, payload))
                return 0
            self._busy = True
            try:
                seq = self.seq + 1
                data = frame(kind, seq, payload(seq))
                self.seq = seq
                self._write(data, seq)
            finally:
                self._busy = False
        if self._later:
            self._catch_up()
        return seq

    def describe(self, run: RunInfo) -> None:
        """Journals changed facts about the run."""
        with self._lock:
            self.writer = Writer(run=run, attempt=self.writer.attempt, writer=self.writer.writer)
            if self.seq and not self._busy:
                self._ahead_of_next(self._schema())

    def recover(self, stored_through: int = 0) -> None:
        """Moves what waits in memory to the disk, piece by piece; notices a vanished folder. Sender's thread."""
        self._notice_vanished()
        with self._lock:
            self._forget_through(stored_through)
            self.well = self.well or not self._memory
        while self._memory:
            with self._lock:
                if not self._flush_some():
                    return

    def memory_after(self, seq: int) -> bytes:
        """The frames that are only in memory and later than ``seq``."""
        with self._lock:
            return b"".join(kept.data for kept in self._memory if kept.seq > seq)

    def close(self) -> None:
        """Closes the files and gives up the claim, so that another process may upload what is left."""
        with self._lock:
            self.closed = True
            self._release()

    def abandon(self) -> None:
        """In a forked child: drops the descriptors without touching what the parent owns."""
        self._lock = threading.RLock()
        self.closed = True
        self._release()

    # -- the rest runs under the lock --------------------------------------------------------------------------

    def _catch_up(self) -> None:
        while self._later:
            self._later.popleft()()

    def _step_in_full(
        self,
        step: int,
        time_s: float,
        values: Mapping[str, float],
        own: tuple[float, ...],
        missing: Mapping[str, str] | None,
        extremes: Mapping[str, Extreme] | None,
    ) -> None:
        """A step with new names, other names than the last one, or with missing and extremes."""
        before = self._before(missing, extremes) if missing or extremes else b""
        plan = self.names.plan(tuple(values))
        if plan is None:
            values, added = self._admit(values)
            before += added
            plan = self.names.plan(tuple(values)) or self.names.make_plan(tuple(values))
        numbers = tuple(values.values())
        if plan.order is None:
            self._plan = plan
        else:
            numbers = tuple(numbers[i] for i in plan.order)
        seq = self.seq + 1
        try:
            body = plan.pack(plan.head, seq, step, time_s, plan.middle, *own, *numbers)
        except struct.error:
            if before:  # new names must not be lost with the step
                self._ahead_of_next(before)
            raise
        self.seq = seq
        self._write(before + body + crc32(body).to_bytes(4, "little"), seq)

    def _before(self, missing: Mapping[str, str] | None, extremes: Mapping[str, Extreme] | None) -> bytes:
        """Missing and extremes carry the seq of their step and go ahead of it in the same write."""
        seq, parts = self.seq + 1, []
        if missing:
            if missing != self._missing[0]:  # mostly the same as at the last step
                self._missing = dict(missing), missing_payload(missing)
            parts.append(frame(Kind.MISSING, seq, self._missing[1]))
        if extremes:
            new, refused = self.names.admit(extremes)
            self._count_refused(refused)
            parts.append(self._names_frame(new))
            parts.append(frame(Kind.EXTREMES, seq, extremes_payload(extremes, self.names.index)))
        return b"".join(parts)

    def _admit(self, values: Mapping[str, float]) -> tuple[Mapping[str, float], bytes]:
        theirs = [name for name in values if name not in self.names.own]
        new, refused = self.names.admit(theirs)
        self._count_refused(refused)
        kept = {name: values[name] for name in theirs if name not in refused}
        return kept, self._names_frame(new)

    def _count_refused(self, refused: Sequence[object]) -> None:
        if refused:
            self.drops.add("name", len(refused))
            notices.once(
                "name",
                f"metric names are at most {NAME_CHARS_MAX} characters of text, and {NAMES_MAX} a run: "
                f"left out {str(refused[:3])[:600]}",
            )

    def _names_frame(self, new: Sequence[str]) -> bytes:
        if not new:
            return b""
        return frame(Kind.NAMES, 0, codec.dumps({"first": self.names.index[new[0]], "names": list(new)}))

    def _schema(self) -> bytes:
        writer = self.writer
        facts = {"run": writer.run, "attempt": writer.attempt, "writer": writer.writer, "names": self.names.table}
        return frame(Kind.SCHEMA, 0, codec.dumps(facts))

    def _ahead_of_next(self, data: bytes) -> None:
        """A segment is called after its first record: what has none of its own belongs to the one that comes."""
        self._write(data, self.seq + 1)

    def _write(self, data: bytes, seq: int) -> None:
        self.appended_bytes += len(data)
        if self._memory or not self.well or not self._put(data, seq):
            self._remember(data, seq)

    def _put(self, data: bytes, seq: int) -> bool:
        """One write to the open segment, or to a new one that starts with its schema. False: the disk failed."""
        try:
            if self._fd < 0:
                data = self._open(seq) + data
            written = os.write(self._fd, data)
            if written != len(data):
                os.ftruncate(self._fd, self._size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self._fail(error)
            return False
        self._size += written
        if self._size >= self._segment_bytes:
            self._shut()
        return True

    def _open(self, seq: int) -> bytes:
        make_private_folder(self.folder.parent)
        make_private_folder(self.folder)
        if self._claim is None:
            self._claim = Lock.take(self.folder)
        self._fd = os.open(
            segment_path(self.folder, seq), os.O_WRONLY | os.O_CREAT | os.O_APPEND | _NO_FOLLOW, 0o600
        )
        self._size = os.fstat(self._fd).st_size
        return self._schema()

    def _fail(self, error: OSError) -> None:
        self.well = False
        self._shut()
        limit_mb = self._memory_bytes // 2**20
        notices.once(
            "spool",
            f"cannot write the spool {self.folder} ({error}): up to {limit_mb} MB are kept in memory instead",
        )

    def _remember(self, data: bytes, seq: int) -> None:
        self._memory.append(_Kept(seq, data))
        self._remembered_bytes += len(data)
        while self._remembered_bytes > self._memory_bytes and len(self._memory) > 1:
            self._remembered_bytes -= len(self._memory.popleft().data)
            self.drops.add("memory full")
            self.forgotten += 1

    def _forget_through(self, seq: int) -> None:
        while self._memory and self._memory[0].seq <= seq:
            self._remembered_bytes -= len(self._memory.popleft().data)

    def _flush_some(self) -> bool:
        parts: list[bytes] = []
        size = 0
        for kept in self._memory:
            parts.append(kept.data)
            size += len(kept.data)
            if size >= RECOVER_CHUNK_BYTES:
                break
        first = self._memory[0].seq
        if not self._put(b"".join(parts), first):
            return False
        for _ in parts:
            self._remembered_bytes -= len(self._memory.popleft().data)
        if not self.well:
            self.well = True
            notices.again("spool")
        return True

    def _notice_vanished(self) -> None:
        with self._lock:
            if self._fd >= 0 and os.fstat(self._fd).st_nlink == 0:
                self._release()
                notices.once("vanished", f"the spool {self.folder} was deleted while in use; it is made anew")

    def _shut(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _release(self) -> None:
        self._shut()
        if self._claim is not None:
            self._claim.release()
            self._claim = None
