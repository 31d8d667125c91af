"""One journal on its way to the service: what was read, sent and acknowledged."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import replace
from pathlib import Path

from rlvitals import notices
from rlvitals.contract.command import Outcome
from rlvitals.contract.report import Event, Heartbeat, Histogram, Receipt, ReportBatch, RunInfo, StepReport, Text
from rlvitals.drops import Drops
from rlvitals.follow import Assembler, Follower, Item
from rlvitals.journal import Journal
from rlvitals.spool import Acked, Lock, read_acked, segments, write_acked

BATCH_BYTES = 512 * 1024
SLICE = 10


class Lane:
    """``journal`` is given where this process is the writer; otherwise ``lock`` says that the writer is dead."""

    def __init__(
        self,
        folder: Path,
        drops: Drops,
        url: str = "",
        *,
        journal: Journal | None = None,
        lock: Lock | None = None,
    ) -> None:
        self.folder, self.journal, self.lock = folder, journal, lock
        self.retired = journal is None
        self.acked = read_acked(folder) if journal is None else Acked()
        self.sent_through = self.acked.stored_through
        self.window: deque[Item] = deque()
        self.run_told: RunInfo | None = None
        self._drops, self._url = drops, url
        self._counted = [0, 0, 0]
        self._follower = self._new_follower()

    def fill(self, limit: int) -> None:
        """Reads on until ``limit`` records wait to be sent."""
        while len(self.window) < limit:
            more = self._follower.read(min(SLICE, limit - len(self.window)))
            if not more:
                break
            self.window.extend(more)
            time.sleep(0)  # gives the interpreter's lock to the training thread if that waits for it
        self._count_damage()
        while self.window and not _is_sent(self.window[0]):
            self._done(self.window.popleft())
        if self.journal is not None:
            appended = self.journal.appended_bytes
            if not self.window and self._follower.seq >= self.journal.seq:
                self.journal.acked_bytes = appended  # schema records have no seq of their own to be counted by

    def batch(self, limit: int, heartbeat: Heartbeat | None) -> tuple[ReportBatch, int] | None:
        """Up to ``limit`` records (and 512 KiB) as a batch, with the number of window items in it."""
        run, attempt, writer = self._who()
        if run is None:
            return None
        taken: list[Item] = []
        size = 0
        for item in self.window:
            if len(taken) >= limit or (taken and size + item.size > BATCH_BYTES):
                break
            taken.append(item)
            size += item.size
        self.sent_through = max(self.sent_through, taken[-1].seq if taken else 0)
        self.run_told = run
        return _assemble(run, attempt, writer, taken, heartbeat, self.acked.epoch), len(taken)

    def settle(self, receipt: Receipt, count: int) -> bool:
        """Takes note of a receipt for the first ``count`` items; False if it is of no use."""
        if self.acked.epoch and receipt.epoch != self.acked.epoch:
            notices.once(
                "epoch", "the service's store was restored from elsewhere: sending again what is still kept"
            )
            self._rewind(receipt)
            return True
        if receipt.stored_through > self._sent_at_most(receipt.stored_through):
            notices.once("ack", f"ignored an acknowledgement above what was sent ({receipt.stored_through})")
            return False
        before = len(self.window)
        wanted = self.window[count - 1].seq if count else 0
        while self.window and self.window[0].seq <= receipt.stored_through:
            self._done(self.window.popleft())
        through = max(self.acked.stored_through, min(receipt.stored_through, self._follower.seq))
        self._note(receipt.epoch, through)
        return not count or before > len(self.window) or wanted <= receipt.stored_through

    def skip_one(self, reason: str) -> None:
        """Gives up one record that the service can never take."""
        if self.window:
            self._drops.add(reason)
            self._done(self.window.popleft())

    def finished(self) -> bool:
        """Nothing is left of a journal whose writer is dead or has moved on."""
        return self.retired and not self.window and not (self.journal and self._follower.seq < self.journal.seq)

    def drained_through(self, seq: int) -> bool:
        """Everything up to ``seq`` was read and acknowledged (or can never be sent)."""
        return self._follower.seq >= seq and not (self.window and self.window[0].seq <= seq)

    @property
    def known(self) -> bool:
        """False where no schema record could be read: nobody can say whose records these are."""
        return self._who()[0] is not None

    @property
    def run_changed(self) -> bool:
        """`Journal.describe` said more than the service was told."""
        return (
            self.journal is not None and self.run_told is not None and self.run_told is not self.journal.writer.run
        )

    def persist(self, *, complete: bool = False) -> None:
        """Writes the acknowledged position beside the segments; a failing disk is no reason to stop."""
        try:
            write_acked(self.folder, replace(self.acked, complete=complete))
        except OSError:
            self._drops.reasons["position not saved"] += 1

    def close(self) -> None:
        self._follower.close()
        if self.lock is not None:
            self.lock.release()
            self.lock = None

    def _new_follower(self) -> Follower:
        journal = self.journal
        if journal is None:
            return Follower(self.folder, after_seq=self.acked.stored_through)
        return Follower(
            self.folder,
            after_seq=self.acked.stored_through,
            live=lambda: not journal.closed,
            memory=journal.memory_after,
            assembler=Assembler(journal.names.table),
        )

    def _who(self) -> tuple[RunInfo | None, str, str]:
        if self.journal is not None:
            writer = self.journal.writer
            return writer.run, writer.attempt, writer.writer
        read = self._follower.assembler
        return read.run, read.attempt, read.writer

    def _sent_at_most(self, claimed: int) -> int:
        """A dead writer may have sent all that its journal holds, and from memory what a full disk never took."""
        return self.sent_through if self.journal is not None else max(self.sent_through, claimed)

    def _rewind(self, receipt: Receipt) -> None:
        through = max(0, min(receipt.stored_through, max(self.sent_through, self._follower.seq)))
        self.window.clear()
        self._follower.seek(through)
        if self.journal is not None:
            kept_bytes = sum(s.size for s in segments(self.folder) if s.first_seq > through)
            self.journal.acked_bytes = max(0, self.journal.appended_bytes - kept_bytes)
        self._note(receipt.epoch, through)

    def _note(self, epoch: str, stored_through: int) -> None:
        acked = Acked(url=self._url, epoch=epoch, stored_through=stored_through)
        if acked != self.acked:
            self.acked = acked
            self.persist()

    def _done(self, item: Item) -> None:
        if self.journal is not None:
            self.journal.acked_bytes = min(self.journal.appended_bytes, self.journal.acked_bytes + item.size)

    def _count_damage(self) -> None:
        follower = self._follower
        forgotten = self.journal.forgotten if self.journal is not None else 0
        now = [follower.torn, follower.corrupt + follower.assembler.corrupt, max(0, follower.lost - forgotten)]
        for reason, seen, was in zip(("torn", "corrupt", "spool full"), now, self._counted, strict=True):
            self._drops.add(reason, seen - was)
        self._counted = now


def _is_sent(item: Item) -> bool:
    return isinstance(item.record, (StepReport, Text, Histogram, Event, Outcome))


def _assemble(
    run: RunInfo, attempt: str, writer: str, items: list[Item], heartbeat: Heartbeat | None, epoch: str
) -> ReportBatch:
    records = [item.record for item in items]
    return ReportBatch(
        run=run,
        attempt=attempt,
        writer=writer,
        epoch=epoch,
        steps=tuple(r for r in records if isinstance(r, StepReport)),
        texts=tuple(r for r in records if isinstance(r, Text)),
        histograms=tuple(r for r in records if isinstance(r, Histogram)),
        events=tuple(r for r in records if isinstance(r, Event)),
        outcomes=tuple(r for r in records if isinstance(r, Outcome)),
        heartbeat=heartbeat,
    )
