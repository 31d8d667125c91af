"""The network is the journal's tail: a daemon thread that follows the journals, posts batches and takes receipts.

`Sender.turn` does one round and says when the next one is due; the thread only calls it. It spends at most a
tenth of a core while it catches up, so that the training thread hardly waits for the interpreter's lock.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from rlvitals import notices
from rlvitals.contract.report import PAUSED_HEARTBEAT_S, RECEIPT_HEARTBEAT_S, Heartbeat, Receipt, ReportBatch
from rlvitals.contract.wire import to_wire
from rlvitals.control import Control
from rlvitals.drops import Drops
from rlvitals.guard import Guard
from rlvitals.journal import Journal
from rlvitals.lane import Lane
from rlvitals.lineage import Lineage, booted_s
from rlvitals.link import Link
from rlvitals.retention import Retention, tidy
from rlvitals.settings import Mode, Settings, mounts
from rlvitals.spool import Acked, Lock, journals, read_acked, segments
from rlvitals.transport import Answer, Transport, Verdict, pack

BATCH_RECORDS = 100
HURRIED_BATCH_RECORDS = 1000
CPU_SHARE_MAX = 0.1
HURRIED_INTERVAL_S = 0.01
HEARTBEAT_MIN_S, HEARTBEAT_MAX_S = 0.2, 60.0
TIDY_EVERY_S = 60.0
LEFTOVERS_EVERY_S = 30.0
SYNC_TRIES_MAX = 6


class Post(Protocol):
    """The wire: `Transport`, or a stand-in."""

    def post(self, body: bytes) -> Answer: ...

    def close(self) -> None: ...


class Sender:
    """``settle`` journals device values that arrived and says whether none is left; ``heartbeat`` makes one
    (None where another process speaks for the run)."""

    def __init__(
        self,
        settings: Settings,
        control: Control,
        drops: Drops,
        *,
        heartbeat: Callable[[], Heartbeat | None],
        settle: Callable[[], bool] = lambda: True,
        post: Post | None = None,
        clock: Callable[[], float] = time.monotonic,
        leftovers: bool = True,
    ) -> None:
        self.leftover_bytes = 0
        self.receipts = 0
        self.ignored = 0
        self.last_error = ""
        self._settings, self._control, self._drops = settings, control, drops
        self._heartbeat, self._settle, self._clock = heartbeat, settle, clock
        self._post = post if post is not None or settings.mode is not Mode.ONLINE else _transport(settings)
        self._leftovers = leftovers
        self._link = Link()
        self._lanes: list[Lane] = []
        self._not_now: set[Path] = set()
        self._heartbeat_s = RECEIPT_HEARTBEAT_S
        self._limit = BATCH_RECORDS
        self._left: Lane | None = None
        self._lineage = Lineage(settings.spool, mounts=mounts, booted_s=booted_s)
        self._epoch = ""
        self._beat_s = clock() - HEARTBEAT_MAX_S
        self._tidy_s, self._adopt_s, self._looked_s = clock(), 0.0, 0.0
        self._wake = threading.Event()
        self._rounds = threading.Condition()
        self._tries = 0
        self._hurried = self._stopping = False
        self._thread: threading.Thread | None = None

    def follow(self, journal: Journal) -> None:
        """Adds a journal of this process; an earlier one is done with as soon as all of it is stored."""
        for lane in self._lanes:
            lane.retired = True
        self._lanes = [*self._lanes, Lane(journal.folder, self._drops, self._settings.url, journal=journal)]
        self._lineage.begin(journal.writer)

    def start(self) -> None:
        """Starts the thread, once."""
        if self._thread is None:
            if self._post is not None:
                # Here: the thread would have to ask the training for the interpreter's lock at each of its files.
                import http.client  # noqa: F401
            self._thread = threading.Thread(target=self._run, name="rlvitals-sender", daemon=True)
            self._thread.start()

    def flush(self, timeout_s: float, *, patient: bool = True) -> bool:
        """Waits until what is journalled by now is stored, and what a device still owes is journalled first.

        Impatient: gives up at the first failed try.
        """
        goals: list[tuple[Lane, int]] = []
        tries = self._tries

        def stored() -> bool:
            if not goals:
                if not self._settle():
                    return False
                goals.extend((lane, lane.journal.seq) for lane in self._lanes if lane.journal is not None)
            return self._reached(goals)

        if not patient:
            self._link.next_s = 0.0
        self._hurried = True
        self._wake.set()
        try:
            with self._rounds:
                self._rounds.wait_for(
                    lambda: stored() or (not patient and self._tries > tries and not self._link.well),
                    timeout_s,
                )
            return stored()
        finally:
            self._hurried = False

    def close(self, timeout_s: float) -> None:
        """Flushes as far as that goes in time, stops the thread, and gives the journals up for others to send."""
        stored = self.flush(timeout_s, patient=False)
        self._stopping = True
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(min(timeout_s, 1.0))
        for lane in self._lanes:
            if lane.journal is not None:
                lane.journal.recover()
                lane.journal.close()
                if stored and self._post is not None:
                    lane.persist(complete=True)
        if not stored and self._post is not None:
            where = self._settings.spool
            notices.once(
                "left", f"what {self._settings.url} has not taken waits in {where}: `rlvitals sync` sends it"
            )

    def abandon(self) -> None:
        """In a forked child: the parent's thread, connection and journals are not ours."""
        for lane in self._lanes:
            lane.close()
            if lane.journal is not None:
                lane.journal.abandon()
        if self._left is not None:
            self._left.close()
        self._lanes, self._thread, self._post = [], None, None

    def counters(self) -> Mapping[str, float]:
        return {
            "acknowledged_seq": float(self._lanes[-1].acked.stored_through if self._lanes else 0),
            "sent_seq": float(self._lanes[-1].sent_through if self._lanes else 0),
            "receipts": float(self.receipts),
            "receipts_ignored": float(self.ignored),
            "failures": float(self._link.failures),
            "leftover_bytes": float(self.leftover_bytes),
        }

    def turn(self) -> float:
        """One round: device values, disk, one batch. Returns the seconds until the next is due."""
        began_cpu = time.thread_time()
        self._settle()
        for lane in self._lanes:
            if lane.journal is not None:
                lane.journal.recover(lane.acked.stored_through)
        more = self._send() if self._post is not None else False
        self._house_keep()
        with self._rounds:
            self._rounds.notify_all()
        spent_s = time.thread_time() - began_cpu
        if more:
            return 0.0 if self._hurried else spent_s / CPU_SHARE_MAX
        return max(self._settings.interval_s, spent_s / CPU_SHARE_MAX)

    def sync(self) -> tuple[int, int]:
        """Sends what dead writers left in the spool. Returns (journals sent, journals left behind)."""
        self._hurried = True
        claimed = 0
        while self._adopt():
            claimed += 1
            while self._left is not None and self._link.failures < SYNC_TRIES_MAX:
                self._wake.wait(max(0.0, self._link.next_s - self._clock()))
                self._send_left()
            if self._left is not None:
                self._put_off(self._left)
        if self._post is not None:
            self._post.close()
        return claimed - len(self._not_now), len(self._not_now)

    # -- one round ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        delay = self._settings.interval_s
        while not self._stopping:
            self._wake.wait(min(delay, HURRIED_INTERVAL_S) if self._hurried else delay)
            self._wake.clear()
            with Guard("the sender"):
                delay = self._settings.interval_s
                delay = self.turn()
        if self._post is not None:  # only here, since an exchange may outlast the patience of `close`
            self._post.close()

    def _send(self) -> bool:
        """Posts one batch if there is one and it is time; True if more waits."""
        now = self._clock()
        if now < self._link.next_s:
            return False
        for lane in self._lanes:
            lane.fill(self._records())
            if lane.window or lane.run_changed:
                return self._send_lane(lane)
            # in this order: once it is retired nothing more is owed to it, and what was owed is then journalled
            if lane.retired and self._settle() and lane.finished():
                self._finish(lane)
        if self._lanes and now - self._beat_s >= self._heartbeat_every_s():
            return self._send_lane(self._lanes[-1])
        return self._send_left() if self._left or self._adopt_now(now) else False

    def _send_lane(self, lane: Lane) -> bool:
        made = lane.batch(self._records(), None if lane.retired else self._heartbeat())
        if made is None:
            return False
        batch, count = made
        if not lane.retired:
            self._beat_s = self._clock()
            batch = replace(batch, heir_of=self._heir_of(lane))
        answer = self._exchange(batch)
        if answer.receipt is not None:
            return self._stored(lane, count, answer.receipt)
        if answer.verdict in (Verdict.TOO_LARGE, Verdict.UNREADABLE) and count:
            return self._smaller(lane, count, answer)
        return self._failed(lane, answer)

    def _heir_of(self, lane: Lane) -> tuple[str, ...]:
        """The control is told first: it reads those journals before anything that comes with the answer."""
        now = self._clock()
        if lane.journal is None or not self._control.enabled:
            return ()
        writer = lane.journal.writer
        if now >= self._looked_s:
            self._looked_s = now + LEFTOVERS_EVERY_S
            if self._lineage.look(writer.run.id, [other.folder for other in self._lanes]):
                self._control.inherit()
        return self._lineage.before(writer)

    def _exchange(self, batch: ReportBatch) -> Answer:
        if self._post is None:
            raise RuntimeError("nothing is sent offline")
        wire = to_wire(batch)
        time.sleep(0)  # as in `Lane.fill`
        return self._post.post(pack(wire))

    def _stored(self, lane: Lane, count: int, receipt: Receipt) -> bool:
        self.receipts += 1
        self._epoch = receipt.epoch
        if not lane.settle(receipt, count):
            self.ignored += 1
            reason = f"the receipt says {receipt.stored_through}, which does not fit what was sent"
            return self._failed(lane, Answer(verdict=Verdict.RETRY, reason=reason))
        self._link.succeeded()
        self._tries += 1
        self._limit = min(BATCH_RECORDS, self._limit * 2)
        self._drops.add("refused", len(receipt.refused))
        for refusal in receipt.refused[:1]:
            notices.once(f"refused:{refusal.field}", f"the service left out {refusal.field}: {refusal.reason}")
        if lane.journal is not None:
            self._heartbeat_s = min(max(receipt.heartbeat_s, HEARTBEAT_MIN_S), HEARTBEAT_MAX_S)
            self._control.heard()
            self._control.offer(receipt.commands)
        return bool(lane.window) or count >= self._records()

    def _smaller(self, lane: Lane, count: int, answer: Answer) -> bool:
        """Halves the batch down to the one record at fault, and gives that up if the service takes all others."""
        if count > 1:
            self._limit = max(1, count // 2)
            return True
        empty, _ = lane.batch(0, None) or (None, 0)
        alone = self._exchange(empty) if empty is not None else answer
        if alone.verdict is not Verdict.STORED:
            return self._failed(lane, alone)
        notices.once("skipped", f"the service can never take one record, which is given up: {answer.reason}")
        lane.skip_one("too large" if answer.verdict is Verdict.TOO_LARGE else "refused")
        return True

    def _failed(self, lane: Lane, answer: Answer) -> bool:
        refused = answer.verdict is not Verdict.RETRY
        self.last_error = answer.reason
        self._link.failed(
            self._clock(), jitter=os.urandom(1)[0] / 255, retry_after_s=answer.retry_after_s, refused=refused
        )
        self._tries += 1
        notices.once(
            f"link:{answer.verdict.value}",
            f"{self._settings.url} does not take reports ({answer.reason}); they wait on disk, training goes on",
        )
        if lane is self._left and refused:
            self._put_off(lane)
        return False

    def _records(self) -> int:
        return HURRIED_BATCH_RECORDS if self._hurried and self._limit == BATCH_RECORDS else self._limit

    def _heartbeat_every_s(self) -> float:
        return min(self._heartbeat_s, PAUSED_HEARTBEAT_S) if self._control.paused else self._heartbeat_s

    def _finish(self, lane: Lane) -> None:
        if lane.journal is not None:
            lane.journal.close()
        lane.persist(complete=True)
        lane.close()
        self._lanes = [other for other in self._lanes if other is not lane]

    def _reached(self, goals: list[tuple[Lane, int]]) -> bool:
        if self._post is None:
            return all(lane.journal is None or lane.journal.well for lane, _ in goals)
        return all(lane.drained_through(seq) and not lane.run_changed for lane, seq in goals)

    def _house_keep(self) -> None:
        now = self._clock()
        if now - self._tidy_s < TIDY_EVERY_S:
            return
        self._tidy_s = now
        s = self._settings
        bounds = Retention(kept_bytes=s.kept_bytes, kept_age_s=s.kept_age_s, spool_bytes=s.spool_bytes)
        lost = tidy(s.spool, [lane.folder for lane in self._lanes], bounds, time.time())
        if self._post is None:  # online, the follower counts the gap when it comes to it
            self._drops.add("spool full", lost)

    # -- what dead writers left --------------------------------------------------------------------------------

    def _adopt_now(self, now: float) -> bool:
        if not self._leftovers or now < self._adopt_s:
            return False
        self._adopt_s = now + LEFTOVERS_EVERY_S
        return self._adopt()

    def _adopt(self) -> bool:
        """Claims the oldest journal whose writer is dead and which is not all stored."""
        own = {lane.folder for lane in self._lanes}
        for folder in journals(self._settings.spool):
            if folder in own or folder in self._not_now or self._is_stored(read_acked(folder)):
                continue
            try:
                lock = Lock.take(folder)
            except OSError:
                continue
            if lock is not None:
                self._left = Lane(folder, self._drops, self._settings.url, lock=lock)
                return True
        return False

    def _is_stored(self, acked: Acked) -> bool:
        """False again once this service's store was restored from a backup."""
        return acked.complete and (acked.url != self._settings.url or self._epoch in ("", acked.epoch))

    def _send_left(self) -> bool:
        lane = self._left
        if lane is None:
            return False
        lane.fill(self._records())
        self.leftover_bytes = sum(s.size for s in segments(lane.folder) if s.first_seq > lane.acked.stored_through)
        if lane.known and (lane.window or self._epoch not in ("", lane.acked.epoch)):
            return self._send_lane(lane)
        lane.persist(complete=True)
        lane.close()
        self._left, self.leftover_bytes, self._adopt_s = None, 0, 0.0
        return True

    def _put_off(self, lane: Lane) -> None:
        """Not in this process again: the service refuses it."""
        self._not_now.add(lane.folder)
        lane.close()
        self._left, self.leftover_bytes = None, 0


def _transport(settings: Settings) -> Transport:
    return Transport(settings.url, settings.token, timeout_s=settings.timeout_s)
