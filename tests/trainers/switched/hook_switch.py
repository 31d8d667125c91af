"""Our hooks switched off and on within a running job, step by step: loaded in each of its processes before us.

Each wrap of ours becomes a switch between the wrapped function and the original. One byte of a file says which;
the process that sees a step end notes the step's seconds, and writes the byte of the next step. ``SWITCH_FOLDER``
holds both, ``SWITCH_TURNS`` is a 1 or a 0 for each step, and ``SWITCH_BOUNDARY`` the function whose return ends
a step.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from pathlib import Path
from typing import Any

FOLDER, TURNS = Path(os.environ["SWITCH_FOLDER"]), os.environ["SWITCH_TURNS"]
BOUNDARY = os.environ["SWITCH_BOUNDARY"]
MARK = f"SWITCH_FOLDER={FOLDER}".encode()
_BYTE = os.open(FOLDER / "turn", os.O_RDWR | os.O_CREAT, 0o600)


def on() -> bool:
    """Whether we take part in the present step."""
    return os.pread(_BYTE, 1, 0) != b"0"


class Boundary:
    """Where steps end: a line ``turn wall cpu`` for each, in seconds."""

    def __init__(self) -> None:
        self._steps, self._wall, self._cpu = 0, 0.0, 0.0
        self._ours: dict[int, bool] = {}

    def passed(self) -> None:
        """What is done here is in no step."""
        wall, cpu = time.perf_counter(), self._cpu_seconds()
        if self._wall and self._steps < len(TURNS):  # a job may train on for longer than it is measured
            with (FOLDER / "steps").open("a") as lines:
                lines.write(f"{TURNS[self._steps]} {wall - self._wall:.6f} {cpu - self._cpu:.6f}\n")
            self._steps += 1
        turn = TURNS[self._steps] if self._steps < len(TURNS) else "1"
        os.pwrite(_BYTE, turn.encode(), 0)
        self._cpu, self._wall = self._cpu_seconds(), time.perf_counter()

    def _cpu_seconds(self) -> float:
        """Of all threads of all processes of this job, by the kernel's own count."""
        found = 0
        for process in Path("/proc").iterdir():
            if process.name.isdigit() and self._is_ours(int(process.name)):
                found += _nanoseconds(process)
        return found / 1e9

    def _is_ours(self, pid: int) -> bool:
        if pid not in self._ours:
            self._ours[pid] = False
            with contextlib.suppress(OSError):
                self._ours[pid] = MARK in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return self._ours[pid]


def _nanoseconds(process: Path) -> int:
    found = 0
    with contextlib.suppress(OSError):  # it has just ended
        for thread in (process / "task").iterdir():
            with contextlib.suppress(OSError):
                found += int((thread / "schedstat").read_text().split()[0])
    return found


BOUNDARY_OF_PROCESS = Boundary()


def install() -> None:
    """Puts the switch into the one function that wraps, and into whatever module has taken its name."""
    from rlvitals.integrations import hooks

    real = hooks.wrap
    if getattr(real, "is_switched", False):
        return

    def wrap(owner: Any, name: str, **given: Any) -> bool:
        original = getattr(owner, name, None)
        done = real(owner, name, **given)
        if done:
            setattr(owner, name, _switch(original, getattr(owner, name), name))
        return done

    wrap.is_switched = True  # type: ignore[attr-defined]
    for module in [m for n, m in sys.modules.items() if n.startswith("rlvitals.integrations")]:
        if getattr(module, "wrap", None) is real:
            module.wrap = wrap  # type: ignore[attr-defined]


def _switch(original: Any, hooked: Any, name: str) -> Any:
    @functools.wraps(hooked)
    def switched(*args: Any, **kwargs: Any) -> Any:
        try:
            return (hooked if on() else original)(*args, **kwargs)
        finally:
            if name == BOUNDARY:
                BOUNDARY_OF_PROCESS.passed()

    return switched


install()
