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

from rlvitals.contract.command import ARGUMENT_KINDS, Command, CommandKind, CommandState, Outcome
from rlvitals.guard import kept

WAITING_MAX = 64

_NONE: tuple[Command, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlLimits:
    """The client's own bounds, held whatever the service says. Factors are relative to the user's own value."""

    kl_factor_low: float = 1e-3
    kl_factor_high: float = 10.0
    lr_factor_low: float = 0.01
    lr_factor_high: float = 2.0
    longest_pause_s: float = 3600.0
    cooldown_steps: int = 3
    fail_open_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """All that a verdict depends on. ``last_change`` is the step at which this kind was last taken."""

    now: datetime
    step: int
    limits: ControlLimits
    capabilities: Mapping[str, str]
    user_value: float | None = None
    last_change: int | None = None


def verdict(command: Command, at: Situation) -> tuple[CommandState, str]:
    """DELIVERED if the command may be applied now, else EXPIRED or REFUSED with the reason. Pure."""
    if at.now >= command.expires_at:
        return CommandState.EXPIRED, f"expired at {command.expires_at.isoformat()}"
    reason = at.capabilities.get(
        command.kind.value, "" if not at.capabilities else "this integration cannot do it"
    )
    reason = reason or _argument_reason(command, at) or _cooldown_reason(command, at)
    return (CommandState.REFUSED, reason) if reason else (CommandState.DELIVERED, "")


def _argument_reason(command: Command, at: Situation) -> str:
    argument = command.argument
    if command.kind not in ARGUMENT_KINDS:
        return ""
    if argument is None or not math.isfinite(argument) or argument <= 0:
        return f"needs a finite argument above 0, got {argument}"
    if command.bounds is not None and not command.bounds.allow(argument):
        return f"{argument:g} is outside its own bounds {command.bounds.low:g} … {command.bounds.high:g}"
    low, high = _factors(command.kind, at.limits)
    base = 1.0 if command.kind is CommandKind.SCALE_LR else at.user_value
    if base is not None and not low * base <= argument <= high * base:
        return f"{argument:g} is outside the client's bounds {low * base:g} … {high * base:g}"
    return ""


def _factors(kind: CommandKind, limits: ControlLimits) -> tuple[float, float]:
    if kind is CommandKind.SCALE_LR:
        return limits.lr_factor_low, limits.lr_factor_high
    return limits.kl_factor_low, limits.kl_factor_high


def _cooldown_reason(command: Command, at: Situation) -> str:
    if command.kind not in ARGUMENT_KINDS or at.last_change is None:
        return ""
    again = at.last_change + at.limits.cooldown_steps
    if not at.last_change <= at.step < again:
        return ""
    return f"changed at step {at.last_change}, not again before step {again}"


class Control:
    """Thread-safe mailbox. ``journal_command`` and ``journal_outcome`` append to the run's journal and return."""

    def __init__(
        self,
        *,
        journal_command: Callable[[Command, int], None],
        journal_outcome: Callable[[Outcome], None],
        known: Callable[[], Mapping[str, bool]] = dict,
        limits: ControlLimits | None = None,
        capabilities: Callable[[], Mapping[str, str]] = dict,
        obeys: frozenset[CommandKind] | None = None,
        wall: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits or ControlLimits()
        self.obeys = obeys
        """The kinds that this process carries out, None for all; others are answered by other processes."""
        self.released_by = ""
        """Why the last pause ended: ``resume``, ``stop``, ``longest pause`` or ``service silent``."""
        self._journal_command, self._journal_outcome = journal_command, journal_outcome
        self._load_known, self._capabilities = known, capabilities
        self._wall, self._clock = wall, clock
        self._lock = threading.Lock()
        self._known: dict[str, bool] | None = None
        self._waiting: dict[str, Command] = {}
        self._user_values: dict[CommandKind, float] = {}
        self._changed_at: dict[CommandKind, int] = {}
        self._paused_since: float | None = None
        self._pause_s = 0.0
        self._stopped_elsewhere: datetime | None = None
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

    @kept(None)
    def offer(self, commands: Iterable[Command]) -> None:
        """Sender's thread: puts new commands into the mailbox. Ids of dead attempts are answered, not applied."""
        offered = tuple(commands)
        if not offered or not self._enabled:
            return
        if self._known is None:
            self._known = dict(self._load_known())
        for command in offered:
            if self.obeys is not None and command.kind not in self.obeys:
                if command.kind is CommandKind.STOP:
                    self._stopped_elsewhere = command.expires_at
                continue
            answered = self._known.get(command.id)
            if answered is False:
                self._known[command.id] = True
                self._say(
                    command, CommandState.REFUSED, reason="an earlier attempt took it and ended; not repeated"
                )
            elif answered is None and len(self._waiting) < WAITING_MAX:
                with self._lock:
                    self._waiting.setdefault(command.id, command)

    @kept(_NONE)
    def take(self, step: int) -> tuple[Command, ...]:
        """Training thread, rank 0, at a step boundary: the commands to apply now, each already in the journal."""
        if not self._waiting:
            return ()
        with self._lock:
            found = tuple(self._waiting.values())
            for command in found:
                self._mark(command.id, answered=True)
            self._waiting.clear()
        return tuple(command for command in found if self._accept(command, step))

    @kept(None)
    def applied(
        self, command: Command, *, step: int, before: float | None = None, after: float | None = None
    ) -> None:
        """Journals that the command was carried out; ``before`` and ``after`` are read back from the trainer."""
        self._say(command, CommandState.APPLIED, step=step, before=before, after=after)

    @kept(None)
    def refused(self, command: Command, reason: str, *, step: int | None = None) -> None:
        """Journals that the integration could not do it."""
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

    def forked(self) -> None:
        """In a forked child: commands are the parent's business."""
        self._lock = threading.Lock()
        self._enabled, self._paused_since = False, None
        self._waiting.clear()

    def _release_reason(self, now: float, since: float) -> str:
        with self._lock:
            waiting = tuple(self._waiting.values())
        for command in waiting:
            if command.kind in (CommandKind.RESUME, CommandKind.STOP) and self._wall() < command.expires_at:
                return str(command.kind.value)
        if self._stopped_elsewhere is not None and self._wall() < self._stopped_elsewhere:
            return CommandKind.STOP.value
        if now - since >= self._pause_s:
            return "longest pause"
        return "service silent" if now - max(self._heard_at, since) >= self.limits.fail_open_s else ""

    def _accept(self, command: Command, step: int) -> bool:
        state, reason = verdict(command, self._situation(command, step))
        if state is not CommandState.DELIVERED:
            self._say(command, state, step=step, reason=reason)
            return False
        self._journal_command(command, step)
        self._note(command, step)
        return True

    def _situation(self, command: Command, step: int) -> Situation:
        return Situation(
            now=self._wall(),
            step=step,
            limits=self.limits,
            capabilities=self._capabilities(),
            user_value=self._user_values.get(command.kind),
            last_change=self._changed_at.get(command.kind),
        )

    def _note(self, command: Command, step: int) -> None:
        self._changed_at[command.kind] = step
        if command.kind is CommandKind.PAUSE:
            asked = command.argument if command.argument and command.argument > 0 else math.inf
            self._pause_s = min(asked, self.limits.longest_pause_s)
            self._paused_since = self._clock()
        elif command.kind in (CommandKind.RESUME, CommandKind.STOP):
            self._paused_since = None

    def _mark(self, command_id: str, *, answered: bool) -> None:
        if self._known is None:
            self._known = {}
        self._known[command_id] = answered

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
