"""Where we took hold of a trainer: what was found and wrapped, what it has shown, and what is blind.

A wrap calls the original first and hands its result on; ours runs inside the guard. The table says what became of
each place, so that a hook that sees nothing is told to people instead of passing for silence.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rlvitals.contract.hooks import HookState as HookState
from rlvitals.contract.report import EventKind
from rlvitals.guard import Guard
from rlvitals.reporter import Reporter

BLIND_AFTER_STEPS = 3
"""A hook that has shown nothing in so many steps is called blind."""
RETOLD_EVERY_STEPS = 50
"""How old the counts of a table may become in the journal."""
CHANGES_TOLD_MAX = 200
"""A hook that fails every other time changes its state at each step; after so many only the counts are retold."""


@dataclass(slots=True, kw_only=True)
class Hook:
    """One place in a trainer. ``gives`` says in words what is missing without it; ``why`` why it is not there."""

    name: str
    target: str
    gives: str
    patched: bool
    why: str = ""
    optional: bool = False
    seen: int = 0
    failures: int = 0
    error: str = ""

    def state(self, steps: int) -> HookState:
        if not self.patched:
            return HookState.ABSENT
        if self.failures and self.failures >= self.seen:
            return HookState.FAILING
        if self.seen:
            return HookState.SEEN
        return HookState.BLIND if steps >= BLIND_AFTER_STEPS and not self.optional else HookState.PATCHED


class HookTable:
    """The hooks of one trainer in one process, told to the service whenever a state changes."""

    def __init__(self, framework: str, version: str = "") -> None:
        self.framework, self.version = framework, version
        self.steps = 0
        self._hooks: dict[str, Hook] = {}
        self._told: tuple[HookState, ...] = ()
        self._changes = 0
        self._reporter: Reporter | None = None
        self._step: int | None = None

    def __iter__(self) -> Any:
        return iter(self._hooks.values())

    def add(
        self, name: str, target: str, gives: str, *, patched: bool, why: str = "", optional: bool = False
    ) -> Hook:
        """Enters a place by its name; the same name again replaces it."""
        hook = Hook(name=name, target=target, gives=gives, patched=patched, why=why, optional=optional)
        self._hooks[name] = hook
        return hook

    def saw(self, name: str) -> None:
        """The hook has shown something of use."""
        hook = self._hooks.get(name)
        if hook is not None:
            hook.seen += 1
            if hook.seen == 1:
                self._tell_again()

    def failed(self, name: str, error: BaseException | str) -> None:
        """Our part of the hook raised, or what it was shown was of no use."""
        hook = self._hooks.get(name)
        if hook is not None:
            hook.failures += 1
            hook.error = str(error)[:300] if isinstance(error, str) else f"{type(error).__name__}: {error}"[:300]
            if hook.failures == 1:
                self._tell_again()

    def rows(self) -> list[dict[str, object]]:
        """Plain data, one row a hook, in the order in which they were entered."""
        return [
            {
                "hook": hook.name,
                "target": hook.target,
                "gives": hook.gives,
                "state": hook.state(self.steps).value,
                "why": hook.why or hook.error,
                "seen": hook.seen,
                "optional": hook.optional,
            }
            for hook in self._hooks.values()
        ]

    def step_ends(self, reporter: Reporter, step: int) -> None:
        """Counts a step and tells the table where a state has changed, or its counts have grown old."""
        self.steps += 1
        if self.steps % RETOLD_EVERY_STEPS == 0:
            self._write(reporter, step)
        else:
            self.tell(reporter, step)

    def tell(self, reporter: Reporter, step: int | None = None) -> None:
        """One event with the whole table, unless it would say what the last one said.

        From the first call on, a hook's first success and first failure are told at once: where no step ever
        ends, nothing else would tell them.
        """
        self._reporter, self._step = reporter, step
        states = tuple(hook.state(self.steps) for hook in self._hooks.values())
        if states == self._told or self._changes >= CHANGES_TOLD_MAX:
            return
        self._changes += 1
        self._write(reporter, step)

    def _tell_again(self) -> None:
        if self._reporter is not None:
            self.tell(self._reporter, self._step)

    def _write(self, reporter: Reporter, step: int | None) -> None:
        self._told = tuple(hook.state(self.steps) for hook in self._hooks.values())
        reporter.event(
            EventKind.HOOK,
            step,
            framework=self.framework,
            version=self.version,
            steps=self.steps,
            hooks=self.rows(),
        )


def wrap(
    owner: Any,
    name: str,
    *,
    after: Callable[..., None],
    before: Callable[..., None] | None = None,
    spent: Callable[[float], None] = lambda seconds: None,
    table: HookTable | None = None,
    hook: str = "",
) -> bool:
    """Wraps ``owner.name``: ``before(*args, **kwargs)``, the original, then ``after(result, *args, **kwargs)``.

    False where there is no such attribute. ``spent`` is told our own seconds. With a ``table`` what raises in
    ``after`` counts as a failure of ``hook``.
    """
    original = getattr(owner, name, None)
    if original is None:
        return False

    @functools.wraps(original)
    def hooked(*args: Any, **kwargs: Any) -> Any:
        if before is not None:
            _run(before, args, kwargs, f"before {name}", spent, table, hook)
        result = original(*args, **kwargs)
        _run(after, (result, *args), kwargs, f"after {name}", spent, table, hook)
        return result

    setattr(owner, name, hooked)
    return True


def _run(
    call: Callable[..., None],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    what: str,
    spent: Callable[[float], None],
    table: HookTable | None,
    hook: str,
) -> None:
    began = time.perf_counter()
    with Guard(what):
        try:
            call(*args, **kwargs)
        except Exception as error:
            if table is not None:
                table.failed(hook, error)
            raise
    with Guard("counting our time"):
        spent(time.perf_counter() - began)
