"""A past run: a log's steps in the form that the engine judges, and what could not be read."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path

from rlvitals.formats.log import Format, Log
from rlvitals.formats.row import BadLine
from rlvitals.formats.steps import LoggedStep, StepMerger
from rlvitals_monitor.alerts.replay import Step
from rlvitals_monitor.importers.derived import derive

BEGAN = datetime(2000, 1, 1, tzinfo=timezone.utc)
STEP_TIME = timedelta(seconds=60)
"""A log has no time that all formats share; rules that hold for a time are few, and see a minute a step."""
BAD_LINES_MAX = 1_000


class StepLines:
    """Where each step begins in its log: 16 bytes a step, so that a log of any length stays in bounds."""

    __slots__ = ("_lines", "_steps")

    def __init__(self) -> None:
        self._steps, self._lines = array("q"), array("q")

    def add(self, step: int, line: int) -> None:
        """Steps come in order."""
        self._steps.append(step)
        self._lines.append(line)

    def __getitem__(self, step: int) -> int:
        at = bisect_left(self._steps, step)
        if at == len(self._steps) or self._steps[at] != step:
            raise KeyError(step)
        return self._lines[at]


@dataclass(slots=True, kw_only=True)
class PastRun:
    """``steps`` may be taken once, while the log is read; the rest is filled meanwhile.

    ``names`` leads from the log's names to the registry's, ``unknown`` are those that stay as they are, ``notes``
    say where a trainer's definition differs.
    """

    format: Format
    steps: Iterator[Step]
    bad_lines: list[BadLine] = field(default_factory=list)
    bad_count: int = 0
    count: int = 0
    lines: StepLines = field(default_factory=StepLines)
    merger: StepMerger = field(default_factory=StepMerger)

    @property
    def counted(self) -> bool:
        """Whether the log's rows said no step."""
        return self.merger.counted

    @property
    def unknown(self) -> list[str]:
        return self.merger.unknown


def read_past_run(
    path: Path,
    *,
    stride: int = 1,
    form: Format | None = None,
    run: str | None = None,
    seen: Callable[[int], object] = lambda _: None,
) -> PastRun:
    """Opens a log; ``stride`` is the steps between rows that say none.

    Raises OSError where it can't be read; taking ``steps`` raises ValueError where it is not of its format.
    """
    log = Log.of(path, form)
    past = PastRun(format=log.format, steps=iter(()), merger=StepMerger(stride))
    past.steps = _steps(past, log, run, seen)
    return past


def _steps(past: PastRun, log: Log, run: str | None, seen: Callable[[int], object]) -> Iterator[Step]:
    """Training steps only, each later than the one before: a counter that goes back is a resume, judged on."""
    last = -1
    for logged in _logged(past, log, run, seen):
        if logged.evaluation or logged.step <= last:
            continue
        last = logged.step
        past.lines.add(logged.step, logged.line)
        past.count += 1
        values: Mapping[str, float] = {**logged.values, **derive(logged.values)}
        yield logged.step, BEGAN + logged.step * STEP_TIME, values


def _logged(past: PastRun, log: Log, run: str | None, seen: Callable[[int], object]) -> Iterator[LoggedStep]:
    for item in log.rows(run, seen):
        if isinstance(item, BadLine):
            past.bad_count += 1
            if len(past.bad_lines) < BAD_LINES_MAX:
                past.bad_lines.append(item)
        else:
            yield from past.merger.add(item)
    yield from past.merger.end()
