"""Commands on their way into the training loop: taken at a step boundary, once, within bounds, journalled first.

The sender's thread offers what receipts bring; the training thread takes it. An id that was ever journalled, by
this process or by an earlier one of the same run, is never handed out again.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from rlvitals.changes import Changes
from rlvitals.contract.command import Command, CommandKind, CommandState, Outcome
from rlvitals.guard import kept
from rlvitals.knobs import Knobs
from rlvitals.verdict import ControlLimits, Situation, verdict

WAITING_MAX = 64

_NONE: tuple[Command, ...] = ()


@dataclass(slots=True)
class _Offered:
    """``until`` is by this process's own clock, which need not agree with the service's."""

    command: Command
    until: float


class Control:
    """Thread-safe mailbox. ``journal_command`` and ``journal_outcome`` append to the run's journal and return.

    ``known`` and ``earlier`` say what the run's processes so far have answered, and changed at which step.
    """

    def __init__(
        self,
        *,
        journal_command: Callable[[Command, int], None],
        journal_outcome: Callable[[Outcome], None],
        known: Callable[[], Mapping[str, bool]] = dict,
        earlier: Callable[[], Iterable[tuple[Command, int]]] = tuple,
        limits: ControlLimits | None = None,
        capabilities: Callable[[], Mapping[str, str]] = dict,
        obeys: frozenset[CommandKind] | None = None,
        wall: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits or ControlLimits()
        self.knobs = Knobs()
        self.obeys = obeys
        """The kinds that this process carries out, None for all; others are answered by other processes."""
        self.released_by = ""
        """Why the last pause ended: ``resume``, ``stop``, ``longest pause`` or ``service silent``."""
        self._journal_command, self._journal_outcome = journal_command, journal_outcome
        self._load_known, self._load_earlier, self._capabilities = known, earlier, capabilities
        self._wall, self._clock = wall, clock
        self._lock = threading.Lock()
        self._known: dict[str, bool] = {}
        self._behind = True
        self._waiting: dict[str, _Offered] = {}
        self._user_values: dict[CommandKind, float] = {}
        self._changes = Changes()
        self._paused_since: float | None = None
        self._pause_s = 0.0
        self._stopped_elsewhere: float | None = None
        self._heard_at = clock()
        self._enabled = True

    @property
    def paused(self) -> bool:
        return self._paused_since is not None

    def user_value(self, kind: CommandKind, value: float) -> None:
        """Tells what the user set (the KL coefficient at the start); client bounds are factors of it."""
        self._user_values[kind] = float(value)

    def heard(self) -> None:
        """The service has just answered."""
        self._heard_at = self._clock()

    @property
    def enabled(self) -> bool:
        """False in a forked child and after `close`."""
        return self._enabled

    def inherit(self) -> None:
        """Sender's thread: another attempt has ended, whose journal says what it did."""
        self._behind = True

    @kept(None)
    def offer(self, commands: Iterable[Command]) -> None:
        """Sender's thread: puts new commands into the mailbox. Ids of dead attempts are answered, not applied."""
        offered = tuple(commands)
        if not offered or not self._enabled:
            return
        if self._behind:
            self._read_journals()
        for command in offered:
            if self.obeys is not None and command.kind not in self.obeys:
                if command.kind is CommandKind.STOP:
                    self._stopped_elsewhere = self._until(command)
                continue
            answered = self._known.get(command.id)
            if answered is False:
                self._known[command.id] = True
                self._say(
                    command, CommandState.REFUSED, reason="an earlier attempt took it and ended; not repeated"
                )
            elif answered is None and len(self._waiting) < WAITING_MAX:
                with self._lock:
                    first = self._waiting.setdefault(command.id, _Offered(command, math.inf))
                    first.until = min(first.until, self._until(command))

    @kept(_NONE)
    def take(self, step: int) -> tuple[Command, ...]:
        """Training thread, rank 0, at a step boundary: the commands to apply now, each already in the journal."""
        if not self._waiting:
            return ()
        with self._lock:
            found = tuple(self._waiting.values())
            for offered in found:
                self._known[offered.command.id] = True
            self._waiting.clear()
        return tuple(offered.command for offered in found if self._accept(offered, step))

    @kept(None)
    def applied(
        self, command: Command, *, step: int, before: float | None = None, after: float | None = None
    ) -> None:
        """Journals that the command was carried out; ``before`` and ``after`` are read back from the trainer."""
        self._changes.applied(command, after)
        self._say(command, CommandState.APPLIED, step=step, before=before, after=after)

    @kept(None)
    def refused(self, command: Command, reason: str, *, step: int | None = None) -> None:
        """Journals that the integration could not do it."""
        self._changes.refused(command)
        self._say(command, CommandState.REFUSED, step=step, reason=reason)

    @kept(False)
    def holding(self) -> bool:
        """True as long as a pause that was taken must go on; ask it every second or so (it costs nothing)."""
        since = self._paused_since
        if since is None:
            return False
        self.released_by = self._release_reason(self._clock(), since)
        if self.released_by:
            self._paused_since = None
        return not self.released_by

    def close(self) -> None:
        """From now on nothing is handed out: what it would do can no longer be journalled."""
        with self._lock:
            self._enabled = False
            self._waiting.clear()

    def forked(self) -> None:
        """In a forked child: commands are the parent's business."""
        self._lock = threading.Lock()
        self._enabled, self._paused_since = False, None
        self._waiting.clear()

    def _release_reason(self, now: float, since: float) -> str:
        with self._lock:
            waiting = tuple(self._waiting.values())
        for offered in waiting:
            if offered.command.kind in (CommandKind.RESUME, CommandKind.STOP) and now < offered.until:
                return str(offered.command.kind.value)
        if self._stopped_elsewhere is not None and now < self._stopped_elsewhere:
            return CommandKind.STOP.value
        if now - since >= self._pause_s:
            return "longest pause"
        return "service silent" if now - max(self._heard_at, since) >= self.limits.fail_open_s else ""

    def _until(self, command: Command) -> float:
        """An earlier release of the service tells only a time, on which its clock and ours must then agree."""
        left_s = command.valid_s
        if left_s is None:
            left_s = (command.expires_at - self._wall()).total_seconds()
        return self._clock() + left_s

    def _accept(self, offered: _Offered, step: int) -> bool:
        command, at = offered.command, self._situation(offered, step)
        state, reason = verdict(command, at)
        if state is not CommandState.DELIVERED:
            self._say(command, state, step=step, reason=reason)
            return False
        self._journal_command(command, step)
        self._changes.taken(command, step, at.in_force if at.in_force is not None else at.user_value)
        self._note(command)
        return True

    def _situation(self, offered: _Offered, step: int) -> Situation:
        command = offered.command
        course = self._changes.of(command)
        knob = self.knobs.find(command.knob) if command.kind is CommandKind.SET_KNOB else None
        return Situation(
            step=step,
            limits=self.limits,
            capabilities=self._capabilities(),
            expired=self._clock() >= offered.until,
            user_value=self._user_values.get(command.kind),
            last_change=None if course is None else course.step,
            in_force=self._in_force(command, step),
            before_step=course.before_step if course is not None and course.step == step else None,
            knob=knob,
            changes=self._changes.count,
        )

    def _in_force(self, command: Command, step: int) -> float | None:
        """A knob is read back, unless a command that was taken at this very step is still to be carried out."""
        course = self._changes.of(command)
        if command.kind is CommandKind.SET_KNOB and (course is None or course.step != step):
            return self.knobs.now(command.knob)
        return None if course is None else course.value

    def _note(self, command: Command) -> None:
        if command.kind is CommandKind.PAUSE:
            asked = command.argument if command.argument and command.argument > 0 else math.inf
            self._pause_s = min(asked, self.limits.longest_pause_s)
            self._paused_since = self._clock()
        elif command.kind in (CommandKind.RESUME, CommandKind.STOP):
            self._paused_since = None

    def _read_journals(self) -> None:
        """What this process has marked itself stays as it is: a journal may not tell its answer yet."""
        known = self._load_known()
        for command, step in self._load_earlier():
            if command.id not in self._known:
                self._changes.made_before(command, step)
        for command_id, answered in known.items():
            self._known.setdefault(command_id, answered)
        self._behind = False

    def _say(
        self,
        command: Command,
        state: CommandState,
        *,
        step: int | None = None,
        reason: str = "",
        before: float | None = None,
        after: float | None = None,
    ) -> None:
        self._journal_outcome(
            Outcome(
                seq=0,
                command_id=command.id,
                state=state,
                step=step,
                time_s=self._wall().timestamp(),
                reason=reason,
                before=before,
                after=after,
            )
        )
