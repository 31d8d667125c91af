"""The text that a trainer prints, from any trainer: one reader for all, since real logs mix them.

It knows verl's ``step:7 - …`` lines, printed dictionaries (TRL, ms-swift, LLaMA-Factory, open-r1, unsloth; with
``step 7:``, ``rollout 7:`` or ``Global step 7:`` before them: slime, OpenRLHF), Megatron's iteration lines, tables
of notebooks, sections under a heading, and ``name: value`` lines. Everything between them is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from rlvitals.formats import braces, pairs, sections
from rlvitals.formats.line import LENGTH_MAX, fragments, worker
from rlvitals.formats.numbers import number, step_of, whole
from rlvitals.formats.row import BadLine, Found, Row, RowKind
from rlvitals.formats.table import Table

WRAPPED_LINES_MAX = 200
_BEFORE = re.compile(
    r"(?:[A-Za-z][\w-]*-)?(?P<kind>global[_ ]step|step|rollout|perf|eval|iteration|passrate|multi_turn)"
    r"[ _](?P<id>\d+)\s*(?:/\s*\d+)?\s*:\s*$",
    re.IGNORECASE,
)
_LONE = re.compile(
    r"\s*(?:wandb:\s+|[•·*▪►-]\s+)?"
    r"(?P<name>[A-Za-z][\w./@%()\[\] -]{0,80}?)\s*(?::|=)\s*(?P<value>\S+)\s*$"
)
_KINDS = {"rollout": RowKind.ROLLOUT, "perf": RowKind.PERF, "eval": RowKind.EVAL, "passrate": RowKind.EVAL}
_STEP_NAMES = ("step", "global_step", "train/step", "train/global_step", "training/global_step", "rollout/step")


@dataclass(slots=True)
class _Open:
    """A record that its line did not finish."""

    line: int
    text: str
    lines: int = 1


@dataclass(slots=True)
class _Worker:
    """What one process is in the middle of."""

    verl: _Open | None = None
    braces: _Open | None = None
    lone: dict[str, float] = field(default_factory=dict)
    lone_line: int = 0
    heading: int | None = None


class Console:
    """Reads line by line; a wrapped record is given out when the next one begins, or at `end`."""

    def __init__(self) -> None:
        self._workers: dict[str, _Worker] = {}
        self._table = Table()

    def read(self, line: int, text: str) -> Found:
        if len(text) > LENGTH_MAX:
            yield BadLine.of(line, f"a line of at most {LENGTH_MAX} characters was expected", text)
            return
        for fragment in fragments(text.lstrip("\ufeff") if line == 1 else text):
            who, rest = worker(fragment)
            yield from self._read(line, who, rest)

    def end(self) -> Found:
        for who, state in self._workers.items():
            yield from _finish_verl(who, state)
            yield from _give_up(state)
            yield from _finish_lone(who, state)
        self._workers.clear()

    def _read(self, line: int, who: str, text: str) -> Found:
        state = self._workers.setdefault(who, _Worker())
        if state.braces is not None:
            found = _go_on(who, state, text)
            if found is not None:
                yield from found
                return
            yield from _give_up(state)
        verl = pairs.VERL.search(text) if "step:" in text else None
        if state.verl is not None and verl is None and _continues(state.verl, text):
            state.verl.text += " " + text.strip()
            state.verl.lines += 1
            return
        yield from _finish_verl(who, state)
        if verl is not None:
            yield from _finish_lone(who, state)
            state.verl = _Open(line, text[verl.start() :].strip(" |"))
            return
        yield from self._other(line, who, state, text)

    def _other(self, line: int, who: str, state: _Worker, text: str) -> Found:
        start = braces.find(text) if "{" in text else -1
        if start >= 0:
            yield from _finish_lone(who, state)
            yield from _begin_braces(line, who, state, text, start)
            return
        megatron = pairs.MEGATRON.search(text) if "iteration" in text else None
        if megatron is not None:
            values, missing, _ = pairs.megatron(text[megatron.end() :])
            yield Row(line=line, step=step_of(megatron[1]), values=values, missing=missing, source=who)
            return
        piped = sections.piped(text) if "|" in text else None
        if piped is not None:
            yield Row(line=line, step=step_of(piped[0]), values=piped[1], source=who)
            return
        row = self._table.read(line, who, text)
        if row is not None:
            yield row
            return
        if not self._table.heads(text):
            yield from _lone(line, who, state, text)


def _continues(record: _Open, text: str) -> bool:
    """Whether ``text`` is the rest of a wrapped verl line: it goes on with a pair, or the pair was cut."""
    if record.lines >= WRAPPED_LINES_MAX:
        return False
    stripped = text.strip()
    return (
        stripped.startswith("- ")
        or record.text.endswith((" -", ":", "/"))
        or (SEPARATED.match(stripped) is not None and record.text[-1:] not in "0123456789.)")
    )


SEPARATED = re.compile(r"[^\s:{}]{1,120}:\S+ - \S")


def _finish_verl(who: str, state: _Worker) -> Iterator[Row | BadLine]:
    record, state.verl = state.verl, None
    if record is None:
        return
    head = pairs.VERL.search(record.text)
    if head is None:
        return
    values, missing, unread = pairs.verl(record.text[head.end() :])
    if unread:
        reason = f"name:value was expected, {len(unread)} of {len(values) + len(unread)} are not"
        yield BadLine.of(record.line, reason, unread[0])
    if values or missing:
        yield Row(
            line=record.line,
            step=step_of(head[1]),
            values=values,
            missing=missing,
            source=who,
            kind=_kind_of_names(values, RowKind.TRAIN),
        )


def _begin_braces(line: int, who: str, state: _Worker, text: str, start: int) -> Iterator[Row | BadLine]:
    end = braces.close(text, start)
    if end < 0:
        state.braces = _Open(line, text)
        return
    yield from _braces(line, who, text, start, end)
    rest = text[end:]
    again = braces.find(rest)
    if again >= 0:
        yield from _begin_braces(line, who, state, rest, again)


def _go_on(who: str, state: _Worker, text: str) -> list[Row | BadLine] | None:
    """Adds a line to an open dictionary; None if it can't be a part of it."""
    record = state.braces
    if record is None:
        return None
    longer = f"{record.text} {text.strip()}"
    fresh = pairs.VERL.search(text) is not None or _opens_anew(text)
    if fresh or record.lines >= WRAPPED_LINES_MAX or len(longer) > braces.LENGTH_MAX:
        return None
    record.text, record.lines = longer, record.lines + 1
    start = braces.find(longer)
    end = braces.close(longer, start)
    if end < 0:
        return []
    state.braces = None
    return list(_braces(record.line, who, longer, start, end))


def _opens_anew(text: str) -> bool:
    return text.lstrip().startswith("{") and braces.find(text) >= 0


def _give_up(state: _Worker) -> Iterator[BadLine]:
    record, state.braces = state.braces, None
    if record is not None and _looks_logged(record.text):
        yield BadLine.of(record.line, "a dictionary that closes was expected", record.text)


def _braces(line: int, who: str, text: str, start: int, end: int) -> Iterator[Row | BadLine]:
    try:
        values, missing = braces.flat(text[start:end])
    except braces.Unreadable as error:
        if _looks_logged(text[start:end]):
            yield BadLine.of(line, str(error), text[start:end])
        return
    head = _BEFORE.search(text[:start])
    if not values and not missing:
        return
    if head is None and not _is_record(values):
        return
    kind = _KINDS.get(head["kind"].lower(), RowKind.TRAIN) if head is not None else RowKind.TRAIN
    step = step_of(head["id"]) if head is not None else _own_step(values)
    yield Row(line=line, step=step, values=values, missing=missing, source=who, kind=_kind_of_names(values, kind))


_METRICS = re.compile(r"loss|reward|kl|grad_norm|entropy|learning_rate|(?:^|/)lr\b|score|advantage|length|runtime")


def _is_record(values: dict[str, float]) -> bool:
    """A printed configuration is a dictionary of numbers too, but it has no loss and no reward."""
    return sum(1 for name in values if _METRICS.search(name.lower())) >= 2 or "loss" in values


def _looks_logged(text: str) -> bool:
    return re.search(r"['\"](?:loss|reward|train/|rollout/|policy_loss|grad_norm)", text) is not None


def _own_step(values: dict[str, float]) -> int | None:
    return next((whole(values[name]) for name in _STEP_NAMES if name in values), None)


def _kind_of_names(values: dict[str, float], kind: RowKind) -> RowKind:
    if "train_runtime" in values:
        return RowKind.SUMMARY
    if (
        kind is RowKind.TRAIN
        and values
        and all(name.startswith(("eval", "val-", "val/")) for name in _told(values))
    ):
        return RowKind.EVAL
    return kind


def _told(values: dict[str, float]) -> list[str]:
    return [name for name in values if name not in ("epoch", *_STEP_NAMES)] or [""]


def _lone(line: int, who: str, state: _Worker, text: str) -> Iterator[Row | BadLine]:
    """``name: value`` alone on a line; a name that comes again, or "step", begins the next record."""
    heading = sections.heading(text)
    if heading is not None:
        yield from _finish_lone(who, state)
        state.heading = step_of(heading)
        return
    boxed = sections.boxed(text)
    found = _LONE.match(text) if not boxed and (":" in text or "=" in text) else None
    value = number(found["value"]) if found is not None else None
    if found is not None and value is not None:
        boxed = {found["name"].strip(): value}
    elif found is None and not boxed and state.heading is None:
        yield from _finish_lone(who, state)
    for name, value in boxed.items():
        if name in state.lone or (name.lower() in _STEP_NAMES and state.lone):
            yield from _finish_lone(who, state)
        if not state.lone:
            state.lone_line = line
        if len(state.lone) < sections.NAMES_MAX:
            state.lone[name] = value


def _finish_lone(who: str, state: _Worker) -> Iterator[Row]:
    values, state.lone = state.lone, {}
    if any(_METRICS.search(name.lower()) or "/" in name for name in values):
        step = _own_step(values)
        yield Row(line=state.lone_line, step=state.heading if step is None else step, values=values, source=who)
