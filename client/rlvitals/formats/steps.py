"""Rows of a log as training steps: what belongs to one step together, names as the registry has them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rlvitals.contract.aliases import Match, resolve
from rlvitals.contract.dialects import spoken, why_theirs
from rlvitals.contract.evaluation import as_evaluated
from rlvitals.contract.metrics import BY_NAME
from rlvitals.formats.row import Row, RowKind

OPEN_MAX = 8
"""Steps that wait for rows of slower writers; beyond it the oldest is given out as it is."""
STRIDE_MAX = 10_000
SHAPES_MAX = 256
"""Sets of names that are remembered: a log has a few, again and again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedStep:
    """One step as it was logged. ``line`` is its first line; ``evaluation`` says that it is no training step.

    ``withheld``: a metric that a name of the log seems to be → why it is not.
    """

    step: int
    values: Mapping[str, float]
    missing: tuple[str, ...] = ()
    withheld: Mapping[str, str] = field(default_factory=dict)
    line: int = 0
    evaluation: bool = False


@dataclass(slots=True)
class _Open:
    line: int
    values: dict[str, float] = field(default_factory=dict)
    missing: dict[str, None] = field(default_factory=dict)


def stride(text: str) -> int:
    """Steps between rows that do not say theirs, as a command line gives it. Raises ValueError below 1."""
    number = int(text)
    if not 1 <= number <= STRIDE_MAX:
        raise ValueError(f"a whole number from 1 to {STRIDE_MAX} was expected, got {number}")
    return number


class StepMerger:
    """Takes rows in the order of the log. ``stride`` is how many steps lie between rows that do not say theirs.

    Rows of one step from several writers are put together and only then named, since all names of a step tell
    whose log this is; an evaluation row is given out at once, by itself. A step counter that goes back begins
    again: what waits is given out first.
    """

    def __init__(self, stride: int = 1, *, first: int = 1) -> None:
        self.names: dict[str, str] = {}
        """The log's names → the registry's; a name that stays the user's own leads to itself."""
        self.notes: dict[str, str] = {}
        """Where a trainer's definition differs, by the log's name."""
        self.late = 0
        """Rows that came after their step had been given out, which are left out."""
        self.counted = False
        """Whether a row said no step, so that steps are counted from where the log begins."""
        self._stride, self._next = stride, first
        self._open: dict[int, _Open] = {}
        self._reached: dict[tuple[str, RowKind], int] = {}
        self._given: int | None = None
        self._known: dict[tuple[tuple[str, ...], ...], Mapping[str, str]] = {}
        self._dialects: frozenset[int] = frozenset()
        self._withheld: dict[str, tuple[str, str]] = {}

    def add(self, row: Row) -> Iterator[LoggedStep]:
        """What this row completes."""
        if row.kind is RowKind.SUMMARY:
            return
        if row.kind is RowKind.EVAL:
            at = row.step if row.step is not None else max(self._next - self._stride, 0)
            values, missing = as_evaluated(row.values), tuple(as_evaluated(dict.fromkeys(row.missing)))
            self.names.update(zip((*row.values, *row.missing), (*values, *missing), strict=False))
            yield LoggedStep(step=at, values=values, missing=missing, line=row.line, evaluation=True)
            return
        step = row.step
        if step is None:
            step, self._next, self.counted = self._next, self._next + self._stride, True
        else:
            self._next = step + self._stride
        yield from self._take(step, row)

    def end(self) -> Iterator[LoggedStep]:
        """What still waits, oldest first."""
        for step in sorted(self._open):
            yield self._give(step)

    @property
    def unknown(self) -> list[str]:
        """Names that the registry does not know, in order of appearance."""
        return [name for name, metric in self.names.items() if name == metric and metric not in BY_NAME]

    def _take(self, step: int, row: Row) -> Iterator[LoggedStep]:
        writer = row.source, row.kind
        before = self._reached.get(writer)
        if before is not None and step < before:
            yield from self.end()
            self._reached.clear()
            self._given = None
        elif self._given is not None and step <= self._given:
            self.late += 1
            return
        self._reached[writer] = step
        waiting = self._open.setdefault(step, _Open(row.line))
        waiting.values.update(row.values)
        waiting.missing.update(dict.fromkeys(row.missing))
        slowest = min(self._reached.values())
        for ready in sorted(self._open):
            if ready < slowest or len(self._open) > OPEN_MAX:
                yield self._give(ready)

    def _give(self, step: int) -> LoggedStep:
        done = self._open.pop(step)
        self._given = step
        names = self._named(tuple(done.values), tuple(done.missing))
        values = {names[name]: value for name, value in done.values.items()}
        missing = dict.fromkeys(names[name] for name in done.missing if names[name] not in values)
        withheld = {
            metric: f"the log's {name}: {why}"
            for name, (metric, why) in self._withheld.items()
            if name in names and metric not in values
        }
        return LoggedStep(step=step, values=values, missing=tuple(missing), withheld=withheld, line=done.line)

    def _named(self, *logged: tuple[str, ...]) -> Mapping[str, str]:
        """For the names that have values, and those that have none."""
        names = self._known.get(logged)
        if names is None:
            dialects = self._dialects.union(*map(spoken, logged))
            if len(self._known) >= SHAPES_MAX or dialects != self._dialects:
                self._known.clear()
                self._dialects = dialects
            names = self._known[logged] = self._names(*logged)
        return names

    def _names(self, *logged: tuple[str, ...]) -> Mapping[str, str]:
        """Each registry name goes to the one name that fits best in its step; its rivals keep their own."""
        found: dict[str, str] = {}
        taken: dict[str, str] = {}
        for name in (name for names in logged for name in sorted(names, key=_fit) if name not in found):
            known, why = resolve(name), why_theirs(name, self._dialects)
            if known is not None and why:
                self.notes[name], self._withheld[name] = why, (known.metric, why)
            if known is None or why or taken.setdefault(known.metric, name) != name:
                found[name] = name
            else:
                found[name] = known.metric
                if known.note:
                    self.notes[name] = known.note
        self.names.update(found)
        return found


def _fit(name: str) -> tuple[int, int]:
    found = resolve(name)
    order = (Match.EXACT, Match.SUFFIX, Match.WORDS)
    return (order.index(found.match) if found is not None else len(order), len(name))
