"""Whether a connected client sees anything: what its hook tables say, in one line, and what to do. Pure.

A hook that waits for its first batch, or an optional one, is no fault. Words of hooks are a client's own:
whoever shows them must escape them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlvitals.contract.hooks import HookState, HooksView, HookTableView, HookView

ADVICE = "Run `rlvitals doctor` in the job's environment: it says which hook is found, patched or absent, and why."
NO_TABLE = "this client tells of no hooks: its loop reports by itself"
BLIND_STEPS = 3
"""After so many steps a hook that has shown nothing is a fault, as the client counts them too."""
GIVES_CHARS_MAX = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """One hook of one trainer, and what is to be said of it."""

    trainer: str
    hook: HookView

    def fault(self) -> str:
        name = f"hook {self.hook.hook} of {self.trainer}"
        gives = _short(self.hook.gives, GIVES_CHARS_MAX)
        missing = f"; missing: {gives}" if gives else ""
        if self.hook.state is HookState.FAILING:
            return f"{name} fails ({_short(self.hook.why, 120) or 'no error told'}){missing}"
        if self.hook.state is HookState.ABSENT:
            return f"{name} is not there ({_short(self.hook.why, 120) or 'no reason told'}){missing}"
        return f"{name} was never called{missing}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Handshake:
    """Of one attempt. ``expected`` are the hooks that should see: the needed ones, and optional ones that do."""

    expected: tuple[Sight, ...]
    failing: tuple[Sight, ...]
    unseen: tuple[Sight, ...]

    @property
    def told(self) -> bool:
        return bool(self.expected)

    @property
    def seeing(self) -> int:
        return len(self.expected) - len(self.unseen)

    @property
    def blind(self) -> bool:
        """Not one of the hooks sees, and one should."""
        return self.told and not self.seeing

    def count(self) -> str:
        return f"{self.seeing} of {len(self.expected)} hooks see"

    def worst(self) -> str:
        """The fault that explains most: what fails before what was never called before what is not there."""
        order = (HookState.FAILING, HookState.BLIND, HookState.PATCHED, HookState.ABSENT)
        ranked = sorted(self.unseen, key=lambda sight: order.index(sight.hook.state))
        return ranked[0].fault() if ranked else ""


def read(tables: Sequence[HookTableView]) -> Handshake:
    sights = [Sight(trainer=table.trainer, hook=hook) for table in tables for hook in table.hooks]
    expected = tuple(
        s for s in sights if not s.hook.optional or s.hook.state in (HookState.SEEN, HookState.FAILING)
    )
    return Handshake(
        expected=expected,
        failing=tuple(s for s in expected if s.hook.state is HookState.FAILING),
        unseen=tuple(s for s in expected if not s.hook.sees),
    )


def silence(hooks: Handshake) -> str:
    """Why a connected client may have sent no step."""
    if not hooks.told:
        return "the trainer has reported no step"
    return hooks.worst() or f"{hooks.count()}, but no step has ended"


def view(run: str, attempt: str, tables: Sequence[HookTableView], *, steps: int, late: bool) -> HooksView:
    """``steps`` the attempt has; ``late``: its first one should have come by now."""
    hooks = read(tables)
    waiting = not late and steps < BLIND_STEPS and not hooks.failing
    well = hooks.told and (waiting or not hooks.unseen)
    return HooksView(
        run=run,
        attempt=attempt,
        well=well or not hooks.told,
        summary=_summary(hooks, waiting=waiting),
        advice="" if well or not hooks.told else ADVICE,
        tables=tuple(tables),
    )


def _summary(hooks: Handshake, *, waiting: bool) -> str:
    if not hooks.told:
        return NO_TABLE
    if not hooks.unseen:
        return hooks.count()
    if waiting:
        return f"{hooks.count()} so far"
    return f"{hooks.count()}: {hooks.worst()}"


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
