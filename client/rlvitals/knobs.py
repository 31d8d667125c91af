"""Settings of the user's own that may be changed while it trains, as the training process knows them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from rlvitals.contract.command import Knob
from rlvitals.guard import attempt, outcome

KNOBS_MAX = 64
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
NO_KNOB = "no knob was registered: vitals.knob(…) says what may be changed, and within which bounds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """The value before and after, read back where that can be; ``fault`` says why nothing was done."""

    before: float | None = None
    after: float | None = None
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Handle:
    knob: Knob
    act: Callable[[float], object]
    get: Callable[[], float] | None


class Knobs:
    """One process's. ``turn`` is called between two steps, on every rank with the same value."""

    def __init__(self) -> None:
        self._handles: dict[str, _Handle] = {}
        self._last: dict[str, float] = {}

    def add(
        self, name: str, act: Callable[[float], object], get: Callable[[], float] | None, knob: Knob
    ) -> Mapping[str, Knob]:
        """The knob as it is told to the service, by its name. Raises ValueError for bounds that are none."""
        if NAME.fullmatch(name) is None:
            raise ValueError(f"expected a knob's name such as temperature, got {name!r}")
        if len(self._handles) >= KNOBS_MAX and name not in self._handles:
            raise ValueError(f"a run has at most {KNOBS_MAX} knobs")
        value = _read(get)
        told = replace(knob, value=value if knob.value is None else knob.value)
        fault = told.fault()
        if fault:
            raise ValueError(f"knob {name}: {fault}")
        self._handles[name] = _Handle(knob=told, act=act, get=get)
        return {name: told}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._handles)

    def find(self, name: str) -> Knob | None:
        handle = self._handles.get(name)
        return None if handle is None else handle.knob

    def now(self, name: str) -> float | None:
        """Read back where that can be, else as it was last set, else the user's own; None where nobody knows."""
        handle = self._handles.get(name)
        if handle is None:
            return None
        read = _read(handle.get)
        return read if read is not None else self._last.get(name, handle.knob.value)

    def turn(self, name: str, value: float) -> Turned:
        """Calls the user's own code; what that raises is the fault."""
        handle = self._handles.get(name)
        if handle is None:
            return Turned(fault=f"there is no knob {name!r} here")
        if not handle.knob.low <= value <= handle.knob.high:
            return Turned(fault=f"{value:g} is outside {handle.knob.low:g} … {handle.knob.high:g}")
        before = self.now(name)
        _, error = outcome(handle.act, value)
        if error:
            return Turned(fault=f"the knob's own code failed: {error}")
        self._last[name] = value
        return Turned(before=before, after=self.now(name))


def _read(get: Callable[[], float] | None) -> float | None:
    """None where it can't be read; NaN and the infinities are no value that a change could start from."""
    if get is None:
        return None
    value = attempt(lambda: float(get()))
    return value if value is not None and math.isfinite(value) else None
